package dropin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/sys/file"
)

// genders is a genders file: lines "node[1-3],other attribute,attribute=value".
type genders struct {
	nodes []string
	attrs map[string]map[string]string // by node; an attribute without a value has ""
}

func readGenders(name string) (*genders, error) {
	data, err := file.ReadFile(name, file.List)
	if err != nil {
		return nil, &pdshError{name + ": error opening genders file"}
	}
	g := &genders{attrs: map[string]map[string]string{}}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if err := g.line(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return g, nil
}

func (g *genders) line(fields []string) error {
	switch {
	case len(fields) == 0:
		return nil
	case len(fields) > 2:
		return &pdshError{"genders file is corrupted"}
	}
	for _, item := range splitList(fields[0]) {
		names, err := expandList(item)
		if err != nil {
			return err
		}
		for _, name := range names {
			if g.attrs[name] == nil {
				g.attrs[name] = map[string]string{}
				g.nodes = append(g.nodes, name)
			}
			if len(fields) == 2 {
				for attr := range strings.SplitSeq(fields[1], ",") {
					key, value, _ := strings.Cut(attr, "=")
					g.attrs[name][key] = value
				}
			}
		}
	}
	return nil
}

// query returns the nodes that an expression selects: attributes, , and || for or, && for and, --
// for but not, ~ for not, all from left to right, and parentheses.
func (g *genders) query(text string) ([]string, error) {
	q := &gendersQuery{genders: g, rest: strings.ReplaceAll(text, ",", "||")}
	set, err := q.expression()
	if err == nil && q.rest != "" {
		err = errQuery
	}
	if err != nil {
		return nil, &pdshError{fmt.Sprintf("genders query %q: %s", text, err)}
	}
	return slices.DeleteFunc(slices.Clone(g.nodes), func(n string) bool { return !set[n] }), nil
}

//lint:ignore ST1005 the words of pdsh
var errQuery = errors.New("Query improperly formatted")

type gendersQuery struct {
	*genders
	rest     string
	operands int // so far
}

// maxOperands bounds a query.
const maxOperands = 1000

func (q *gendersQuery) expression() (map[string]bool, error) {
	set, err := q.operand()
	for err == nil {
		operator := ""
		for _, o := range []string{"||", "&&", "--"} {
			if strings.HasPrefix(q.rest, o) {
				operator = o
			}
		}
		if operator == "" {
			return set, nil
		}
		q.rest = q.rest[2:]
		var other map[string]bool
		if other, err = q.operand(); err == nil {
			set = q.combine(set, other, operator)
		}
	}
	return nil, err
}

func (q *gendersQuery) combine(a, b map[string]bool, operator string) map[string]bool {
	set := map[string]bool{}
	for _, n := range q.nodes {
		switch operator {
		case "||":
			set[n] = a[n] || b[n]
		case "&&":
			set[n] = a[n] && b[n]
		default:
			set[n] = a[n] && !b[n]
		}
	}
	return set
}

func (q *gendersQuery) operand() (map[string]bool, error) {
	if q.operands++; q.operands > maxOperands {
		return nil, errQuery
	}
	if rest, found := strings.CutPrefix(q.rest, "~"); found {
		q.rest = rest
		set, err := q.operand()
		none := map[string]bool{}
		for _, n := range q.nodes {
			none[n] = !set[n]
		}
		return none, err
	}
	if rest, found := strings.CutPrefix(q.rest, "("); found {
		q.rest = rest
		set, err := q.expression()
		if err == nil && !strings.HasPrefix(q.rest, ")") {
			err = errQuery
		}
		if err == nil {
			q.rest = q.rest[1:]
		}
		return set, err
	}
	end := len(q.rest)
	for _, stop := range []string{"||", "&&", "--", ")"} {
		if i := strings.Index(q.rest, stop); i >= 0 {
			end = min(end, i)
		}
	}
	attr := q.rest[:end]
	q.rest = q.rest[end:]
	if attr == "" {
		return nil, errQuery
	}
	return q.having(attr), nil
}

func (g *genders) having(attr string) map[string]bool {
	key, value, hasValue := strings.Cut(attr, "=")
	set := map[string]bool{}
	for _, n := range g.nodes {
		have, ok := g.attrs[n][key]
		set[n] = ok && (!hasValue || have == value)
	}
	return set
}
