package hostset

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Brackets parses the text between [ and ] in a name, for which each program has its own notation.
// No spans mean that the brackets are a part of the name.
type Brackets func(body string) ([]Span, error)

// Span is Lo, Lo+Step, ... up to Hi, written with at least Width digits.
type Span struct {
	Lo, Hi, Step uint64
	Width        int    // 0 = no padding
	Letters      string // letters to count through; "" = numbers
}

func (s Span) text(n uint64) string {
	if s.Letters != "" {
		return s.Letters[n : n+1]
	}
	return fmt.Sprintf("%0*d", s.Width, n)
}

// Ranges returns the names of a text with brackets, at most most of them, the last bracket changing
// fastest. An error is a *SyntaxError, or an error of brackets.
func Ranges(text string, brackets Brackets, most int) ([]string, error) {
	p, err := parsePattern(text, brackets)
	if err != nil {
		return nil, err
	}
	if p.size() > int64(most) {
		return nil, syntaxError(text, "more than %d names", most)
	}
	return slices.Collect(p.names()), nil
}

// pattern is a name with ranges: literal, ranges, literal, ranges, ...
type pattern []part

// part is either literal text or the numbers of one pair of brackets.
type part struct {
	literal string
	spans   []Span // nil for literal text
}

// maxDigits keeps every number and its successor inside 64 bits.
const maxDigits = 18

// parsePattern reads one operand.
func parsePattern(text string, brackets Brackets) (pattern, error) {
	var p pattern
	rest := text
	for rest != "" {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			return append(p, part{literal: rest}), nil
		}
		if open > 0 {
			p = append(p, part{literal: rest[:open]})
		}
		body, after, found := strings.Cut(rest[open+1:], "]")
		if !found {
			return nil, syntaxError(text, "[ without ]")
		}
		spans, err := brackets(body)
		if err != nil {
			return nil, &SyntaxError{Text: text, Reason: err.Error(), Err: err}
		}
		next := part{spans: spans}
		if spans == nil {
			next.literal = "[" + body + "]"
		}
		p, rest = append(p, next), after
	}
	return p, nil
}

// nodeset reads brackets as nodeset(1) does. An address, or anything with a colon, stays as it is:
// [::1]:22.
func nodeset(body string) ([]Span, error) {
	if _, err := netip.ParseAddr(body); err == nil || strings.Contains(body, ":") {
		return nil, nil
	}
	var spans []Span
	for field := range strings.SplitSeq(body, ",") {
		s, err := parseSpan(strings.TrimSpace(field))
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	return spans, nil
}

// parseSpan reads "5", "001-100" or "1-99/2". Padding is decided by the first number and both must
// be written alike, as in nodeset(1).
func parseSpan(field string) (Span, error) {
	body, stepText, stepped := strings.Cut(field, "/")
	first, last, isRange := strings.Cut(body, "-")
	first, last = strings.TrimSpace(first), strings.TrimSpace(last)
	if !isRange {
		last = first
	}
	s := Span{Step: 1, Width: padding(first)}
	var err error
	if s.Lo, err = number(first); err != nil {
		return s, err
	}
	if s.Hi, err = number(last); err != nil {
		return s, err
	}
	if stepped {
		if s.Step, err = number(strings.TrimSpace(stepText)); err != nil {
			return s, err
		}
	}
	return s, s.check(field, last, isRange || !stepped)
}

func (s Span) check(field, last string, stepAllowed bool) error {
	switch {
	case !stepAllowed || s.Step == 0:
		return fmt.Errorf("%q: a step needs a range and is at least 1, such as 1-9/2", field)
	case s.Lo > s.Hi:
		return fmt.Errorf("%q runs backwards", field)
	case s.Width != padding(last) && (s.Width > 0 && len(last) != s.Width || s.Width == 0):
		return fmt.Errorf("%q: both ends need the same number of digits when zeros lead", field)
	}
	return nil
}

func number(digits string) (uint64, error) {
	if digits == "" {
		return 0, errors.New("a number is missing between the brackets")
	}
	if strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a number", digits)
	}
	if len(digits) > maxDigits {
		return 0, fmt.Errorf("%q has more than %d digits", digits, maxDigits)
	}
	return strconv.ParseUint(digits, 10, 64)
}

// padding is the width to which a number was padded, 0 without leading zeros.
func padding(digits string) int {
	if len(digits) > 1 && digits[0] == '0' {
		return len(digits)
	}
	return 0
}

// size returns how many names the pattern gives; it stops counting at MaxInt64.
func (p pattern) size() int64 {
	total := int64(1)
	for _, part := range p {
		if part.spans == nil {
			continue
		}
		n := part.size()
		if n > math.MaxInt64/total {
			return math.MaxInt64
		}
		total *= n
	}
	return total
}

// size cannot overflow: it would take ten spans of 10^18 numbers.
func (p part) size() int64 {
	var n int64
	for _, s := range p.spans {
		n += int64((s.Hi-s.Lo)/s.Step + 1)
		if n < 0 {
			return math.MaxInt64
		}
	}
	return n
}

// names yields every name of the pattern, the last bracket changing fastest.
func (p pattern) names() iter.Seq[string] {
	return func(yield func(string) bool) { p.walk("", yield) }
}

func (p pattern) walk(prefix string, yield func(string) bool) bool {
	if len(p) == 0 {
		return yield(prefix)
	}
	if p[0].spans == nil {
		return p[1:].walk(prefix+p[0].literal, yield)
	}
	for _, s := range p[0].spans {
		for n := s.Lo; n <= s.Hi; n += s.Step {
			if !p[1:].walk(prefix+s.text(n), yield) {
				return false
			}
		}
	}
	return true
}
