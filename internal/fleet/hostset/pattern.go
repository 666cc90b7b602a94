package hostset

import (
	"fmt"
	"iter"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// pattern is a name with ranges: literal, ranges, literal, ranges, ...
type pattern []part

// part is either literal text or the numbers of one pair of brackets.
type part struct {
	literal string
	spans   []span // nil for literal text
}

// span is lo, lo+step, ... up to hi, written with at least width digits.
type span struct {
	lo, hi, step uint64
	width        int // 0 = no padding
}

// maxDigits keeps every number and its successor inside 64 bits.
const maxDigits = 18

// parsePattern reads one operand. Brackets around an address, or around
// anything with a colon, stay as they are: [::1]:22.
func parsePattern(text string) (pattern, error) {
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
		next, err := parseBrackets(text, body)
		if err != nil {
			return nil, err
		}
		p, rest = append(p, next), after
	}
	return p, nil
}

func parseBrackets(text, body string) (part, error) {
	if _, err := netip.ParseAddr(body); err == nil || strings.Contains(body, ":") {
		return part{literal: "[" + body + "]"}, nil
	}
	var p part
	for field := range strings.SplitSeq(body, ",") {
		s, err := parseSpan(text, strings.TrimSpace(field))
		if err != nil {
			return part{}, err
		}
		p.spans = append(p.spans, s)
	}
	return p, nil
}

// parseSpan reads "5", "001-100" or "1-99/2". Padding is decided by the
// first number and both must be written alike, as in nodeset(1).
func parseSpan(text, field string) (span, error) {
	body, stepText, stepped := strings.Cut(field, "/")
	first, last, isRange := strings.Cut(body, "-")
	first, last = strings.TrimSpace(first), strings.TrimSpace(last)
	if !isRange {
		last = first
	}
	s := span{step: 1, width: padding(first)}
	var err error
	if s.lo, err = number(text, first); err != nil {
		return s, err
	}
	if s.hi, err = number(text, last); err != nil {
		return s, err
	}
	if stepped {
		if s.step, err = number(text, strings.TrimSpace(stepText)); err != nil {
			return s, err
		}
	}
	return s, s.check(text, field, last, isRange || !stepped)
}

func (s span) check(text, field, last string, stepAllowed bool) error {
	switch {
	case !stepAllowed || s.step == 0:
		return syntaxError(text, "%q: a step needs a range and is at least 1, such as 1-9/2", field)
	case s.lo > s.hi:
		return syntaxError(text, "%q runs backwards", field)
	case s.width != padding(last) && (s.width > 0 && len(last) != s.width || s.width == 0):
		return syntaxError(text, "%q: both ends need the same number of digits when zeros lead", field)
	}
	return nil
}

func number(text, digits string) (uint64, error) {
	if digits == "" {
		return 0, syntaxError(text, "a number is missing between the brackets")
	}
	if strings.Trim(digits, "0123456789") != "" {
		return 0, syntaxError(text, "%q is not a number", digits)
	}
	if len(digits) > maxDigits {
		return 0, syntaxError(text, "%q has more than %d digits", digits, maxDigits)
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

// size is how many names the pattern gives; it stops counting at MaxInt64.
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
		n += int64((s.hi-s.lo)/s.step + 1)
		if n < 0 {
			return math.MaxInt64
		}
	}
	return n
}

// names yields every name of the pattern, the last bracket turning fastest.
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
		for n := s.lo; n <= s.hi; n += s.step {
			if !p[1:].walk(prefix+fmt.Sprintf("%0*d", s.width, n), yield) {
				return false
			}
		}
	}
	return true
}
