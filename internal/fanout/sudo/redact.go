package sudo

import (
	"bytes"

	"sshpace/internal/base/termsafe"
)

// stars replace a password that a host sent back.
const stars = "********"

// leastLater is the length of a password, in bytes, from which on it is also removed from the
// command's own output: a short one, such as "root", may well be a part of that.
const leastLater = 8

// mostHeld is the most that is held back, in bytes: between the letters of a password there may be
// escape sequences without end.
const mostHeld = 8 << 10

// redactor removes a password from a stream that comes in pieces, with or without escape sequences
// between its letters: they are not shown.
type redactor struct{ held []byte }

// take returns the part of the stream that cannot belong to the password.
func (r *redactor) take(data, secret []byte) []byte {
	data = append(r.held, data...)
	r.held = nil
	if len(secret) == 0 {
		return data
	}
	rest := bareOf(bytes.ReplaceAll(data, secret, []byte(stars)))
	var out []byte
	for {
		i := bytes.Index(rest.text, secret)
		if i < 0 {
			break
		}
		before, _ := rest.cut(i)
		_, last := rest.cut(i + len(secret) - 1)
		out, rest = append(append(out, before.raw...), stars...), last.afterFirst()
	}
	for n := min(len(secret)-1, len(rest.text)); n > 0; n-- {
		if before, tail := rest.cut(len(rest.text) - n); bytes.HasSuffix(rest.text, secret[:n]) && len(tail.raw) <= mostHeld {
			r.held = bytes.Clone(tail.raw)
			return append(out, before.raw...)
		}
	}
	return append(out, rest.raw...)
}

// bare is a text, with and without escape sequences.
type bare struct {
	raw, text []byte
	at        []int // in raw, of each byte of text; nil where they are the same
	from      int   // positions in raw of the bytes of text
}

func bareOf(raw []byte) bare {
	b := bare{raw: raw, text: raw}
	if bytes.IndexByte(raw, '\x1b') < 0 {
		return b
	}
	b.text, b.at = nil, make([]int, 0, len(raw))
	for i := 0; i < len(raw); {
		if n, _ := termsafe.Sequence(raw[i:]); n > 0 {
			i += n
			continue
		}
		b.text, b.at = append(b.text, raw[i]), append(b.at, i)
		i++
	}
	return b
}

// cut divides b before the byte n of its text.
func (b bare) cut(n int) (before, after bare) {
	raw := n
	if b.at != nil {
		raw = b.at[n] - b.from
		before.at, after.at = b.at[:n], b.at[n:]
	}
	before.raw, before.text, before.from = b.raw[:raw], b.text[:n], b.from
	after.raw, after.text, after.from = b.raw[raw:], b.text[n:], b.from+raw
	return before, after
}

// afterFirst returns b without its first byte, which must belong to its text.
func (b bare) afterFirst() bare {
	b.raw, b.text, b.from = b.raw[1:], b.text[1:], b.from+1
	if b.at != nil {
		b.at = b.at[1:]
	}
	return b
}

// rest returns held text when the stream has ended.
func (r *redactor) rest() []byte {
	rest := r.held
	r.held = nil
	return rest
}
