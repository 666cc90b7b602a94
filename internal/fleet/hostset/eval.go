package hostset

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
)

// evaluator expands one expression. Each group is evaluated once and kept, so that groups of groups
// cannot multiply the work.
type evaluator struct {
	opt    Options
	source string              // source of the group whose sets are being evaluated: they may omit it
	groups map[string][]string // by the text after @
	busy   map[string]bool     // groups being evaluated, to find circles
	known  []string            // memo of the names that * selects from
}

// ordered are names in the order in which they were written, each once.
type ordered struct {
	list []string
	has  map[string]bool
	max  int
}

func (e *evaluator) none() *ordered { return &ordered{has: map[string]bool{}, max: e.opt.Max} }

// add adds names, whose text is for messages.
func (o *ordered) add(text string, names ...string) error {
	for _, name := range names {
		if !o.has[name] {
			o.has[name] = true
			o.list = append(o.list, name)
		}
	}
	if len(o.list) > o.max {
		return syntaxError(text, "more than %d names", o.max)
	}
	return nil
}

// expression evaluates a whole text.
func (e *evaluator) expression(text string) ([]string, error) {
	terms, err := split(text)
	if err != nil {
		return nil, err
	}
	left := e.none()
	for _, t := range terms {
		right, err := e.operand(t.text)
		if err != nil {
			return nil, err
		}
		if t.op != ',' {
			left, right = e.combine(t.op, left, right)
		}
		if err := left.add(text, right...); err != nil {
			return nil, err
		}
	}
	return left.list, nil
}

// combine applies ! & or ^: it returns the part of the left that stays, and the additions of the
// right.
func (e *evaluator) combine(op byte, left *ordered, right []string) (kept *ordered, more []string) {
	in := map[string]bool{}
	for _, name := range right {
		in[name] = true
	}
	kept = e.none()
	for _, name := range left.list {
		if in[name] == (op == '&') {
			kept.has[name] = true
			kept.list = append(kept.list, name)
		}
	}
	if op == '^' {
		more = slices.DeleteFunc(slices.Clone(right), func(name string) bool { return left.has[name] })
	}
	return kept, more
}

// operand evaluates one name, pattern, wildcard or group.
func (e *evaluator) operand(text string) ([]string, error) {
	if isPlain(text) {
		return []string{text}, nil
	}
	group, isGroup := strings.CutPrefix(text, "@")
	p, err := parsePattern(group, nodeset)
	if err != nil {
		return nil, err
	}
	if n := p.size(); n > int64(e.opt.Max) {
		return nil, syntaxError(text, "more than %d names", e.opt.Max)
	}
	meaning := e.wildcard
	switch {
	case isGroup:
		meaning = e.group
	case !strings.ContainsAny(text, "*?"):
		return slices.Collect(p.names()), nil
	}
	all := e.none()
	for name := range p.names() {
		list, err := meaning(name)
		if err == nil {
			err = all.add(text, list...)
		}
		if err != nil {
			return nil, err
		}
	}
	return all.list, nil
}

// group expands @name; name may be source:group and may hold wildcards.
func (e *evaluator) group(name string) ([]string, error) {
	source, group, found := strings.Cut(name, ":")
	if !found {
		source, group = e.source, name
	}
	if e.opt.Groups == nil {
		return nil, &SyntaxError{"@" + name, ErrNoGroups.Error(), ErrNoGroups}
	}
	if group == "" {
		return nil, syntaxError("@"+name, "the group has no name")
	}
	if !strings.ContainsAny(group, "*?") {
		return e.members(source, group)
	}
	groups, err := e.opt.Groups.Names(source)
	if err != nil {
		return nil, err
	}
	all, matched := e.none(), false
	for _, candidate := range groups {
		if !wildcard.Match(candidate, group) {
			continue
		}
		matched = true
		list, err := e.members(source, candidate)
		if err != nil {
			return nil, err
		}
		if err := all.add("@"+name, list...); err != nil {
			return nil, err
		}
	}
	if !matched {
		return nil, syntaxError("@"+name, "no group has such a name")
	}
	return all.list, nil
}

// members evaluates a group once.
func (e *evaluator) members(source, group string) ([]string, error) {
	key := source + ":" + group
	if list, ok := e.groups[key]; ok {
		return list, nil
	}
	name := "@" + strings.TrimPrefix(key, ":")
	if e.busy[key] {
		return nil, syntaxError(name, "the group contains itself")
	}
	e.busy[key] = true
	defer delete(e.busy, key)
	texts, err := e.opt.Groups.Group(source, group)
	if err != nil {
		return nil, err
	}
	within, all := *e, e.none()
	within.source = source
	for _, text := range texts {
		list, err := within.expression(text)
		if err == nil {
			err = all.add(text, list...)
		}
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", name, err)
		}
	}
	e.groups[key] = all.list
	return all.list, nil
}

// wildcard returns the known names that match.
func (e *evaluator) wildcard(glob string) ([]string, error) {
	known, err := e.knownNames()
	if err != nil {
		return nil, err
	}
	matching := slices.DeleteFunc(slices.Clone(known), func(s string) bool { return !wildcard.Match(s, glob) })
	if len(matching) == 0 && !e.opt.emptyGlobOK {
		return nil, syntaxError(glob, "no known name matches; names come from ssh_config, groups and inventories")
	}
	return matching, nil
}

// knownNames returns the injected names, or else the members of all groups.
func (e *evaluator) knownNames() ([]string, error) {
	if e.known != nil {
		return e.known, nil
	}
	var err error
	switch {
	case e.opt.Known != nil:
		e.known, err = e.opt.Known()
	case e.opt.Groups != nil:
		top := *e
		top.source = ""
		e.known, err = top.group("*")
	}
	return e.known, err
}
