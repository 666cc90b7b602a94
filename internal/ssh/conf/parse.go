package conf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sshpace/internal/sys/file"
)

// Deepest nesting of Include (readconf.c READCONF_MAX_DEPTH).
const maxIncludeDepth = 16

var errTooDeep = errors.New("too many recursive includes")

// ErrPermissions is the error of a file that others could have written.
var ErrPermissions = errors.New("bad owner or permissions; only its owner may be able to write it (chmod go-w)")

// stmt is one line that sets something.
type stmt struct {
	key   Keyword
	value Value
	name  string // of an unknown keyword
	line  string // the original text, for keywords that only ssh can check
	seq   int    // place in the order of reading
	class identityClass
}

// identityClass separates identity files that ssh compares for duplicates.
type identityClass uint8

const (
	fromSystemFile identityClass = iota
	fromUserFile
	fromIdentityFlag
)

// scope is a Host or Match line with everything below it: statements, and the scopes of the files
// that are included there. Scope 0 is always active.
type scope struct {
	parent int
	hosts  []hostPattern // of a Host line
	match  []criterion   // of a Match line
	shared bool          // includes files, so its state is asked for more than once
	origin Origin
}

// segment is a run of statements of one scope without an Include between.
type segment struct {
	scope int
	stmts []stmt
}

// reader reads files into a Config.
type reader struct {
	ctx    context.Context // of Load
	config *Config
	seq    int
}

// place is the position of the reader.
type place struct {
	path   string
	line   int
	user   bool // a file of the user, not of the system
	parent int  // scope that includes the file
	scope  int  // scope of the current line
	depth  int
}

func (p *place) origin() Origin { return Origin{FromFile, p.path, p.line} }

// file reads one file. check refuses files that others could have written.
func (r *reader) file(p place, check bool) error {
	text, err := r.text(p.path, check)
	if err != nil {
		return err
	}
	if p.depth > maxIncludeDepth {
		return &ConfigError{Origin{FromFile, p.path, 0}, errTooDeep}
	}
	p.scope = p.parent
	for line := range strings.Lines(text) {
		p.line++
		if err := r.line(&p, line); err != nil {
			return wrapError(p.origin(), err)
		}
	}
	return nil
}

func wrapError(at Origin, err error) error {
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return err
	}
	return &ConfigError{at, err}
}

// Permission bits that let others write.
const writableByOthers = 0o022

// text returns the content of a file.
func (r *reader) text(path string, check bool) (string, error) {
	return file.InTime(r.ctx, path, func() (string, error) { return readFile(path, r.config.system.UID, check) })
}

func readFile(path string, uid int, check bool) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if check && !trusted(info, uid) {
		return "", &ConfigError{Origin{FromFile, path, 0}, ErrPermissions}
	}
	if info.IsDir() {
		return "", nil // ssh reads nothing from a directory that a glob found
	}
	text, err := file.ReadAll(f, path, file.Config)
	return string(text), err
}

// trusted reports whether the file belongs to root or the user, and only the owner can write it
// (readconf.c:read_config_file_depth).
func trusted(info fs.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	owned := !ok || stat.Uid == 0 || int(stat.Uid) == uid
	return owned && info.Mode()&writableByOthers == 0
}

// line reads one line of a file.
func (r *reader) line(p *place, line string) error {
	name, rest := splitLine(line)
	if name == "" {
		return nil
	}
	in, err := r.input(name, rest)
	if err != nil {
		return err
	}
	switch byName[name] {
	case kwHost:
		return r.host(p, in)
	case kwMatch:
		return r.match(p, in)
	case kwInclude:
		return r.include(p, in)
	}
	class := fromSystemFile
	if p.user {
		class = fromUserFile
	}
	return r.statement(p.scope, name, in, stmt{value: Value{Origin: p.origin()}, class: class, line: line})
}

func (r *reader) input(name, rest string) (input, error) {
	if rest == "" {
		return input{}, fmt.Errorf("no argument after keyword %q", name)
	}
	args, err := splitWords(rest, true)
	return input{args, rest, r.config.system.Getenv, r.config.version()}, err
}

// statement checks one setting and adds it to its scope.
func (r *reader) statement(scope int, name string, in input, s stmt) error {
	if retired[name] || r.config.defaults.lacks(byName[name]) {
		return nil
	}
	s.seq = r.seq
	r.seq++
	k := byName[name]
	s.name, s.key, s.value.Args = name, k, in.args
	if !k.Text() {
		if k <= kwInclude || !r.config.defaults.knows(k) {
			r.config.unknown = append(r.config.unknown, s)
			return nil
		}
		words, err := specs[k].read(in)
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		if len(words) == 0 {
			return nil
		}
		s.value.Args = words
	}
	if k.Text() || specs[k].asked {
		r.config.unchecked = append(r.config.unchecked, s)
	}
	r.add(scope, s)
	return nil
}

