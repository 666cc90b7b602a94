package openssh_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// fake writes a shell script that stands in for a program.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindRealPrograms(t *testing.T) {
	for name, find := range map[string]func(context.Context, string) (openssh.Program, error){"ssh": openssh.FindClient, "sshd": openssh.FindServer} {
		p, err := find(t.Context(), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !filepath.IsAbs(p.Path) || filepath.Base(p.Path) != name || !strings.HasPrefix(p.Version, "OpenSSH_") || p.Crypto == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestFindLooksBeyondPath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if p, err := openssh.FindServer(t.Context(), ""); err != nil || p.Path != "/usr/sbin/sshd" {
		t.Errorf("sshd without PATH: %+v, %v", p, err)
	}
	_, err := openssh.FindClient(t.Context(), "")
	if missing := (*openssh.NotFoundError)(nil); !errors.As(err, &missing) || missing.Name != "ssh" {
		t.Errorf("ssh without PATH: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for name, tt := range map[string]struct{ script, version, crypto, err string }{
		"-V":              {"echo 'OpenSSH_10.5p1, OpenSSL 3.6.2 1 Sep 2026' >&2", "OpenSSH_10.5p1", "OpenSSL 3.6.2 1 Sep 2026", ""},
		"distribution":    {"echo 'OpenSSH_6.6.1p1 Ubuntu-2ubuntu2, OpenSSL 1.0.1f 6 Jan 2014' >&2", "OpenSSH_6.6.1p1 Ubuntu-2ubuntu2", "OpenSSL 1.0.1f 6 Jan 2014", ""},
		"usage of sshd":   {"echo 'unknown option -- V\nOpenSSH_8.4p1 Debian-5, OpenSSL 1.1.1n  15 Mar 2022\nusage: sshd [-46DdeiqTt]' >&2; exit 1", "OpenSSH_8.4p1 Debian-5", "OpenSSL 1.1.1n  15 Mar 2022", ""},
		"without OpenSSL": {"echo 'OpenSSH_9.9p2, without OpenSSL' >&2", "OpenSSH_9.9p2", "without OpenSSL", ""},
		"Windows":         {"echo 'OpenSSH_for_Windows_9.5p1, LibreSSL 3.8.2' >&2", "OpenSSH_for_Windows_9.5p1", "LibreSSL 3.8.2", ""},
		"Sun":             {"echo 'Sun_SSH_1.1.4, SSH protocols 1.5/2.0, OpenSSL 0x0090704f'", "Sun_SSH_1.1.4", "SSH protocols 1.5/2.0, OpenSSL 0x0090704f", ""},
		"stranger":        {"echo 'PuTTY: Release 0.83, yes'", "", "", "names no OpenSSH version"},
		"nothing":         {"exit 7", "", "", "exit status 7"},
	} {
		p, err := openssh.FindServer(t.Context(), fake(t, tt.script))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || p.Version != tt.version || p.Crypto != tt.crypto {
			t.Errorf("%s: %q, %q, %v", name, p.Version, p.Crypto, err)
		}
	}
}

func TestFindRefusesWhatIsNoProgram(t *testing.T) {
	for _, path := range []string{"/nonexistent/ssh", t.TempDir(), "/etc/passwd"} {
		if _, err := openssh.FindClient(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := openssh.FindClient(ctx, fake(t, "exec sleep 60")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that does not answer: %v", err)
	}
}

func TestQuery(t *testing.T) {
	p, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	o, err := p.Query(t.Context())
	if err != nil || !slices.Contains(o.Ciphers, "aes128-ctr") || !slices.Contains(o.MACs, "hmac-sha2-256") ||
		!slices.Contains(o.Kex, "curve25519-sha256") || !slices.Contains(o.HostKeys, "ssh-ed25519") {
		t.Errorf("Query: %+v, %v", o, err)
	}
	p, err = openssh.FindClient(t.Context(), fake(t, `[ "$1" = -Q ] && exit 1; echo "OpenSSH_9.2p1, none" >&2`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Query(t.Context()); err == nil || !strings.Contains(err.Error(), "-Q cipher") {
		t.Errorf("Query of a program that fails: %v", err)
	}
}

// settings are the -o arguments of a command line.
func settings(argv []string) []string {
	var list []string
	for i, arg := range argv[:len(argv)-1] {
		if arg == "-o" {
			list = append(list, argv[i+1])
		}
	}
	return list
}

// An ssh that does not know some of our options is not asked for them.
func TestOlderClientsAreNotAskedForNewOptions(t *testing.T) {
	const old = `for arg; do
  case "$arg" in
  RemoteCommand=*|StdinNull=*|PubkeyAcceptedAlgorithms=*)
    echo "command-line: line 0: Bad configuration option: $(echo ${arg%%=*} | tr A-Z a-z)" >&2; exit 255;;
  GSSAPI*) echo 'command-line line 0: Unsupported option "gssapiauthentication"' >&2;;
  esac
done
echo 'OpenSSH_6.6.1p1, OpenSSL 1.0.1f' >&2`
	p, err := openssh.FindClient(t.Context(), fake(t, old))
	if err != nil {
		t.Fatal(err)
	}
	argv := p.Command(p.Private("127.0.0.1", "22", "me", "key", "known"), alg.Suite{Cipher: "aes128-ctr"}, "log", time.Second, "true")
	list := strings.Join(settings(argv), " ")
	for _, gone := range []string{"RemoteCommand", "StdinNull", "PubkeyAcceptedAlgorithms", "GSSAPIAuthentication", "IgnoreUnknown"} {
		if strings.Contains(list, gone) {
			t.Errorf("%s is still asked for", gone)
		}
	}
	for _, kept := range []string{"ControlMaster=no", "StrictHostKeyChecking=yes", "ForwardAgent=no", "Ciphers=aes128-ctr", "UserKnownHostsFile=known"} {
		if !strings.Contains(list, kept) {
			t.Errorf("%s is lost in %s", kept, list)
		}
	}
}

func TestAClientThatRefusesEverything(t *testing.T) {
	_, err := openssh.FindClient(t.Context(), fake(t, `[ $# = 1 ] && { echo 'OpenSSH_9.9p1, x'; exit; }; echo broken >&2; exit 255`))
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("FindClient: %v", err)
	}
}

// What the installed ssh makes of our command line: whatever the user's configuration says, nothing
// is multiplexed, forwarded or asked, an unknown host key is refused, and options that the user
// lets pass still pass.
func TestCommandWinsOverTheUsersConfiguration(t *testing.T) {
	p, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	text := `IgnoreUnknown UseKeychain
Host *
  UseKeychain yes
  ControlMaster auto
  ControlPath /nonexistent/%C
  ControlPersist 10m
  ForwardAgent yes
  ForwardX11 yes
  StrictHostKeyChecking no
  BatchMode no
  Compression yes
  RemoteCommand echo hello
  RequestTTY force
  LocalForward 1234 localhost:80
  PermitLocalCommand yes
  LocalCommand touch /nonexistent/file
  Ciphers aes256-ctr
  UpdateHostKeys yes
  User configured
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openssh.Destination{Host: "box", Flags: conf.Flags{Config: config, Settings: []string{"ControlMaster=auto", "StrictHostKeyChecking=no", "ForwardAgent=yes"}}}
	argv := p.Command(d, alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: "curve25519-sha256"}, filepath.Join(t.TempDir(), "log"), 1500*time.Millisecond, "remote command")
	if tail := argv[len(argv)-3:]; !slices.Equal(tail, []string{"--", "box", "remote command"}) {
		t.Errorf("command line ends with %q", tail)
	}
	out, err := exec.Command(argv[0], append([]string{"-G"}, argv[1:len(argv)-1]...)...).Output()
	if err != nil {
		t.Fatalf("ssh -G: %v\n%s", err, out)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[name] = value
	}
	for name, want := range map[string]string{
		"controlmaster": "false", "batchmode": "yes", "stricthostkeychecking": "true", "forwardagent": "no", "forwardx11": "no", "compression": "no",
		"clearallforwardings": "yes", "requesttty": "false", "permitlocalcommand": "no", "ciphers": "aes128-ctr", "macs": "hmac-sha2-256",
		"kexalgorithms": "curve25519-sha256", "updatehostkeys": "false", "user": "configured", "connecttimeout": "2", "remotecommand": "", "controlpath": "",
	} {
		if value := got[name]; value != want && (want != "" || value != "none") {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
}

// serverConfig is a configuration with a real host key.
func serverConfig(t *testing.T) openssh.ServerConfig {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "host_key")
	if err := os.WriteFile(key, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return openssh.ServerConfig{
		HostKey: key, AuthorizedKeys: filepath.Join(dir, "authorized_keys"), Home: dir, User: me.Username,
		Offer: alg.Offer{Ciphers: []string{"aes128-ctr", "aes256-ctr"}, MACs: []string{"hmac-sha2-256"}, Kex: []string{"curve25519-sha256", "ecdh-sha2-nistp256"}},
	}
}

func TestValidateWithTheRealServer(t *testing.T) {
	sshd, err := openssh.FindServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	c := serverConfig(t)
	path := filepath.Join(c.Home, "sshd_config")
	offer, err := sshd.Validate(t.Context(), c, path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Offer, offer); diff != "" {
		t.Errorf("offer (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the configuration: %v, %v", info, err)
	}

	// A client from the future brings names that this sshd does not know.
	want := c.Offer
	c.Offer.Ciphers = append([]string{"aegis256@example.org"}, c.Offer.Ciphers...)
	c.Offer.MACs = append(c.Offer.MACs, "blake3@example.org")
	c.Offer.Kex = append(c.Offer.Kex, "mlkem9999@example.org")
	offer, err = sshd.Validate(t.Context(), c, path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, offer); diff != "" {
		t.Errorf("offer (-want +got):\n%s", diff)
	}
}

func TestValidateExplains(t *testing.T) {
	sshd, err := openssh.FindServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	c := serverConfig(t)
	path := filepath.Join(c.Home, "sshd_config")
	none := c
	none.Offer.Ciphers = []string{"aegis256@example.org"}
	if _, err := sshd.Validate(t.Context(), none, path); err == nil {
		t.Error("an sshd without a common cipher is accepted")
	}
	c.HostKey = filepath.Join(c.Home, "missing")
	if _, err := sshd.Validate(t.Context(), c, path); err == nil || !strings.Contains(err.Error(), "no hostkeys available") {
		t.Errorf("a missing host key: %v", err)
	}
}

// An older sshd lacks options: they are left out, one complaint or many at a time.
func TestValidateLeavesOutUnknownOptions(t *testing.T) {
	c := serverConfig(t)
	path := filepath.Join(c.Home, "sshd_config")
	for name, script := range map[string]string{
		"one at a time": `for o in SetEnv PermitUserRC; do n=$(grep -n "^$o " "$3" | cut -d: -f1); [ -n "$n" ] && {
  echo "$3: line $n: Bad configuration option: $o" >&2; echo "$3: terminating, 1 bad configuration options" >&2; exit 255; }; done; exit 0`,
		"all at once": `bad=0; for o in SetEnv PermitUserRC; do grep -q "^$o " "$3" && { bad=1
  echo "$3: line 1: Bad configuration option: $o" >&2; }; done; exit $bad`,
	} {
		sshd := openssh.Program{Path: fake(t, script)}
		if _, err := sshd.Validate(t.Context(), c, path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for option, want := range map[string]bool{"\nSetEnv ": false, "\nPermitUserRC ": false, "\nPermitTTY ": true, "\nCiphers ": true} {
			if strings.Contains(string(text), option) != want {
				t.Errorf("%s: %q present is %v, want %v", name, option, !want, want)
			}
		}
	}
	// A complaint that changes nothing must not loop.
	sshd := openssh.Program{Path: fake(t, `echo "x: line 1: Bad configuration option: Moon" >&2; exit 255`)}
	if _, err := sshd.Validate(t.Context(), c, path); err == nil || !strings.Contains(err.Error(), "Moon") {
		t.Errorf("an sshd that is never content: %v", err)
	}
}

func TestServeOne(t *testing.T) {
	got := fmt.Sprint(openssh.Program{Path: "/usr/sbin/sshd"}.ServeOne("conf"))
	if want := "[/usr/sbin/sshd -i -e -f conf]"; got != want {
		t.Errorf("ServeOne: %s, want %s", got, want)
	}
}
