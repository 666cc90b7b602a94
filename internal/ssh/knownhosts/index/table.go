package index

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
)

// BadLine is a line that OpenSSH silently ignores.
type BadLine struct {
	File   string
	Line   int // from 1
	Reason string
}

// Table is one file in memory. A file that has only grown is extended rather than read anew, so
// that the results for its hashed lines survive the lines that accept-new appends while a thousand
// connections are being made.
type Table struct {
	Path    string
	mu      sync.RWMutex // written by extend, read by everything else
	text    []string     // the file, in the pieces in which it was read
	lines   []knownhosts.Line
	bad     []BadLine
	count   int                // lines of all kinds so far
	plain   map[string][]int32 // lower-case name -> indices into lines
	pattern []int32            // lines that must be matched name by name
	hashed  []int32            // hashed lines
	claimed []uint32           // per hashed line: 1 once its name is known, since a line has only one

	memoMu sync.Mutex
	memo   map[string]*matches
	passes atomic.Int64 // scans over hashed lines
}

// matches holds the lines of one name that cannot be looked up. Under its mutex the first asker
// does the work and the others wait for the answer.
type matches struct {
	mu          sync.Mutex
	patternSeen int // how many of table.pattern have been tried
	hashedSeen  int // how many of table.hashed have been tried
	hits        []int32
}

// newTable indexes the text of a file.
func newTable(path, text string) *Table {
	t := &Table{Path: path, memo: make(map[string]*matches)}
	t.extend(text)
	return t
}

// extend adds text after that of the table, which must end with a newline or be empty.
func (t *Table) extend(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.text = append(t.text, text)
	t.reserve(strings.Count(text, "\n") + 1)
	for text != "" {
		var one string
		one, text, _ = strings.Cut(text, "\n")
		t.count++
		l, ok, err := knownhosts.Parse(one, t.count)
		switch {
		case err != nil:
			t.bad = append(t.bad, BadLine{File: t.Path, Line: t.count, Reason: err.Error()})
		case ok:
			t.add(l)
		}
	}
}

// Lines returns the readable lines, in the order of the file; an index of Find is one into them.
func (t *Table) Lines() []knownhosts.Line {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.lines
}

// Names returns the names of plain lines, in lower case and in no order.
func (t *Table) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.plain))
}

// Count counts the lines with plain names and with hashed ones.
func (t *Table) Count() (plain, hashed int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.lines) - len(t.pattern) - len(t.hashed), len(t.hashed)
}

// reserve makes room for n more lines, so that a large file is not copied around.
func (t *Table) reserve(n int) {
	t.lines = slices.Grow(t.lines, n)
	if t.plain == nil {
		t.plain = make(map[string][]int32, n)
	}
}

func (t *Table) add(l knownhosts.Line) {
	index := int32(len(t.lines))
	t.lines = append(t.lines, l)
	switch {
	case l.Hashed():
		t.hashed = append(t.hashed, index)
		t.claimed = append(t.claimed, 0)
	case l.Pattern:
		t.pattern = append(t.pattern, index)
	default:
		for name := range strings.SplitSeq(l.Hosts, ",") {
			t.addPlain(wildcard.Lower(name), index)
		}
	}
}

func (t *Table) addPlain(name string, index int32) {
	known := t.plain[name]
	if len(known) > 0 && known[len(known)-1] == index {
		return // "a,a key": one line all the same
	}
	t.plain[name] = append(known, index)
}

