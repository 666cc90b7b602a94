package hostset

import (
	"strings"
)

// term is one operand with the operator before it; the first has ','.
type term struct {
	op   byte // one of , ! & ^
	text string
}

const operators = ",!&^"

// split cuts an expression into operands. Operators have equal rank and apply from left to right,
// as in nodeset(1); blanks between two operands mean a comma.
func split(text string) ([]term, error) {
	s := splitter{whole: text, op: ','}
	for _, r := range text {
		if err := s.next(r); err != nil {
			return nil, err
		}
	}
	return s.finish()
}

type splitter struct {
	whole    string
	terms    []term
	op       byte            // operator before the operand being read
	explicit bool            // op was written, so an operand must follow
	operand  strings.Builder // the part of it that has been read
	inside   bool            // between [ and ]
}

func (s *splitter) next(r rune) error {
	switch {
	case s.inside:
		s.inside = r != ']'
		if r == '[' {
			return syntaxError(s.whole, "[ inside [ ]")
		}
	case r == '[':
		s.inside = true
	case r == ']':
		return syntaxError(s.whole, "] without [")
	case strings.ContainsRune(operators, r):
		return s.operator(byte(r))
	case strings.ContainsRune(" \t\r\n", r):
		s.push()
		return nil
	}
	s.operand.WriteRune(r)
	return nil
}

func (s *splitter) operator(op byte) error {
	s.push()
	if len(s.terms) == 0 || s.explicit {
		return syntaxError(s.whole, "nothing before %q", op)
	}
	s.op, s.explicit = op, true
	return nil
}

// push ends the operand, if one was begun.
func (s *splitter) push() {
	if s.operand.Len() == 0 {
		return
	}
	s.terms = append(s.terms, term{op: s.op, text: s.operand.String()})
	s.operand.Reset()
	s.op, s.explicit = ',', false
}

func (s *splitter) finish() ([]term, error) {
	s.push()
	switch {
	case s.inside:
		return nil, syntaxError(s.whole, "[ without ]")
	case s.explicit:
		return nil, syntaxError(s.whole, "nothing after %q", s.op)
	}
	return s.terms, nil
}
