package copy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"sshpace/internal/base/wildcard"
)

// part is a file that is not complete yet. Each time that one is written it has a name
// that nobody else has, next to its place:
//
//	.NAME.sshpace-PLACE-CONTENT-RANDOM
//
// PLACE is made of host and name, since many hosts may have one disk, and CONTENT identifies the
// content. So a later copy finds the parts of an earlier one, makes them its own by renaming them,
// which only one can do, and continues or removes them. A copy whose own part is gone begins again.
type part struct {
	place, directory, stem, content string

	holed string // content in the names of parts that may lack pieces, "" where none can: lanes do not write in order
	lanes bool   // a fresh one is such a part
}

// aside is a file that is being replaced, as long as it stands aside.
func (p part) aside() part {
	p.content = contentOf("aside")
	return p
}

// claim returns a name under which a part is written: of the parts that earlier copies left of the
// file, the first that begin can continue under it; remove gets the others.
func (l *leftovers) claim(own part, begin func(old, name string) bool, remove func(own part, old leftover)) (name string) {
	name = own.fresh()
	begun := false
	for _, old := range l.take(own) {
		if begin != nil && !begun && old.same && begin(old.name, name) {
			begun = true
		} else {
			remove(own, old)
		}
	}
	return name
}

// untilOurs writes a file again as long as another copy takes its part.
func (s *side) untilOurs(err error, again func() error) error {
	for n := 0; n < mostTaken && errors.Is(err, fs.ErrNotExist) && !s.isOver(err); n++ {
		err = again()
	}
	return err
}

// mostTaken is how often a file begins again whose part another copy took: each looks once for
// leftovers, so that a part is taken more often only if more copies than that run at once.
const mostTaken = 5

// maxBase leaves room for the rest of a name, of 255 bytes on most file systems.
const maxBase = 200

// newPart returns the part of a file of a host. content must differ if the content does.
func newPart(host, name string, content ...any) part {
	base := path.Base(name)
	base = base[:min(len(base), maxBase)]
	return part{name, path.Dir(name), fmt.Sprintf(".%s.sshpace-%08x-", base, digest(host, name)&(1<<32-1)), contentOf(content...), "", false}
}

func contentOf(words ...any) string { return fmt.Sprintf("%012x", digest(words...)&(1<<48-1)) }

func digest(words ...any) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		fmt.Fprintf(h, "%v\x00", w)
	}
	return h.Sum64()
}

// fresh returns an unused name.
func (p part) fresh() string {
	content := p.content
	if p.lanes {
		content = p.holed
	}
	return path.Join(p.directory, p.stem+content+"-"+strings.ToLower(rand.Text()[:8]))
}

func (p part) has(name string) bool {
	return strings.HasPrefix(path.Base(name), p.stem+p.content+"-") || p.hasHoles(name)
}

// hasHoles reports whether the part with a name may lack pieces.
func (p part) hasHoles(name string) bool {
	return p.holed != "" && strings.HasPrefix(path.Base(name), p.stem+p.holed+"-")
}

// leftover is a part that was found.
type leftover struct {
	name      string
	same      bool // its content must be that of the wanted part
	directory bool
}

// partNames matches the names of parts: the stem, the content, and the unique end.
var partNames = wildcard.Regexp(`(?s)^(\..*\.sshpace-[0-9a-f]{8}-)([0-9a-f]{12})-[0-9a-z]{8}$`)

// leftovers are parts that were found in directories, until somebody takes them.
type leftovers struct {
	mu    sync.Mutex
	found map[string][]leftover // by directory and stem
}

// maxLeftovers bounds how many are kept.
const maxLeftovers = 10_000

// add records a name in a directory if it is that of a part. content is compared when it is taken.
func (l *leftovers) add(in, name string, isDirectory bool) {
	if !strings.Contains(name, ".sshpace-") {
		return
	}
	m := partNames().FindStringSubmatch(name)
	if m == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil {
		l.found = map[string][]leftover{}
	}
	if key := path.Join(in, m[1]); len(l.found) < maxLeftovers {
		l.found[key] = append(l.found[key], leftover{name: path.Join(in, name), directory: isDirectory})
	}
}

// take returns the leftovers of a file. They belong to nobody else then.
func (l *leftovers) take(p part) []leftover {
	list := l.some(p, false)
	for i := range list {
		list[i].same = p.has(list[i].name)
	}
	return list
}

// takeDirectories returns the remaining directories of parts.
func (l *leftovers) takeDirectories(p part) []leftover { return l.some(p, true) }

func (l *leftovers) some(p part, directories bool) (list []leftover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := path.Join(p.directory, p.stem)
	others := slices.DeleteFunc(l.found[key], func(old leftover) bool {
		if old.directory == directories {
			list = append(list, old)
		}
		return old.directory == directories
	})
	if delete(l.found, key); len(others) > 0 {
		l.found[key] = others
	}
	return list
}