// Find returns the indices of all lines that match a lower-case name, in the order of the file.
// Hashed lines are tried at most once per name.
func (t *Table) Find(name string) []int32 {
	t.mu.RLock()
	defer t.mu.RUnlock()

	found := t.plain[name]
	if len(t.pattern)+len(t.hashed) == 0 {
		return found
	}
	m := t.matchesOf(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	t.tryPatterns(m, name)
	t.tryHashes(m, name)
	if len(m.hits) == 0 {
		return found
	}
	found = slices.Concat(found, m.hits)
	slices.Sort(found)
	return found
}

// matchesOf returns the memory of one name.
func (t *Table) matchesOf(name string) *matches {
	t.memoMu.Lock()
	defer t.memoMu.Unlock()

	m := t.memo[name]
	if m == nil {
		m = new(matches)
		t.memo[name] = m
	}
	return m
}

func (t *Table) tryPatterns(m *matches, name string) {
	for _, index := range t.pattern[m.patternSeen:] {
		if t.lines[index].Covers(name) {
			m.hits = append(m.hits, index)
		}
	}
	m.patternSeen = len(t.pattern)
}

func (t *Table) tryHashes(m *matches, name string) {
	if m.hashedSeen == len(t.hashed) {
		return
	}
	t.passes.Add(1)
	for i := m.hashedSeen; i < len(t.hashed); i++ {
		if atomic.LoadUint32(&t.claimed[i]) != 0 {
			continue
		}
		if index := t.hashed[i]; t.lines[index].HashOf(name) {
			m.hits = append(m.hits, index)
			atomic.StoreUint32(&t.claimed[i], 1)
		}
	}
	m.hashedSeen = len(t.hashed)
}

// Warm tries the hashed lines for many lower-case names in one pass over the file, on all
// processors, so that the following Find calls need none. If ctx ends earlier, nothing new is
// known.
func (t *Table) Warm(ctx context.Context, names []string) {
	t.mu.RLock()
	defer t.mu.RUnlock()

	if len(t.hashed) == 0 {
		return
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	fresh, memory := t.lockFresh(names)
	defer func() {
		for _, m := range memory {
			m.mu.Unlock()
		}
	}()
	if len(fresh) == 0 {
		return
	}
	t.passes.Add(1)
	owners := t.owners(ctx, fresh)
	if ctx.Err() != nil {
		return
	}
	for i, owner := range owners {
		if owner >= 0 {
			memory[owner].hits = append(memory[owner].hits, t.hashed[i])
			atomic.StoreUint32(&t.claimed[i], 1)
		}
	}
	for _, m := range memory {
		m.hashedSeen = len(t.hashed)
	}
}

// lockFresh locks the memory of those names whose hashed lines have never been tried. The names are
// sorted, so that two calls cannot wait for each other.
func (t *Table) lockFresh(names []string) (fresh [][]byte, memory []*matches) {
	for _, name := range names {
		m := t.matchesOf(name)
		m.mu.Lock()
		if m.hashedSeen > 0 {
			m.mu.Unlock()
			continue
		}
		fresh = append(fresh, []byte(name))
		memory = append(memory, m)
	}
	return fresh, memory
}

// owners returns, for every hashed line, the index of the name that it belongs to, or -1.
func (t *Table) owners(ctx context.Context, names [][]byte) []int {
	owner := make([]int, len(t.hashed))
	sched.Do(runtime.GOMAXPROCS(0), len(owner), func(i int) {
		owner[i] = -1
		if atomic.LoadUint32(&t.claimed[i]) == 0 && ctx.Err() == nil {
			owner[i] = t.lines[t.hashed[i]].HashOfAny(names)
		}
	})
	return owner
}

// Unreadable returns the lines that were bad from the start and those whose key cannot be decoded,
// in the order of the file.
func (t *Table) Unreadable() []BadLine {
	t.mu.RLock()
	defer t.mu.RUnlock()

	errs := make([]error, len(t.lines))
	sched.Do(runtime.GOMAXPROCS(0), len(errs), func(i int) { _, _, errs[i] = t.lines[i].Key() })
	bad := slices.Clone(t.bad)
	for i, err := range errs {
		if err != nil {
			bad = append(bad, BadLine{File: t.Path, Line: t.lines[i].Number, Reason: err.Error()})
		}
	}
	slices.SortFunc(bad, func(a, b BadLine) int { return a.Line - b.Line })
	return bad
}
