package knownhosts

import (
	"cmp"
	"context"
	"crypto/rsa"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// FindingKind names what Lint finds.
type FindingKind string

// The findings, and what each means to ssh.
const (
	Unreadable     FindingKind = "unreadable"    // ssh passes over the line without a word
	WeakKey        FindingKind = "weak-key"      // DSA, or RSA below 2048 bits
	ShortKey       FindingKind = "short-key"     // RSA below 3072 bits
	RevokedKey     FindingKind = "revoked-key"   // a @revoked line forbids the key: it is never accepted
	Conflict       FindingKind = "conflict"      // two keys of one type for one name: either is accepted
	Duplicate      FindingKind = "duplicate"     // an earlier line says the same
	Shadowed       FindingKind = "shadowed"      // a pattern with the same key covers all names of the line
	MixedHashing   FindingKind = "mixed-hashing" // plain lines give away what hashed lines hide
	FileUnreadable FindingKind = "unreadable-file"
)

// FindingKinds lists all kinds.
func FindingKinds() []FindingKind {
	return []FindingKind{Unreadable, WeakKey, ShortKey, RevokedKey, Conflict, Duplicate, Shadowed, MixedHashing, FileUnreadable}
}

// Finding is one thing that Lint has to say about a line.
type Finding struct {
	File   string      `json:"file"`
	Line   int         `json:"line"` // 0: the whole file
	Kind   FindingKind `json:"kind"`
	Detail string      `json:"detail"`
	Other  string      `json:"other,omitempty"` // "file:line" of the line that it is about as well
}

// Lint looks for lines that are useless, misleading or unsafe. It looks at all
// files as one list, as ssh does. The names of hashed lines are known only as
// far as they are in names, each in the form of HostPort; if ctx ends they are
// not.
func Lint(ctx context.Context, x *Index, names []string) []Finding {
	x.Warm(ctx, names)
	l := &linter{first: make(map[claim]*lintLine), byType: make(map[claim]*lintLine),
		patterns: make(map[string][]*lintLine), revoked: make(map[string][]*lintLine)}
	for _, err := range x.Problems() {
		l.findings = append(l.findings, Finding{Kind: FileUnreadable, Detail: err.Error()})
	}
	for _, bad := range x.Unreadable() {
		l.findings = append(l.findings, Finding{File: bad.File, Line: bad.Line, Kind: Unreadable, Detail: bad.Reason})
	}
	for _, s := range x.files {
		t := s.current()
		l.addLines(s.path, t, t.namesOfHashed(names))
		l.mixedHashing(s.path, t)
	}
	for _, one := range l.lines {
		l.collect(one)
	}
	for _, one := range l.lines {
		l.check(one)
	}
	order := make(map[string]int)
	for i, file := range x.Files() {
		order[file] = i
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return l.findings
}

// linter is the work of one Lint.
type linter struct {
	lines    []*lintLine
	first    map[claim]*lintLine    // who said it first
	byType   map[claim]*lintLine    // the first key of a type for a name; claim.key is the type
	patterns map[string][]*lintLine // key -> lines with patterns
	revoked  map[string][]*lintLine // key -> @revoked lines
	findings []Finding
}

// claim is "this key is the host's", or the authority's, or revoked, under one name.
type claim struct {
	marker Marker
	name   string
	key    string
}

// lintLine is a readable line.
type lintLine struct {
	line
	file  string
	blob  string // the key
	key   ssh.PublicKey
	names []string // lower-case; of a hashed line the name if known, else the hash itself
}

func (l *lintLine) where() string { return fmt.Sprintf("%s:%d", l.file, l.number) }

// addLines decodes the lines of a file.
func (l *linter) addLines(file string, t *table, hashedNames map[int32]string) {
	lines := make([]*lintLine, len(t.lines))
	parallel(runtime.GOMAXPROCS(0), len(lines), func(i int) {
		key, _, err := t.lines[i].parseKey()
		if err != nil {
			return
		}
		one := &lintLine{line: t.lines[i], file: file, key: key, blob: string(key.Marshal())}
		one.names = strings.Split(lower(one.hosts), ",")
		if one.hash != nil {
			one.names = []string{cmp.Or(hashedNames[int32(i)], one.hosts)}
		}
		lines[i] = one
	})
	l.lines = append(l.lines, slices.DeleteFunc(lines, func(one *lintLine) bool { return one == nil })...)
}

// namesOfHashed maps hashed lines to the names among those given.
func (t *table) namesOfHashed(names []string) map[int32]string {
	owner := make(map[int32]string)
	for _, name := range names {
		name = lower(name)
		for _, index := range t.find(name) {
			if t.lines[index].hash != nil {
				owner[index] = name
			}
		}
	}
	return owner
}

// mixedHashing reports a file that hides some names only.
func (l *linter) mixedHashing(file string, t *table) {
	hashed, plain := len(t.hashed), len(t.lines)-len(t.hashed)-len(t.pattern)
	if hashed > 0 && plain > 0 {
		l.findings = append(l.findings, Finding{File: file, Kind: MixedHashing,
			Detail: fmt.Sprintf("%d lines are hashed and %d are plain; ssh-keygen -H hashes all", hashed, plain)})
	}
}

// collect fills the maps of lines that others are compared with.
func (l *linter) collect(one *lintLine) {
	if one.marker == MarkerRevoked {
		l.revoked[one.blob] = append(l.revoked[one.blob], one)
	}
	if one.pattern {
		l.patterns[one.blob] = append(l.patterns[one.blob], one)
		return
	}
}

// check compares one line with those before it and with the patterns.
func (l *linter) check(one *lintLine) {
	l.weakKey(one)
	if one.marker != MarkerRevoked {
		l.revokedKey(one)
	}
	if one.pattern {
		l.duplicatePattern(one)
		return
	}
	if l.duplicate(one) || l.shadowed(one) {
		return
	}
	if one.marker == MarkerNone {
		l.conflict(one)
	}
}

func (l *linter) report(one *lintLine, kind FindingKind, other *lintLine, format string, args ...any) {
	f := Finding{File: one.file, Line: one.number, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	if other != nil {
		f.Other = other.where()
	}
	l.findings = append(l.findings, f)
}

// weakKey reports keys that OpenSSH has given up or soon may: DSA (off since
// 7.0), and RSA sizes below those of NIST SP 800-57 for today (2048 bits) and
// beyond 2030 (3072 bits).
func (l *linter) weakKey(one *lintLine) {
	if one.marker == MarkerRevoked {
		return
	}
	//lint:ignore SA1019 the point is to find such keys
	if one.key.Type() == ssh.InsecureKeyAlgoDSA {
		l.report(one, WeakKey, nil, "DSA key; give the host an ed25519 key")
		return
	}
	bits := rsaBits(one.key)
	switch {
	case bits == 0 || bits >= 3072:
	case bits < 2048:
		l.report(one, WeakKey, nil, "RSA key of %d bits; give the host an ed25519 key", bits)
	default:
		l.report(one, ShortKey, nil, "RSA key of %d bits; 3072 or an ed25519 key last longer", bits)
	}
}

// rsaBits is the size of an RSA key, 0 for other keys.
func rsaBits(key ssh.PublicKey) int {
	if holder, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := holder.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}

// revokedKey reports a key that a @revoked line forbids for one of its names.
func (l *linter) revokedKey(one *lintLine) {
	for _, revoked := range l.revoked[one.blob] {
		for _, name := range one.names {
			if revoked.hosts == one.hosts || slices.Contains(revoked.names, name) || revoked.pattern && matchHosts(name, revoked.hosts) {
				l.report(one, RevokedKey, revoked, "the key is revoked for %s; remove this line", name)
				return
			}
		}
	}
}

// duplicate reports a line that earlier lines have said in full, and remembers
// what is new.
func (l *linter) duplicate(one *lintLine) bool {
	var earlier *lintLine
	said := 0
	for _, name := range one.names {
		c := claim{one.marker, name, one.blob}
		if before := l.first[c]; before != nil && before != one {
			earlier = before
			said++
			continue
		}
		l.first[c] = one
	}
	if said < len(one.names) {
		return false
	}
	l.report(one, Duplicate, earlier, "the same key for %s stands in an earlier line", one.label())
	return true
}

// duplicatePattern is duplicate for a host field with patterns, as a whole.
func (l *linter) duplicatePattern(one *lintLine) {
	c := claim{one.marker, lower(one.hosts), one.blob}
	if before := l.first[c]; before != nil {
		l.report(one, Duplicate, before, "the same key for %s stands in an earlier line", one.label())
		return
	}
	l.first[c] = one
}

// shadowed reports a line whose names a pattern with the same key covers.
func (l *linter) shadowed(one *lintLine) bool {
	for _, pattern := range l.patterns[one.blob] {
		covers := func(name string) bool { return matchHosts(name, pattern.hosts) }
		if pattern.marker == one.marker && !slices.ContainsFunc(one.names, func(name string) bool { return !covers(name) }) {
			l.report(one, Shadowed, pattern, "%s has the same key and covers %s", pattern.hosts, one.label())
			return true
		}
	}
	return false
}

// conflict reports a name that has another key of the same type already.
func (l *linter) conflict(one *lintLine) {
	for _, name := range one.names {
		c := claim{name: name, key: one.key.Type()}
		before := l.byType[c]
		if before == nil {
			l.byType[c] = one
			continue
		}
		if before.blob != one.blob {
			l.report(one, Conflict, before, "another %s key for %s; ssh accepts both, so remove the one that is no longer in use", one.key.Type(), one.label())
			return
		}
	}
}

// label names the hosts of a line in a message.
func (l *lintLine) label() string {
	if l.hash != nil && strings.HasPrefix(l.names[0], "|") {
		return "the hashed name"
	}
	if l.hash != nil {
		return l.names[0]
	}
	return l.hosts
}
