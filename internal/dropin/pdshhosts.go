package dropin

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
)

// pdshTargets are the options that select hosts.
type pdshTargets struct {
	getenv func(string) string
	stdin  io.Reader

	given, excluded     []string
	genders, notGenders []string
	gendersFile         string
	all, every          bool
}

// pdshHost is a host and the module that reaches it.
type pdshHost struct {
	host.Host
	rcmd string
}

var errNoHosts = &pdshError{"no remote hosts specified"}

// hosts works out the list.
func (t *pdshTargets) hosts(p *pdsh) ([]pdshHost, error) {
	if t.usesGenders() && (t.all || t.every) && len(t.genders) > 0 {
		return nil, &pdshError{"Do not specify -A or -a with -g"}
	}
	c := &collection{pdsh: p, targets: t}
	for _, text := range t.given {
		if err := c.take(text, false); err != nil {
			return nil, err
		}
	}
	for _, text := range t.excluded {
		if err := c.take(text, true); err != nil {
			return nil, err
		}
	}
	if t.usesGenders() {
		if err := c.byGenders(); err != nil {
			return nil, err
		}
	} else if file, set := t.getenv("WCOLL"), len(t.given) > 0; file != "" && !set {
		if err := c.file(file, false); err != nil {
			return nil, err
		}
	}
	list := c.left()
	if len(list) == 0 {
		return nil, errNoHosts
	}
	for _, h := range list {
		if err := h.Check(); err != nil {
			return nil, &pdshError{fmt.Sprintf("%q: %s", h.Name, err)}
		}
	}
	return list, nil
}

func (t *pdshTargets) usesGenders() bool {
	return t.all || t.every || len(t.genders) > 0 || len(t.notGenders) > 0
}

// collection is a list that is being worked out.
type collection struct {
	pdsh    *pdsh
	targets *pdshTargets
	hosts   []pdshHost
	out     []string         // names to leave out
	keep    []*regexp.Regexp // all of which must match
	drop    []*regexp.Regexp // none of which may
}

// left returns the rest of the list. Of a name that is listed twice, an exclusion removes one, as
// in the original.
func (c *collection) left() []pdshHost {
	out := map[string]int{}
	for _, name := range c.out {
		out[name]++
	}
	return slices.DeleteFunc(c.hosts, func(h pdshHost) bool {
		if out[h.Name] > 0 {
			out[h.Name]--
			return true
		}
		matches := func(r *regexp.Regexp) bool { return r.MatchString(h.Name) }
		return slices.ContainsFunc(c.drop, matches) || slices.ContainsFunc(c.keep, func(r *regexp.Regexp) bool { return !matches(r) })
	})
}

// take adds an argument of -w or, for excluded hosts, of -x.
func (c *collection) take(text string, out bool) error {
	if text == "-" && !out {
		data, err := file.ReadAll(c.targets.stdin, "standard input", file.List)
		if err != nil {
			return err
		}
		return c.lines(data, false)
	}
	for _, item := range splitList(text) {
		rest, minus := strings.CutPrefix(item, "-")
		if err := c.item(rest, out || minus); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) item(item string, out bool) error {
	switch {
	case strings.HasPrefix(item, "^"):
		return c.file(item[1:], out)
	case strings.HasPrefix(item, "/"):
		pattern, err := regexp.CompilePOSIX(strings.TrimSuffix(item[1:], "/"))
		if err != nil {
			return &pdshError{fmt.Sprintf("Error matching pattern %q: %s", strings.TrimSuffix(item[1:], "/"), err)}
		}
		if out {
			c.drop = append(c.drop, pattern)
		} else {
			c.keep = append(c.keep, pattern)
		}
		return nil
	}
	if out { // a user before a name is a part of it there, as in the original
		names, err := expandList(item)
		c.out = append(c.out, names...)
		return err
	}
	rcmd, user := c.pdsh.Rcmd, c.pdsh.User
	if module, rest, found := strings.Cut(item, ":"); found {
		rcmd, item = module, rest
	}
	if name, rest, found := strings.Cut(item, "@"); found {
		user, item = name, rest
	}
	names, err := expandList(item)
	if err != nil {
		return err
	}
	if err := checkRcmd(rcmd); err != nil {
		return err
	}
	for _, name := range names {
		c.hosts = append(c.hosts, pdshHost{host.Host{Name: name, User: user}, rcmd})
	}
	return nil
}

func checkRcmd(name string) error {
	switch name {
	case "ssh", "exec":
		return nil
	case "rsh", "mrsh", "krb4", "xcpu":
		return &pdshError{fmt.Sprintf("rcmd module %q is not there: use ssh, which encrypts and checks hosts", name)}
	}
	return bare{&pdshError{fmt.Sprintf("No such rcmd module %q", name)}}
}

// file reads hosts, one list a line; # begins a comment.
func (c *collection) file(name string, out bool) error {
	data, err := file.ReadFile(name, file.List)
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return &pdshError{name + ": " + fault.Strerror(errno)}
	}
	if err != nil {
		return err
	}
	return c.lines(data, out)
}

