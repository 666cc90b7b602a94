package transport

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"sshpace/internal/ssh/channel"
)

// packets are messages of different lengths as they arrive.
func packets(lengths ...int) (all []byte) {
	for i, n := range lengths {
		all = plain{}.seal(all, 0, []byte{100}, bytes.Repeat([]byte{byte(i)}, n))
	}
	return all
}

// TestInput: packets of any length come whole, however they arrive, and those that are lent stay as
// they are.
func TestInput(t *testing.T) {
	lengths := []int{1, 400, 600, 32 << 10, 0, 200 << 10, 3, channel.MaxMessage - 100, 700, 32 << 10, 32 << 10}
	for name, arrive := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "bytes": iotest.OneByteReader, "with their end": iotest.DataErrReader,
	} {
		c := &Conn{opener: plain{}, in: newInput(arrive(bytes.NewReader(packets(lengths...)))), loggedIn: true, chosen: algorithms{up: direction{cipher: suites[0].name}, down: direction{cipher: suites[0].name}}}
		var last []byte
		var lent [][]byte
		for i, n := range lengths {
			old := last
			if i%3 == 2 {
				lent, old = append(lent, last), nil
			}
			p, err := carrier{c}.Receive(old)
			if err != nil || !bytes.Equal(p[1:], bytes.Repeat([]byte{byte(i)}, n)) {
				t.Fatalf("%s: packet %d: %d bytes, %v", name, i, len(p), err)
			}
			last = p
		}
		for i, p := range lent {
			at := 3*i + 1
			if !bytes.Equal(p[1:], bytes.Repeat([]byte{byte(at)}, lengths[at])) {
				t.Errorf("%s: packet %d has changed", name, at)
			}
		}
		if _, err := (carrier{c}).Receive(last); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.in.buf) > waiting {
			t.Errorf("%s: %d bytes are kept", name, len(c.in.buf))
		}
	}
}

// TestCutInput: the end within a packet is told from the end after one.
func TestCutInput(t *testing.T) {
	whole := packets(40)
	for n := range whole {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if _, err := (plain{}).open(newInput(bytes.NewReader(whole[:n])), 0); err != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
