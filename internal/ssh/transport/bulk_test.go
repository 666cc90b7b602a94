package transport

import (
	"bytes"
	"net"
	"testing"
)

// swallower is a connection that takes everything.
type swallower struct {
	net.Conn
	got bytes.Buffer
}

func (s *swallower) Write(p []byte) (int, error) { return s.got.Write(p) }

// A connection keeps no memory for data once that has left, and what waited before it leaves before
// it.
func TestBulk(t *testing.T) {
	to := &swallower{}
	c := &Conn{net: to, sealer: plain{}, loggedIn: true}
	c.queue([]byte("first"))
	data := bytes.Repeat([]byte("data"), 64<<10)
	for range 3 {
		if err := (carrier{c}).SendData([]byte("head"), data, 32<<10); err != nil {
			t.Fatal(err)
		}
		if cap(c.out) > keep {
			t.Errorf("%d bytes are kept", cap(c.out))
		}
	}
	var got []byte
	packets := 0
	in := newInput(&to.got)
	for to.got.Len() > 0 || in.buffered() > 0 {
		p, err := plain{}.open(in, 0)
		if err != nil {
			t.Fatal(err)
		}
		if packets++; packets == 1 {
			if string(p) != "first" {
				t.Errorf("%.20q is first", p)
			}
			continue
		}
		got = append(got, p[len("head")+4:]...)
	}
	if packets != 1+3*8 || !bytes.Equal(got, bytes.Repeat(data, 3)) {
		t.Errorf("%d packets, %d bytes", packets, len(got))
	}
}

// What is sent during a key exchange waits for its end, whole.
func TestDataDuringKeyExchange(t *testing.T) {
	to := &swallower{}
	c := &Conn{net: to, sealer: plain{}, loggedIn: true, kexInit: &proposal{}}
	text := []byte("data")
	if err := (carrier{c}).SendData([]byte("head"), text, 2); err != nil {
		t.Fatal(err)
	}
	copy(text, "XXXX") // as the caller may
	if to.got.Len() != 0 {
		t.Errorf("%d bytes were sent", to.got.Len())
	}
	if err := c.changeOurs(plain{}); err != nil {
		t.Fatal(err)
	}
	in := newInput(&to.got)
	for _, want := range []string{"\x15", "head\x00\x00\x00\x02da", "head\x00\x00\x00\x02ta"} {
		if p, err := (plain{}).open(in, 0); string(p) != want || err != nil {
			t.Errorf("%q, %v; want %q", p, err, want)
		}
	}
}
