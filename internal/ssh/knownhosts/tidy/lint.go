package tidy

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
)

// Kind names a kind of finding.
type Kind string

// The findings, with their effect on ssh.
const (
	unreadable     Kind = "unreadable"    // ssh passes over the line without a word
	weakKey        Kind = "weak-key"      // DSA, or RSA below 2048 bits
	shortKey       Kind = "short-key"     // RSA below 3072 bits
	revokedKey     Kind = "revoked-key"   // a @revoked line forbids the key: it is never accepted
	conflict       Kind = "conflict"      // two keys of one type for one name: either is accepted
	duplicate      Kind = "duplicate"     // an earlier line says the same
	shadowed       Kind = "shadowed"      // a pattern with the same key covers all names of the line
	mixedHashing   Kind = "mixed-hashing" // plain lines reveal what hashed lines hide
	fileUnreadable Kind = "unreadable-file"
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{unreadable, weakKey, shortKey, revokedKey, conflict, duplicate, shadowed, mixedHashing, fileUnreadable}
}

// Finding is one remark about a line.
type Finding struct {
	File   string `json:"file"`
	Line   int    `json:"line"` // 0: the whole file
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail"`
	Other  string `json:"other,omitempty"` // "file:line" of the line that it is about as well
}

// Lint looks for lines that are useless, misleading or unsafe. It treats all files as one list, as
// ssh does. The names of hashed lines are known only as far as they are in names, each in the form
// of HostPort; if ctx ends they are not.
func Lint(ctx context.Context, x *index.Index, names []string) []Finding {
	x.Warm(ctx, names)
	l := &linter{first: make(map[claim]*lintLine), byType: make(map[claim]*lintLine),
		patterns: make(map[string][]*lintLine), revoked: make(map[string][]*lintLine)}
	for _, err := range x.Problems() {
		l.findings = append(l.findings, Finding{Kind: fileUnreadable, Detail: err.Error()})
	}
	for _, bad := range x.Unreadable() {
		l.findings = append(l.findings, Finding{File: bad.File, Line: bad.Line, Kind: unreadable, Detail: bad.Reason})
	}
	for _, t := range x.Tables() {
		l.addLines(t, namesOfHashed(t, names))
		l.mixedHashing(t)
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

// linter is the work of one call of Lint.
type linter struct {
	lines    []*lintLine
	first    map[claim]*lintLine    // the first line that says it
	byType   map[claim]*lintLine    // the first key of a type for a name; claim.key is the type
	patterns map[string][]*lintLine // key -> lines with patterns
	revoked  map[string][]*lintLine // key -> @revoked lines
	findings []Finding
}

// claim is "this key is the host's", or the authority's, or revoked, under one name.
type claim struct {
	marker knownhosts.Marker
	name   string
	key    string
}

type lintLine struct {
	knownhosts.Line
	file  string
	blob  string // the key
	key   ssh.PublicKey
	names []string // lower-case; for a hashed line the name if known, otherwise the hash itself
}

func (l *lintLine) where() string { return fmt.Sprintf("%s:%d", l.file, l.Number) }

// addLines decodes the lines of a file.
func (l *linter) addLines(t *index.Table, hashedNames map[int32]string) {
	readable := t.Lines()
	lines := make([]*lintLine, len(readable))
	sched.Do(runtime.GOMAXPROCS(0), len(lines), func(i int) {
		key, _, err := readable[i].Key()
		if err != nil {
			return
		}
		one := &lintLine{Line: readable[i], file: t.Path, key: key, blob: string(key.Marshal())}
		one.names = strings.Split(wildcard.Lower(one.Hosts), ",")
		if one.Hashed() {
			one.names = []string{cmp.Or(hashedNames[int32(i)], one.Hosts)}
		}
		lines[i] = one
	})
	l.lines = append(l.lines, slices.DeleteFunc(lines, func(one *lintLine) bool { return one == nil })...)
}

// namesOfHashed maps hashed lines to the names among those given.
func namesOfHashed(t *index.Table, names []string) map[int32]string {
	lines, owner := t.Lines(), make(map[int32]string)
	for _, name := range names {
		name = wildcard.Lower(name)
		for _, i := range t.Find(name) {
			if lines[i].Hashed() {
				owner[i] = name
			}
		}
	}
	return owner
}

// mixedHashing reports a file that hides some names only.
func (l *linter) mixedHashing(t *index.Table) {
	plain, hashed := t.Count()
	if hashed > 0 && plain > 0 {
		l.findings = append(l.findings, Finding{File: t.Path, Kind: mixedHashing,
			Detail: fmt.Sprintf("%d lines are hashed and %d are plain; ssh-keygen -H hashes all", hashed, plain)})
	}
}

// collect fills the maps of lines that others are compared with.
func (l *linter) collect(one *lintLine) {
	if one.Marker == knownhosts.MarkerRevoked {
		l.revoked[one.blob] = append(l.revoked[one.blob], one)
	}
	if one.Pattern {
		l.patterns[one.blob] = append(l.patterns[one.blob], one)
		return
	}
}

// check compares one line with those before it and with the patterns.
func (l *linter) check(one *lintLine) {
	l.weakKey(one)
	if one.Marker != knownhosts.MarkerRevoked {
		l.revokedKey(one)
	}
	if one.Pattern {
		l.duplicatePattern(one)
		return
	}
	if l.duplicate(one) || l.shadowed(one) {
		return
	}
	if one.Marker == knownhosts.MarkerNone {
		l.conflict(one)
	}
}

func (l *linter) report(one *lintLine, kind Kind, other *lintLine, format string, args ...any) {
	f := Finding{File: one.file, Line: one.Number, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	if other != nil {
		f.Other = other.where()
	}
	l.findings = append(l.findings, f)
}

// weakKey reports keys that OpenSSH has given up or soon may: DSA (off since 7.0), and RSA sizes
// below those of NIST SP 800-57 for today (2048 bits) and beyond 2030 (3072 bits).
func (l *linter) weakKey(one *lintLine) {
	if one.Marker == knownhosts.MarkerRevoked {
		return
	}
	//lint:ignore SA1019 the point is to find such keys
	if one.key.Type() == ssh.InsecureKeyAlgoDSA {
		l.report(one, weakKey, nil, "DSA key; give the host an ed25519 key")
		return
	}
	bits := knownhosts.RSABits(one.key)
	switch {
	case bits == 0 || bits >= 3072:
	case bits < 2048:
		l.report(one, weakKey, nil, "RSA key of %d bits; give the host an ed25519 key", bits)
	default:
		l.report(one, shortKey, nil, "RSA key of %d bits; 3072 or an ed25519 key last longer", bits)
	}
}

// revokedKey reports a key that a @revoked line forbids for one of its names.
func (l *linter) revokedKey(one *lintLine) {
	for _, revoked := range l.revoked[one.blob] {
		for _, name := range one.names {
			if revoked.Hosts == one.Hosts || slices.Contains(revoked.names, name) || revoked.Pattern && revoked.Covers(name) {
				l.report(one, revokedKey, revoked, "the key is revoked for %s; remove this line", name)
				return
			}
		}
	}
}

// duplicate reports a line that earlier lines repeat completely, and remembers its new parts.
func (l *linter) duplicate(one *lintLine) bool {
	var earlier *lintLine
	said := 0
	for _, name := range one.names {
		c := claim{one.Marker, name, one.blob}
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
	l.report(one, duplicate, earlier, "an earlier line has the same key for %s", one.label())
	return true
}

// duplicatePattern is duplicate for a host field with patterns, as a whole.
func (l *linter) duplicatePattern(one *lintLine) {
	c := claim{one.Marker, wildcard.Lower(one.Hosts), one.blob}
	if before := l.first[c]; before != nil {
		l.report(one, duplicate, before, "an earlier line has the same key for %s", one.label())
		return
	}
	l.first[c] = one
}

// shadowed reports a line whose names a pattern with the same key covers.
func (l *linter) shadowed(one *lintLine) bool {
	for _, pattern := range l.patterns[one.blob] {
		covers := func(name string) bool { return pattern.Covers(name) }
		if pattern.Marker == one.Marker && !slices.ContainsFunc(one.names, func(name string) bool { return !covers(name) }) {
			l.report(one, shadowed, pattern, "%s has the same key and covers %s", pattern.Hosts, one.label())
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
			l.report(one, conflict, before, "another %s key for %s; ssh accepts both, so remove the one that is no longer in use", one.key.Type(), one.label())
			return
		}
	}
}

// label names the hosts of a line in a message.
func (l *lintLine) label() string {
	if l.Hashed() && strings.HasPrefix(l.names[0], "|") {
		return "the hashed name"
	}
	if l.Hashed() {
		return l.names[0]
	}
	return l.Hosts
}
