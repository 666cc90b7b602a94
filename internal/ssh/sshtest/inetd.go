package sshtest

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
)

// Inetd serves every connection by a process of its own, as inetd does.
type Inetd struct {
	Port int
	User string
	Key  string // a private key file that may log in
	Home string // what its sessions have for one, with .ssh/authorized_keys
}

// StartDropbear is the installed dropbear, until the test ends.
func StartDropbear(t testing.TB) *Inetd {
	t.Helper()
	key := filepath.Join(t.TempDir(), "host_key")
	if out, err := exec.Command("dropbearkey", "-t", "ed25519", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("dropbearkey: %v\n%s", err, out)
	}
	return startInetd(t, "/usr/sbin/dropbear", "-i", "-s", "-r", key)
}

// StartTinySSH is the installed TinySSH, until the test ends.
func StartTinySSH(t testing.TB) *Inetd {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	if out, err := exec.Command("tinysshd-makekey", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("tinysshd-makekey: %v\n%s", err, out)
	}
	return startInetd(t, "/usr/sbin/tinysshd", dir)
}

// startInetd gives the account another home, which only the server sees: these servers look for
// authorized_keys nowhere else.
func startInetd(t testing.TB, argv ...string) *Inetd {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	key, public := WriteKey(t, t.TempDir(), "user_key", "")
	write(t, filepath.Join(home, ".ssh", "authorized_keys"), AuthorizedLine(public))
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	argv = append([]string{"unshare", "-m", "sh", "-c", `mount --bind "$0" "$1" && shift && exec "$@"`, home, me.HomeDir}, argv...)
	Answer(t, l, func(c net.Conn) { serveOne(c.(*net.TCPConn), argv) })
	return &Inetd{l.Addr().(*net.TCPAddr).Port, me.Username, key, home}
}

func serveOne(c *net.TCPConn, argv []string) {
	socket, err := c.File()
	c.Close()
	if err != nil {
		return
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout = socket, socket
	err = cmd.Start()
	socket.Close()
	if err == nil {
		cmd.Wait()
	}
}