func (c *collection) lines(data []byte, out bool) error {
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		for _, item := range splitList(line) {
			if err := c.item(item, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// splitList cuts at commas and blanks outside of brackets.
func splitList(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r')
	})
}

// maxRange is the most hosts of a range; the original stops there.
const maxRange = 16384

// expandList expands prefix[n-m,...]suffix, for any number of brackets.
func expandList(text string) ([]string, error) {
	names, err := hostset.Ranges(text, pdshBrackets, maxRange*16)
	if own, ok := errors.AsType[*pdshError](err); ok {
		return nil, own
	}
	if err != nil {
		return nil, &pdshError{fmt.Sprintf("Invalid host list: `%s'", text)}
	}
	return names, nil
}

// pdshBrackets reads 08-10, which is 08, 09 and 10.
func pdshBrackets(body string) (spans []hostset.Span, _ error) {
	for part := range strings.SplitSeq(body, ",") {
		first, last, found := strings.Cut(part, "-")
		if !found {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 63)
		hi, err2 := strconv.ParseUint(last, 10, 63)
		switch {
		case err1 != nil || err2 != nil || hi < lo:
			return nil, &pdshError{"Invalid range: `" + part + "'"}
		case hi-lo >= maxRange:
			return nil, &pdshError{"Too many hosts in range `" + part + "'"}
		}
		spans = append(spans, hostset.Span{Lo: lo, Hi: hi, Step: 1, Width: len(first)})
	}
	return spans, nil
}

// byGenders adds the nodes with genders attributes, or removes the others from the list.
func (c *collection) byGenders() error {
	t := c.targets
	name := t.gendersFile
	if name == "" {
		name = t.getenv("PDSH_GENDERS_FILE")
	}
	if name == "" {
		name = "genders"
	}
	if !filepath.IsAbs(name) {
		dir := t.getenv("PDSH_GENDERS_DIR")
		if dir == "" {
			dir = "/etc"
		}
		name = filepath.Join(dir, name)
	}
	g, err := readGenders(name)
	if err != nil {
		return err
	}
	switch {
	case t.every || t.all:
		c.add(g.nodes)
	case len(t.genders) > 0 && len(t.given) == 0:
		names, err := g.query(strings.Join(t.genders, ","))
		if err != nil {
			return err
		}
		c.add(names)
	case len(t.genders) > 0:
		names, err := g.query(strings.Join(t.genders, ","))
		if err != nil {
			return err
		}
		c.hosts = slices.DeleteFunc(c.hosts, func(h pdshHost) bool { return !slices.Contains(names, h.Name) })
	}
	leave := slices.Clone(t.notGenders)
	if t.all {
		leave = append(leave, "pdsh_all_skip")
	}
	for _, query := range leave {
		names, err := g.query(query)
		if err != nil {
			return err
		}
		c.out = append(c.out, names...)
	}
	return nil
}

func (c *collection) add(names []string) {
	for _, name := range names {
		c.hosts = append(c.hosts, pdshHost{host.Host{Name: name, User: c.pdsh.User}, c.pdsh.Rcmd})
	}
}
