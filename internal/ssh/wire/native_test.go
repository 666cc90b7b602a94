package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/ssh/wire"
)

// files are the keys of one test.
type files struct {
	dir, hostKey, userKey, authorized, known string
}

const alias = "box"

func makeFiles(t *testing.T) files {
	t.Helper()
	f := files{dir: t.TempDir()}
	var host, user ssh.PublicKey
	f.hostKey, host = sshtest.WriteKey(t, f.dir, "host", "")
	f.userKey, user = sshtest.WriteKey(t, f.dir, "user", "")
	f.authorized, f.known = filepath.Join(f.dir, "authorized"), filepath.Join(f.dir, "known")
	write(t, f.authorized, string(ssh.MarshalAuthorizedKey(user)))
	write(t, f.known, alias+" "+string(ssh.MarshalAuthorizedKey(host)))
	return f
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// nativeServer serves connections in this process until the test ends.
func nativeServer(t *testing.T, f files) (address string) {
	t.Helper()
	return accept(t, func(socket *os.File) { _ = wire.ServeOne(socket, f.hostKey, f.authorized, f.dir) })
}

// inetd starts a command for every connection, as inetd would.
func inetd(t *testing.T, argv ...string) (address string) {
	t.Helper()
	return accept(t, func(socket *os.File) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout = socket, socket
		_ = cmd.Run()
	})
}

