package transport

import (
	"bytes"
	"math/big"
	"net"
	"strings"
	"testing"

	"sshpace/internal/ssh/channel"
)

// TestTampered: a packet of which any bit is changed is not taken, nor one in another's place.
func TestTampered(t *testing.T) {
	for _, s := range suites {
		for _, m := range macs {
			pair := func() both {
				made, err := s.make(make([]byte, s.key), make([]byte, s.iv), m.keyed([]byte("key")))
				if err != nil {
					t.Fatal(err)
				}
				return made
			}
			packet := pair().seal(nil, 7, []byte("a message"), []byte(" in two parts"))
			if p, err := pair().open(newInput(bytes.NewReader(packet)), 7); err != nil || string(p) != "a message in two parts" {
				t.Fatalf("%s, %s: %q, %v", s.name, m.name, p, err)
			}
			for i := range packet {
				changed := bytes.Clone(packet)
				changed[i] ^= 0x10
				if p, err := pair().open(newInput(bytes.NewReader(changed)), 7); err == nil {
					t.Errorf("%s, %s: byte %d of %d: %q", s.name, m.name, i, len(packet), p)
				}
			}
			if p, err := pair().open(newInput(bytes.NewReader(packet)), 8); err == nil && s.iv != 12 { // GCM counts by itself
				t.Errorf("%s, %s: another number: %q", s.name, m.name, p)
			}
		}
	}
}

// TestHostileNumbers: public values and groups that give the secret away are not taken.
func TestHostileNumbers(t *testing.T) {
	number := func(beside int64) []byte { return unsigned(new(big.Int).Add(prime14(), big.NewInt(beside)).Bytes()) }
	half := newField(prime14(), big.NewInt(2))
	for _, theirs := range [][]byte{nil, {0}, {1}, {0x82}, number(-1), number(0), number(1)} {
		if _, err := half.secret(theirs); err == nil {
			t.Errorf("%x is taken", theirs)
		}
	}
	if _, err := half.secret([]byte{2}); err != nil {
		t.Error(err)
	}
	short := unsigned(new(big.Int).SetBit(big.NewInt(1), leastBits-2, 1).Bytes())
	long := unsigned(new(big.Int).SetBit(big.NewInt(1), mostBits, 1).Bytes())
	for name, group := range map[string][2][]byte{
		"short": {short, {2}}, "long": {long, {2}}, "even": {number(1), {2}}, "negative": {bytes.Repeat([]byte{0xff}, 256), {2}},
		"base 1": {number(0), {1}}, "base -1": {number(0), number(-1)}, "nothing": {nil, nil},
	} {
		if err := offered(t, group[0], group[1]); err == nil || !strings.Contains(err.Error(), "group is not valid") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := offered(t, number(0), []byte{2}); err != nil {
		t.Error(err)
	}
}

// offered asks for a group, and is offered one.
func offered(t *testing.T, prime, base []byte) error {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		defer theirs.Close()
		if p, err := (plain{}).open(newInput(theirs), 0); err == nil && p[0] == msgGroupRequest {
			theirs.Write(plain{}.seal(nil, 0, channel.AppendText(channel.AppendText([]byte{msgGroup}, prime), base), nil))
		}
	}()
	c := &Conn{net: ours, sealer: plain{}, opener: plain{}, loggedIn: true}
	c.in = newInput(ours)
	_, _, err := c.askGroup()
	return err
}

// TestWrongGuess: what a server has sent on a wrong guess is left out (RFC 4253 section 7), and
// nothing else is.
func TestWrongGuess(t *testing.T) {
	for _, test := range []struct {
		follows bool
		kex     string // the server's first
		packet  byte
		left    int // packets to be read
		ok      bool
	}{
		{false, "other", msgKexECDHReply, 1, true},
		{true, "curve25519-sha256", msgKexECDHReply, 1, true},
		{true, "other", msgKexECDHReply, 0, true},
		{true, "other", msgNewKeys, 0, false},
	} {
		var sent bytes.Buffer
		sent.Write(plain{}.seal(nil, 0, []byte{test.packet}, nil))
		c := &Conn{opener: plain{}, in: newInput(&sent), chosen: algorithms{kex: "curve25519-sha256", hostKey: "ssh-ed25519"}}
		err := c.skipGuess(&KexInit{Kex: []string{test.kex}, HostKey: []string{"ssh-ed25519"}, FirstPacketFollows: test.follows})
		if read := int(c.recv.seq); (err == nil) != test.ok || read != 1-test.left {
			t.Errorf("%+v: %d packets read, %v", test, read, err)
		}
	}
}
