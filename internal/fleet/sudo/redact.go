package sudo

import "bytes"

// stars stand for a password that a host sent back.
const stars = "********"

// leastLater is how long a password must be, in bytes, to be looked for in what the
// command itself writes: a short one, such as "root", may well be a part of that.
const leastLater = 8

// redactor takes a password out of a stream that comes in pieces.
type redactor struct{ held []byte }

// take returns what of the stream is known not to be in the password's way.
func (r *redactor) take(data, secret []byte) []byte {
	data = append(r.held, data...)
	r.held = nil
	if len(secret) == 0 {
		return data
	}
	data = bytes.ReplaceAll(data, secret, []byte(stars))
	for n := min(len(secret)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, secret[:n]) {
			r.held = bytes.Clone(data[len(data)-n:])
			return data[:len(data)-n]
		}
	}
	return data
}

// rest is what was held when the stream ended.
func (r *redactor) rest() []byte {
	rest := r.held
	r.held = nil
	return rest
}
