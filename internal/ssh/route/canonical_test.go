package route

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets a test run this binary as a name server in a network of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "canonical-names" {
		answerNames()
	}
	os.Exit(m.Run())
}

// aliases are the records of the name server; any other name has an address.
var aliases = map[string]string{"one.test": "two.test", "two.test": "three.test", "web.a.test": "lb.b.test", "only.a.test": "",
	"one.a.test": "lb.b.test", "web1.a.test": "web1.b.test", "gone.a.test": "", "gone.b.test": "", "mail.a.test": "", "plain.a.test": ""}

// answerNames serves DNS on loopback and prints the canonical names of its arguments, one a line.
func answerNames() {
	conn, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		panic(err)
	}
	go serveNames(conn)
	for _, name := range os.Args[2:] {
		family, asked, split := strings.Cut(name, "/")
		if !split {
			family, asked = "any", name
		}
		text, ok := canonical(context.Background(), family, asked)
		fmt.Println(name, text, ok)
	}
	os.Exit(0)
}

func serveNames(conn net.PacketConn) {
	buf := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		conn.WriteTo(reply(buf[:n]), from)
	}
}

// reply answers one question (RFC 1035): the aliases in turn, and an address for A.
func reply(q []byte) []byte {
	end := 12
	var labels []string
	for q[end] != 0 {
		labels = append(labels, string(q[end+1:end+1+int(q[end])]))
		end += 1 + int(q[end])
	}
	kind := binary.BigEndian.Uint16(q[end+1:])
	end += 5
	out := append([]byte(nil), q[:end]...)
	name, answers, code := strings.ToLower(strings.Join(labels, ".")), uint16(0), byte(0)
	for next, known := aliases[name]; known; next, known = aliases[name] {
		if next == "" {
			code = 3 // there is no such name
			break
		}
		out = record(out, name, 5, encoded(next))
		answers++
		name = next
	}
	if kind == 1 && code == 0 {
		out = record(out, name, 1, []byte{127, 0, 0, 9})
		answers++
	}
	out[2], out[3] = 0x84, 0x80|code
	binary.BigEndian.PutUint16(out[6:], answers)
	for i := 8; i < 12; i++ {
		out[i] = 0
	}
	return out
}

func record(out []byte, name string, kind uint16, data []byte) []byte {
	out = append(out, encoded(name)...)
	out = binary.BigEndian.AppendUint16(out, kind)
	out = append(out, 0, 1, 0, 0, 0, 60)
	out = binary.BigEndian.AppendUint16(out, uint16(len(data)))
	return append(out, data...)
}

func encoded(name string) (out []byte) {
	for label := range strings.SplitSeq(name, ".") {
		out = append(append(out, byte(len(label))), label...)
	}
	return append(out, 0)
}

// TestCanonical: chains are followed to their end, every time, and a name with a dot at its end
// that stands in /etc/hosts only is unknown, as it is to ssh.
func TestCanonical(t *testing.T) {
	args := []string{"canonical-names"}
	for range 20 {
		args = append(args, "one.test.")
	}
	args = append(args, "web.a.test.", "only.a.test.", "plain.test.", "inet/web.a.test.", "inet6/plain.test.")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(append(ownNetwork(t), self), args...)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := strings.Repeat("one.test. three.test true\n", 20) + "web.a.test. lb.b.test true\nonly.a.test.  false\nplain.test. plain.test true\n" +
		"inet/web.a.test. lb.b.test true\ninet6/plain.test.  false\n" // the name server has no IPv6 addresses
	if string(out) != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
}

// ownNetwork is what runs a program in a network that knows nothing but the name server of aliases,
// and an /etc/hosts with only.a.test.
func ownNetwork(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"hosts": "127.0.0.8 only.a.test\n", "resolv.conf": "nameserver 127.0.0.1\n", "nsswitch.conf": "hosts: files dns\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := `ip link set lo up; for f in hosts resolv.conf nsswitch.conf; do mount --bind "$0/$f" "$(readlink -f /etc/$f)" || exit; done; exec "$@"`
	return []string{"unshare", "-r", "-m", "-n", "sh", "-c", script, dir}
}