func accept(t *testing.T, serve func(*os.File)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			socket, err := conn.(*net.TCPConn).File()
			conn.Close()
			if err != nil {
				return
			}
			go func() {
				serve(socket)
				socket.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// run runs a command with the native client.
func run(t *testing.T, address string, f files, want alg.Suite, command, input string) (output, log string, exit int, err error) {
	t.Helper()
	var out, debug bytes.Buffer
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	exit, err = wire.RunClient(ctx, wire.ClientParams{
		Address: address, User: me.Username, Identity: f.userKey, KnownHosts: f.known, Want: want, Command: command, Log: &debug,
	}, strings.NewReader(input), &out, io.Discard)
	return out.String(), debug.String(), exit, err
}

func probe(t *testing.T, address string) wire.Greeting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	g, err := wire.Probe(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestProbeOfRealServers(t *testing.T) {
	f := makeFiles(t)
	tiny := filepath.Join(t.TempDir(), "tiny")
	if out, err := exec.Command("tinysshd-makekey", "-q", tiny).CombinedOutput(); err != nil {
		t.Fatalf("tinysshd-makekey: %v\n%s", err, out)
	}
	bear := filepath.Join(t.TempDir(), "bear")
	if out, err := exec.Command("dropbearkey", "-t", "ed25519", "-f", bear).CombinedOutput(); err != nil {
		t.Fatalf("dropbearkey: %v\n%s", err, out)
	}
	for name, tt := range map[string]struct {
		address, version, cipher string
		strict                   bool
	}{
		"OpenSSH":  {fmt.Sprintf("127.0.0.1:%d", sshtest.StartSshd(t).Port), "SSH-2.0-OpenSSH_", "aes128-ctr", true},
		"Dropbear": {inetd(t, "/usr/sbin/dropbear", "-i", "-s", "-r", bear), "SSH-2.0-dropbear", "chacha20-poly1305@openssh.com", false},
		"TinySSH":  {inetd(t, "/usr/sbin/tinysshd", tiny), "SSH-2.0-", "chacha20-poly1305@openssh.com", false},
		"native":   {nativeServer(t, f), "SSH-2.0-sshpace-native", "aes128-ctr", true},
	} {
		g := probe(t, tt.address)
		if !strings.HasPrefix(g.Version, tt.version) || !slices.Contains(g.Offer.Ciphers, tt.cipher) || len(g.Offer.Kex) == 0 || len(g.Offer.HostKeys) == 0 {
			t.Errorf("%s: %+v", name, g)
		}
		if tt.strict && !g.StrictKex {
			t.Errorf("%s: strict key exchange is not seen in %q", name, g.Offer.Kex)
		}
	}
}

// The native server offers what the native client can.
func TestOfferIsWhatTheServerOffers(t *testing.T) {
	want, got := wire.Offer(), probe(t, nativeServer(t, makeFiles(t))).Offer
	for _, kind := range alg.Measured {
		if missing := want.Without(got, kind); len(missing) > 0 {
			t.Errorf("%s: the server lacks %q", kind, missing)
		}
	}
}

// suites names every algorithm of an offer at least once.
func suites(o alg.Offer) []alg.Suite {
	var list []alg.Suite
	for i := range max(len(o.Ciphers), len(o.MACs), len(o.Kex)) {
		list = append(list, alg.NewSuite(o.Ciphers[i%len(o.Ciphers)], o.MACs[i%len(o.MACs)], o.Kex[i%len(o.Kex)]))
	}
	for _, mac := range o.MACs {
		list = append(list, alg.NewSuite("aes128-ctr", mac, o.Kex[0]))
	}
	return list
}

// transfers moves a little through the client with every shared algorithm.
func transfers(t *testing.T, address string, f files, o alg.Offer) {
	input := strings.Repeat("0123456789abcdef", 4096)
	for _, want := range suites(o) {
		output, log, exit, err := run(t, address, f, want, "cat; exit 3", input)
		if err != nil || exit != 3 || output != input {
			t.Errorf("%s: exit %d, %d of %d bytes, %v", want, exit, len(output), len(input), err)
			continue
		}
		mac := want.MAC
		if mac == "" {
			mac = "<implicit>"
		}
		for _, line := range []string{"step: kex " + want.Kex + "\n", "toserver cipher: " + want.Cipher + " MAC: " + mac + " ", "toclient cipher: " + want.Cipher + " MAC: " + mac + " "} {
			if !strings.Contains(log, line) {
				t.Errorf("%s: the log lacks %q:\n%s", want, line, log)
			}
		}
	}
}

func TestNativeClientAndServer(t *testing.T) {
	f := makeFiles(t)
	transfers(t, nativeServer(t, f), f, wire.Offer())
}

// real starts the installed sshd with everything enabled that the native client has, too.
func real(t *testing.T, f files) (address string, shared alg.Offer) {
	t.Helper()
	names := func(kind string) []string {
		out, err := exec.Command("ssh", "-Q", kind).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	installed := alg.Offer{Ciphers: names("cipher"), MACs: names("mac"), Kex: names("kex")}
	shared = wire.Offer().Intersect(installed)
	d := sshtest.StartSshd(t, "Ciphers "+strings.Join(shared.Ciphers, ","), "MACs "+strings.Join(shared.MACs, ","), "KexAlgorithms "+strings.Join(shared.Kex, ","))
	key, err := os.ReadFile(d.Key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.userKey, string(key))
	write(t, f.known, alias+" "+string(ssh.MarshalAuthorizedKey(d.HostKey)))
	return fmt.Sprintf("127.0.0.1:%d", d.Port), shared
}

func TestNativeClientWithRealServer(t *testing.T) {
	f := makeFiles(t)
	address, shared := real(t, f)
	if len(shared.Ciphers) < 5 || len(shared.Kex) < 5 {
		t.Fatalf("suspiciously little is shared: %+v", shared)
	}
	transfers(t, address, f, shared)
}

// ssh is the command line of the real client for a native server.
func sshCommand(address string, f files, want alg.Suite, command string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(address)
	argv := []string{"-F", "/dev/null", "-p", port, "-i", f.userKey, "-v"}
	for _, option := range []string{
		"UserKnownHostsFile=" + f.known, "GlobalKnownHostsFile=none", "HostKeyAlias=" + alias, "StrictHostKeyChecking=yes", "BatchMode=yes",
		"IdentitiesOnly=yes", "IdentityAgent=none", "Ciphers=" + want.Cipher, "KexAlgorithms=" + want.Kex,
	} {
		argv = append(argv, "-o", option)
	}
	if want.MAC != "" {
		argv = append(argv, "-o", "MACs="+want.MAC)
	}
	return exec.Command("ssh", append(argv, "--", host, command)...)
}

func TestRealClientWithNativeServer(t *testing.T) {
	f := makeFiles(t)
	out, err := exec.Command("ssh", "-Q", "cipher").Output()
	if err != nil {
		t.Fatal(err)
	}
	offer := wire.Offer()
	offer.Ciphers = slices.DeleteFunc(offer.Ciphers, func(name string) bool { return !slices.Contains(strings.Fields(string(out)), name) })
	address := nativeServer(t, f)
	input := strings.Repeat("0123456789abcdef", 4096)
	for _, cipher := range offer.Ciphers {
		cmd := sshCommand(address, f, alg.NewSuite(cipher, "hmac-sha2-256", "curve25519-sha256"), "cat; exit 3")
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = strings.NewReader(input), &stderr
		output, err := cmd.Output()
		if cmd.ProcessState.ExitCode() != 3 || string(output) != input {
			t.Errorf("%s: %v, %d of %d bytes\n%s", cipher, err, len(output), len(input), &stderr)
		}
	}
}

func TestWrongHostKeyIsRefused(t *testing.T) {
	f, other := makeFiles(t), makeFiles(t)
	address := nativeServer(t, f)
	f.known = other.known
	if _, log, exit, err := run(t, address, f, alg.Suite{}, "true", ""); err == nil || exit != 255 || !strings.Contains(log, "host key mismatch") {
		t.Errorf("native client: exit %d, %v, log %q", exit, err, log)
	}
	out, err := sshCommand(address, f, alg.NewSuite("aes128-ctr", "hmac-sha2-256", "curve25519-sha256"), "true").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Host key verification failed") {
		t.Errorf("ssh: %v\n%s", err, out)
	}
}

func TestForeignUserKeyIsRefused(t *testing.T) {
	f, other := makeFiles(t), makeFiles(t)
	address := nativeServer(t, f)
	f.userKey = other.userKey
	if _, log, exit, err := run(t, address, f, alg.Suite{}, "touch "+f.dir+"/in", ""); err == nil || exit != 255 || !strings.Contains(log, "unable to authenticate") {
		t.Errorf("native client: exit %d, %v, log %q", exit, err, log)
	}
	out, err := sshCommand(address, f, alg.NewSuite("aes128-ctr", "hmac-sha2-256", "curve25519-sha256"), "touch "+f.dir+"/in").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Permission denied (publickey)") {
		t.Errorf("ssh: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "in")); err == nil {
		t.Error("the command ran")
	}
}

func TestUnsharedAlgorithmIsRefused(t *testing.T) {
	f := makeFiles(t)
	_, log, exit, err := run(t, nativeServer(t, f), f, alg.Suite{Cipher: "aes128-ctr", Kex: "sntrup761x25519-sha512@openssh.com"}, "true", "")
	if err == nil || exit != 255 || log == "" {
		t.Errorf("exit %d, %v, log %q", exit, err, log)
	}
}

// A command that goes on writing ends when its client is gone.
func TestCommandEndsWithItsClient(t *testing.T) {
	f := makeFiles(t)
	ended := make(chan error, 1)
	address := accept(t, func(socket *os.File) { ended <- wire.ServeOne(socket, f.hostKey, f.authorized, f.dir) })
	cmd := sshCommand(address, f, alg.NewSuite("aes128-ctr", "hmac-sha2-256", "curve25519-sha256"), "exec cat /dev/zero")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the server still waits for the command of a client that is gone")
	}
}

// The server runs commands and nothing else, with the home it was given.
func TestServerSession(t *testing.T) {
	f := makeFiles(t)
	address := nativeServer(t, f)
	for command, want := range map[string]string{"printf %s \"$HOME\"": f.dir, "printf %s \"$SSH_AUTH_SOCK\"": ""} {
		if output, _, exit, err := run(t, address, f, alg.Suite{}, command, ""); err != nil || exit != 0 || output != want {
			t.Errorf("%s: %q, exit %d, %v", command, output, exit, err)
		}
	}
	for name, args := range map[string][]string{"shell": {}, "subsystem": {"-s", "sftp"}} {
		cmd := sshCommand(address, f, alg.NewSuite("aes128-ctr", "hmac-sha2-256", "curve25519-sha256"), "x")
		cmd.Args = append(cmd.Args[:len(cmd.Args)-3], append(args[:len(args)/2:len(args)/2], append([]string{"--", "127.0.0.1"}, args[len(args)/2:]...)...)...)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s works:\n%s", name, out)
		}
	}
}

func TestServeOneWithoutKeys(t *testing.T) {
	f := makeFiles(t)
	for name, args := range map[string][2]string{
		"no host key":       {f.dir + "/missing", f.authorized},
		"no authorized key": {f.hostKey, f.dir + "/missing"},
		"bad host key":      {f.authorized, f.authorized},
		"bad authorized":    {f.hostKey, f.hostKey},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if err := wire.ServeOne(r, args[0], args[1], f.dir); err == nil {
			t.Errorf("%s: served", name)
		}
		r.Close()
	}
}
