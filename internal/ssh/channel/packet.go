package channel

import (
	"encoding/binary"
	"errors"
	"strings"
)

// AppendNumber appends a uint32.
func AppendNumber(p []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(p, n) }

// AppendLong appends a uint64.
func AppendLong(p []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(p, n) }

// AppendText appends a string.
func AppendText[T string | []byte](p []byte, s T) []byte {
	return append(AppendNumber(p, uint32(len(s))), s...)
}

// AppendNames appends a name-list.
func AppendNames(p []byte, names []string) []byte {
	n := max(len(names)-1, 0)
	for _, name := range names {
		n += len(name)
	}
	p = AppendNumber(p, uint32(n))
	for i, name := range names {
		if i > 0 {
			p = append(p, ',')
		}
		p = append(p, name...)
	}
	return p
}

// AppendBool appends a boolean.
func AppendBool(p []byte, b bool) []byte {
	if b {
		return append(p, 1)
	}
	return append(p, 0)
}

// ErrShort is a message that ends before its last field, or has bytes after it.
var ErrShort = errors.New("ssh: a message of a wrong length")

// Fields reads a message from its start to its end. From the first missing field on all are empty.
type Fields struct {
	Rest  []byte // the unread rest
	short bool
}

// FieldsOf begins after a message's number.
func FieldsOf(message []byte) *Fields {
	f := &Fields{Rest: message}
	f.take(1)
	return f
}

func (f *Fields) take(n int) []byte {
	if n > len(f.Rest) || f.short {
		f.short, f.Rest = true, nil
		return nil
	}
	s := f.Rest[:n:n]
	f.Rest = f.Rest[n:]
	return s
}

// Bytes reads a fixed number of bytes.
func (f *Fields) Bytes(n int) []byte { return f.take(n) }

// Number reads a uint32.
func (f *Fields) Number() uint32 {
	if b := f.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Long reads a uint64.
func (f *Fields) Long() uint64 {
	if b := f.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Text reads a string. It is a part of the message.
func (f *Fields) Text() []byte {
	n := f.Number()
	if uint64(n) > uint64(len(f.Rest)) {
		f.short, f.Rest = true, nil
		return nil
	}
	return f.take(int(n))
}

// Names reads a name-list.
func (f *Fields) Names() []string {
	if text := f.Text(); len(text) > 0 {
		return strings.Split(string(text), ",")
	}
	return nil
}

// Bool reads a boolean.
func (f *Fields) Bool() bool {
	b := f.take(1)
	return b != nil && b[0] != 0
}

// Err reports whether a field was missing.
func (f *Fields) Err() error {
	if f.short {
		return ErrShort
	}
	return nil
}

// End reports whether a field was missing, or something follows the last one.
func (f *Fields) End() error {
	if len(f.Rest) > 0 {
		return ErrShort
	}
	return f.Err()
}