func (r *reader) add(scope int, s stmt) {
	segments := &r.config.segments
	if n := len(*segments); n == 0 || (*segments)[n-1].scope != scope {
		*segments = append(*segments, segment{scope: scope})
	}
	last := &(*segments)[len(*segments)-1]
	last.stmts = append(last.stmts, s)
}

// open starts a new scope, whose parent is the one with the Include that is being read.
func (r *reader) open(p *place, s scope) {
	s.parent, s.origin = p.parent, p.origin()
	r.config.scopes = append(r.config.scopes, s)
	p.scope = len(r.config.scopes) - 1
}

func (r *reader) host(p *place, in input) error {
	patterns := make([]hostPattern, len(in.args))
	for i, arg := range in.args {
		if arg == "" {
			return errors.New("empty argument of Host")
		}
		patterns[i] = parseHostPattern(arg)
	}
	r.open(p, scope{hosts: patterns})
	return nil
}

func (r *reader) match(p *place, in input) error {
	criteria, err := parseMatch(in)
	if err != nil {
		return fmt.Errorf("in Match: %w", err)
	}
	r.open(p, scope{match: criteria})
	for _, c := range criteria {
		asks := c.kind == byFinal && !(c.negate && in.version.AtLeast(notFinal))
		r.config.wantFinal = r.config.wantFinal || asks
		if c.kind == byFinal && c.negate && in.version == (Version{}) {
			r.config.gaps = append(r.config.gaps, Gap{Reason: "a second pass for Match !final depends on the release of ssh", Origin: p.origin()})
		}
	}
	return nil
}

func (r *reader) include(p *place, in input) error {
	for _, arg := range in.args {
		pattern, err := r.includePattern(p, arg)
		if err != nil {
			return err
		}
		r.config.scopes[p.scope].shared = true
		for _, path := range glob(pattern) {
			err := r.file(place{path: path, user: p.user, parent: p.scope, depth: p.depth + 1}, true)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// includePattern anchors the argument of Include: relative paths start in ~/.ssh for files of the
// user, and next to the system's file for others. As in glob(3), "~" is $HOME here, unlike
// everywhere else.
func (r *reader) includePattern(p *place, arg string) (string, error) {
	if arg == "" {
		return "", errors.New("empty argument of Include")
	}
	system := &r.config.system
	if r.config.version().AtLeast(includeTokens) {
		var err error
		if arg, err = expand(arg, r.includeToken(p), system.Getenv); err != nil {
			return "", err
		}
	}
	switch {
	case arg[0] == '~' && !p.user:
		return "", fmt.Errorf("bad include path %s", arg)
	case arg[0] == '/':
		return arg, nil
	case arg[0] != '~' && !p.user:
		return filepath.Join(system.configDir(), arg), nil
	case arg[0] != '~':
		arg = "~/.ssh/" + arg
	}
	home := *system
	if h, ok := system.getenv("HOME"); ok && h != "" {
		home.Home = h
	}
	path, err := home.tilde(arg)
	if err != nil {
		return arg, nil // glob(3) then finds no such file, which is not a mistake
	}
	return path, nil
}

// includeToken expands the tokens that are the same for all hosts. A file that depends on the host
// cannot be read once for all: that is a Gap.
func (r *reader) includeToken(p *place) tokenFunc {
	c := connection{system: &r.config.system}
	return func(t byte) (string, bool) {
		if strings.IndexByte(tokensAboutHost, t) >= 0 {
			r.config.gaps = append(r.config.gaps, Gap{"Include depends on the host", p.origin()})
			return "%" + string(t), true
		}
		return c.token(t)
	}
}

// glob returns the files that match, in byte order, as glob(3) does in the C locale: wildcards
// match no leading dot, [!a] negates.
func glob(pattern string) []string {
	paths, _ := filepath.Glob(strings.ReplaceAll(pattern, "[!", "[^")) // a malformed pattern matches no file
	wanted := strings.Split(pattern, "/")
	paths = slices.DeleteFunc(paths, func(path string) bool {
		for i, part := range strings.Split(path, "/") {
			if i < len(wanted) && strings.HasPrefix(part, ".") && !strings.HasPrefix(wanted[i], ".") {
				return true
			}
		}
		return false
	})
	slices.Sort(paths)
	return paths
}
