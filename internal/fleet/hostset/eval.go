package hostset

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
)

// evaluator expands one expression. Each group is evaluated once and kept, so
// that groups of groups cannot multiply the work.
type evaluator struct {
	opt    Options
	source string              // of the group whose sets are being evaluated: they may leave it out
	groups map[string][]string // by the text after @
	busy   map[string]bool     // groups being evaluated, to find circles
	known  []string            // memo of what * selects from
}

type names = iter.Seq2[string, error]

func fail(err error) names { return func(yield func(string, error) bool) { yield("", err) } }

// expression evaluates a whole text. Runs of unions become one sequence, so
// that a list of thousands of names does not nest thousands of calls.
func (e *evaluator) expression(text string) names {
	terms, err := split(text)
	if err != nil {
		return fail(err)
	}
	var seq names
	var run []names
	for _, t := range terms {
		if t.op == ',' {
			run = append(run, e.operand(t.text))
			continue
		}
		left := join(seq, run)
		seq, run = e.combine(t.op, left, e.operand(t.text)), nil
	}
	return join(seq, run)
}

// join yields seq and then the rest, each name once.
func join(seq names, rest []names) names {
	if seq != nil {
		rest = append([]names{seq}, rest...)
	}
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		for _, s := range rest {
			for name, err := range s {
				if seen[name] && err == nil {
					continue
				}
				seen[name] = true
				if !yield(name, err) || err != nil {
					return
				}
			}
		}
	}
}

// combine applies ! & or ^. The right side is kept in memory, the left streams.
func (e *evaluator) combine(op byte, left, right names) names {
	return func(yield func(string, error) bool) {
		list, err := collect(right, e.opt.Max)
		if err != nil {
			yield("", err)
			return
		}
		in := make(map[string]bool, len(list))
		for _, name := range list {
			in[name] = true
		}
		for name, err := range left {
			keep := in[name] == (op == '&')
			if (keep || err != nil) && !yield(name, err) || err != nil {
				return
			}
			if op == '^' {
				delete(in, name) // what remains is only on the right
			}
		}
		if op != '^' {
			return
		}
		for _, name := range list {
			if in[name] && !yield(name, nil) {
				return
			}
		}
	}
}

// operand evaluates one name, pattern, wildcard or group.
func (e *evaluator) operand(text string) names {
	if isPlain(text) {
		return func(yield func(string, error) bool) { yield(text, nil) }
	}
	group, isGroup := strings.CutPrefix(text, "@")
	p, err := parsePattern(group)
	if err != nil {
		return fail(err)
	}
	if n := p.size(); n > int64(e.opt.Max) {
		return fail(syntaxError(text, "more than %d names", e.opt.Max))
	}
	return func(yield func(string, error) bool) {
		for name := range p.names() {
			one := e.one(name, isGroup)
			for host, err := range one {
				if !yield(host, err) || err != nil {
					return
				}
			}
		}
	}
}

// one evaluates a name whose ranges are expanded.
func (e *evaluator) one(name string, isGroup bool) names {
	switch {
	case isGroup:
		return e.group(name)
	case strings.ContainsAny(name, "*?"):
		return e.wildcard(name)
	}
	return func(yield func(string, error) bool) { yield(name, nil) }
}

// group yields what @name stands for; name may be source:group and may hold
// wildcards.
func (e *evaluator) group(name string) names {
	source, group, found := strings.Cut(name, ":")
	if !found {
		source, group = e.source, name
	}
	if e.opt.Groups == nil {
		return fail(&SyntaxError{"@" + name, ErrNoGroups.Error(), ErrNoGroups})
	}
	if group == "" {
		return fail(syntaxError("@"+name, "the group has no name"))
	}
	if !strings.ContainsAny(group, "*?") {
		return e.oneGroup(source, group)
	}
	all, err := e.opt.Groups.Names(source)
	if err != nil {
		return fail(err)
	}
	var seqs []names
	for _, candidate := range all {
		if wildcard.Match(candidate, group) {
			seqs = append(seqs, e.oneGroup(source, candidate))
		}
	}
	if len(seqs) == 0 {
		return fail(syntaxError("@"+name, "no group has such a name"))
	}
	return join(nil, seqs)
}

func (e *evaluator) oneGroup(source, group string) names {
	return func(yield func(string, error) bool) {
		list, err := e.members(source, group)
		if err != nil {
			yield("", err)
			return
		}
		for _, name := range list {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// members evaluates a group once.
func (e *evaluator) members(source, group string) ([]string, error) {
	key := source + ":" + group
	if list, ok := e.groups[key]; ok {
		return list, nil
	}
	if e.busy[key] {
		return nil, syntaxError("@"+strings.TrimPrefix(key, ":"), "the group contains itself")
	}
	e.busy[key] = true
	defer delete(e.busy, key)
	texts, err := e.opt.Groups.Group(source, group)
	if err != nil {
		return nil, err
	}
	within := *e
	within.source = source
	var seqs []names
	for _, text := range texts {
		seqs = append(seqs, within.expression(text))
	}
	list, err := collect(join(nil, seqs), e.opt.Max)
	if err != nil {
		return nil, fmt.Errorf("group @%s: %w", strings.TrimPrefix(key, ":"), err)
	}
	e.groups[key] = list
	return list, nil
}

// wildcard yields the known names that match.
func (e *evaluator) wildcard(glob string) names {
	known, err := e.knownNames()
	if err != nil {
		return fail(err)
	}
	matching := slices.DeleteFunc(slices.Clone(known), func(s string) bool { return !wildcard.Match(s, glob) })
	if len(matching) == 0 && !e.opt.emptyGlobOK {
		return fail(syntaxError(glob, "no known name matches; names come from ssh_config, groups and inventories"))
	}
	return func(yield func(string, error) bool) {
		for _, name := range matching {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// knownNames are the injected names, or else the members of all groups.
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
		e.known, err = collect(top.group("*"), e.opt.Max)
	}
	return e.known, err
}

// limit ends a sequence with an error once it gives more than Max names.
func (e *evaluator) limit(text string, seq names) names {
	return func(yield func(string, error) bool) {
		count := 0
		for name, err := range seq {
			if count++; count > e.opt.Max {
				yield("", syntaxError(text, "more than %d names", e.opt.Max))
				return
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
	}
}

// collect reads a sequence of at most limit names into memory.
func collect(seq names, limit int) ([]string, error) {
	var list []string
	for name, err := range seq {
		if err != nil {
			return nil, err
		}
		if len(list) == limit {
			return nil, syntaxError(name, "the set gives more than %d names", limit)
		}
		list = append(list, name)
	}
	return list, nil
}
