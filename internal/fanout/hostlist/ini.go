package hostlist

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fleet/hostset"
)

// childLine matches a child group, optionally followed by a comment.
var childLine = wildcard.Regexp(`^([^:\]\s]+)\s*(?:#.*)?$`)

// iniReader reads an inventory in Ansible's INI form, line by line.
type iniReader struct {
	inv     *Inventory
	group   *group
	section string          // hosts, vars or children
	named   map[string]int  // groups that were only referred to, by the line that did
	made    map[string]bool // groups that have a section of hosts or children
}

// readINI adds the content of an INI inventory; errors name the line.
func (v *Inventory) readINI(name, text string) error {
	r := iniReader{inv: v, group: v.group(ungrouped), section: "hosts", named: map[string]int{}, made: map[string]bool{}}
	for _, known := range v.order {
		r.made[known] = true
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if err := r.line(line, number); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	for _, group := range sortedKeys(r.named) {
		if !r.made[group] {
			return fmt.Errorf("%s:%d: there is no group %q", name, r.named[group], group)
		}
	}
	return nil
}

func (r *iniReader) line(line string, number int) error {
	if line[0] == '[' {
		if head, ok := sectionOf(line); ok {
			return r.begin(head, number)
		}
	}
	switch r.section {
	case "children":
		child := childLine().FindStringSubmatch(line)
		if child == nil {
			return fmt.Errorf("want the name of a group, not %q", line)
		}
		r.named[child[1]] = number
		return r.inv.addChild(r.group.name, child[1])
	case "vars":
		key, text, ok := strings.Cut(line, "=")
		if !ok {
			return errors.New("want name=value")
		}
		r.group.vars.set(strings.TrimSpace(key), literal(strings.TrimSpace(text)))
		return nil
	}
	return r.hosts(line)
}

// sectionOf returns the text in the brackets of [name] or [name:kind], which a comment may follow.
// It returns false for anything else that begins with a bracket: an address or a range.
func sectionOf(line string) (string, bool) {
	body, rest, ok := strings.Cut(line[1:], "]")
	rest = strings.TrimSpace(rest)
	return body, ok && body != "" && (rest == "" || rest[0] == '#')
}

func (r *iniReader) begin(head string, number int) error {
	name, kind, ok := strings.Cut(head, ":")
	if !ok {
		kind = "hosts"
	}
	if !slices.Contains([]string{"hosts", "vars", "children"}, kind) || strings.ContainsFunc(name, unicode.IsSpace) {
		return fmt.Errorf("[%s]: a section is [group], [group:vars] or [group:children], without blanks", head)
	}
	r.group, r.section = r.inv.group(name), kind
	if kind == "vars" {
		if r.named[name] == 0 {
			r.named[name] = number
		}
	} else {
		r.made[name] = true
	}
	return nil
}

// hosts reads a line such as `web[01:20]:2222 ansible_user=root # comment`.
func (r *iniReader) hosts(line string) error {
	words, err := shell.SplitComments(line)
	if err != nil || len(words) == 0 {
		return err
	}
	known := vars{}
	for _, word := range words[1:] {
		key, text, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("want name=value after the host, not %q", word)
		}
		known.set(key, literal(text))
	}
	return r.inv.addHosts(r.group, words[0], known)
}

// addHosts adds the hosts of a pattern such as web[1:9]:22 with their variables.
func (v *Inventory) addHosts(g *group, pattern string, known vars) error {
	pattern, port := splitPort(pattern)
	names, err := hostset.Ranges(pattern, brackets, hostset.DefaultMax-len(v.names))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := v.addNamed(g, name, port, known); err != nil {
			return err
		}
	}
	return nil
}

// addNamed adds a host with its variables. A port applies only to a new host, as in Ansible.
func (v *Inventory) addNamed(g *group, name, port string, known vars) error {
	isNew := v.hosts[name] == nil
	m, err := v.addHost(g, name)
	if err != nil {
		return err
	}
	if isNew && port != "" {
		m.vars.set(portVars[0], value{text: port})
	}
	maps.Copy(m.vars, known)
	return nil
}

// splitPort takes the port off host:port and [address]:port. It is not host.SplitPort, because
// colons inside brackets belong to ranges, and without a port any pattern is valid.
func splitPort(pattern string) (name, port string) {
	colon := strings.LastIndexByte(pattern, ':')
	if colon < 0 || pattern[colon+1:] == "" || strings.Trim(pattern[colon+1:], "0123456789") != "" {
		return pattern, ""
	}
	name, port = pattern[:colon], pattern[colon+1:]
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		return name[1 : len(name)-1], port
	}
	outside := 0
	depth := 0
	for _, r := range pattern {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ':' && depth == 0:
			outside++
		}
	}
	if outside != 1 || depth != 0 {
		return pattern, ""
	}
	return name, port
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// brackets reads begin:end or begin:end:step, of numbers such as web[01:20:2] or of letters such as
// db[a:c].
func brackets(body string) ([]hostset.Span, error) {
	bounds := strings.Split(body, ":")
	s := hostset.Span{Step: 1}
	if len(bounds) == 3 {
		step, err := strconv.ParseUint(bounds[2], 10, 32)
		if err != nil || step < 1 {
			return nil, fmt.Errorf("the step %q is not a number above 0", bounds[2])
		}
		s.Step, bounds = step, bounds[:2]
	}
	if len(bounds) != 2 || bounds[1] == "" {
		return nil, errors.New("a range is [begin:end] or [begin:end:step]")
	}
	var err1, err2 error
	if a, b := strings.Index(letters, bounds[0]), strings.Index(letters, bounds[1]); len(bounds[0]) == 1 && len(bounds[1]) == 1 && a >= 0 && b >= 0 {
		s.Lo, s.Hi, s.Letters = uint64(a), uint64(b), letters
	} else {
		s.Lo, err1 = strconv.ParseUint("0"+bounds[0], 10, 62)
		s.Hi, err2 = strconv.ParseUint(bounds[1], 10, 62)
	}
	if len(bounds[0]) > 1 && bounds[0][0] == '0' {
		s.Width = len(bounds[0])
	}
	switch {
	case err1 != nil || err2 != nil:
		return nil, errors.New("a range is of numbers or single letters")
	case s.Width > 0 && s.Width != len(bounds[1]):
		return nil, errors.New("both ends need the same number of digits when zeros lead")
	case s.Lo > s.Hi:
		return nil, errors.New("the range runs backwards")
	}
	return []hostset.Span{s}, nil
}

// Values of the INI form are literals of Python where possible, optionally followed by a comment,
// and otherwise unchanged text, # and all (ast.literal_eval in Ansible's plugin "ini").
var (
	literalText   = wildcard.Regexp(`^(?:'([^'\\]*)'|"([^"\\]*)")\s*(?:#.*)?$`)
	literalNumber = wildcard.Regexp(`^(0|[1-9](?:_?[0-9])*|0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)\s*(?:#.*)?$`)
	literalNone   = wildcard.Regexp(`^None\s*(?:#.*)?$`)
)

// literal reads the value of a variable.
func literal(text string) value {
	if m := literalText().FindStringSubmatch(text); m != nil {
		return value{text: m[1] + m[2]}
	}
	if m := literalNumber().FindStringSubmatch(text); m != nil {
		if n, ok := new(big.Int).SetString(m[1], 0); ok {
			return value{text: n.String()}
		}
	}
	if literalNone().MatchString(text) {
		return value{null: true}
	}
	return value{text: text}
}
