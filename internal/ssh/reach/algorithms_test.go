package reach

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// answersTo are the settings under which a server is asked.
func answersTo(key string, more ...string) []string {
	return append(more, "StrictHostKeyChecking=accept-new", "IdentityAgent=none", "IdentityFile="+key, "GlobalKnownHostsFile=none")
}

// supported is a list of the installed ssh, as far as the installed sshd has the names, too.
func supported(t *testing.T, query, keyword, hostKey string) []string {
	t.Helper()
	out, err := exec.Command("ssh", "-Q", query).Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return exec.Command("/usr/sbin/sshd", "-t", "-f", os.DevNull, "-h", hostKey, "-o", keyword+"="+name).Run() != nil
	})
}

// makeHostKeys makes host keys of all kinds.
func makeHostKeys(t *testing.T) map[string]string {
	t.Helper()
	files, dir := map[string]string{}, t.TempDir()
	for name, args := range map[string][]string{
		"ssh-ed25519": {"-t", "ed25519"}, "ecdsa-sha2-nistp256": {"-t", "ecdsa", "-b", "256"}, "ecdsa-sha2-nistp384": {"-t", "ecdsa", "-b", "384"},
		"ecdsa-sha2-nistp521": {"-t", "ecdsa", "-b", "521"}, "rsa-sha2-256": {"-t", "rsa", "-b", "2048"},
	} {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("ssh-keygen", slices.Concat([]string{"-q", "-N", "", "-f", path}, args)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files[name] = path
	}
	files["rsa-sha2-512"], files["ssh-rsa"] = files["rsa-sha2-256"], files["rsa-sha2-256"]
	return files
}

// asked are the settings of a client that change its lists.
var asked = sshtest.Grammar{
	"setting": {"KexAlgorithms=<sign><kex>", "Ciphers=<sign><cipher>", "MACs=<sign><mac>", "HostKeyAlgorithms=<sign><key>", "KexAlgorithms=-curve25519-sha256@libssh.org", "RequiredRSASize=3072", "Compression=yes"},
	"sign":    {"", "+", "-", "^"},
	"kex":     {"curve25519-sha256", "diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1", "ecdh-sha2-nistp256,curve25519-sha256@libssh.org", "sntrup761x25519-sha512@openssh.com", "diffie-hellman-group16-sha512", "curve25519-sha256@libssh.org"},
	"cipher":  {"aes128-ctr", "aes128-cbc,3des-cbc", "chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes192-ctr,aes256-ctr"},
	"mac":     {"hmac-sha1", "hmac-sha2-256", "umac-64@openssh.com", "hmac-sha1-96,hmac-md5", "hmac-sha2-512-etm@openssh.com"},
	"key":     {"ssh-ed25519", "ssh-rsa", "rsa-sha2-256", "ecdsa-sha2-nistp384,ecdsa-sha2-nistp256"},
}

// TestRandomAlgorithms: of servers with one algorithm of a kind, the native engine reaches none
// that ssh does not, and auto all that ssh reaches.
func TestRandomAlgorithms(t *testing.T) {
	t.Parallel()
	keys := makeHostKeys(t)
	kexes, ciphers, macs := supported(t, "kex", "KexAlgorithms", keys["ssh-ed25519"]), supported(t, "cipher", "Ciphers", keys["ssh-ed25519"]), supported(t, "mac", "MACs", keys["ssh-ed25519"])
	count, seed := seedtest.Cases(t, 10)
	var reached, native int
	for n := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		pick := func(list []string) string { return list[rng.IntN(len(list))] }
		var lines []string
		switch rng.IntN(5) {
		case 0, 1:
			lines = append(lines, "KexAlgorithms "+pick(kexes))
		case 2:
			lines = append(lines, "Ciphers "+pick(ciphers))
		case 3:
			lines = append(lines, "MACs "+pick(macs), "Ciphers "+pick([]string{"aes128-ctr", "aes256-ctr", "aes128-cbc"}))
		}
		name := pick([]string{"ssh-ed25519", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-256", "rsa-sha2-512", "ssh-rsa"})
		if len(lines) == 0 || rng.IntN(4) == 0 {
			lines = append(lines, "HostKey "+keys[name], "HostKeyAlgorithms "+name)
		}
		var settings []string
		if rng.IntN(5) < 2 {
			settings = append(settings, asked.Make(rng, "<setting>"))
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := sshtest.StartSshd(t, lines...)
			bySSH := reachedBySSH(t, s, settings)
			results := map[Engine]fleet.Result{}
			for _, engine := range []Engine{Native, Auto} {
				results[engine] = try(t, s, engine, answersTo(s.Key, append(settings, "UserKnownHostsFile="+filepath.Join(t.TempDir(), "known"))...))
			}
			byNative, byAuto := results[Native], results[Auto]
			if bySSH {
				reached++
			}
			if byNative.Status() == fleet.OK {
				native++
			}
			if byNative.Status() == fleet.OK && !bySSH || (byAuto.Status() == fleet.OK) != bySSH {
				t.Errorf("%q, client %q: ssh %v, native %v %s, auto %v %s", lines, settings, bySSH, byNative.Class, byNative.Err, byAuto.Class, byAuto.Err)
			}
		})
	}
	t.Logf("%d servers: ssh reaches %d, the native engine %d; seed %d", count, reached, native, seed)
}

// reachedBySSH reports whether ssh runs a command there.
func reachedBySSH(t *testing.T, s *sshtest.Sshd, settings []string) bool {
	t.Helper()
	args := []string{"-F", "none", "-p", fmt.Sprint(s.Port), "-l", s.User}
	for _, setting := range append(answersTo(s.Key, settings...), "UserKnownHostsFile="+filepath.Join(t.TempDir(), "known"), "BatchMode=yes") {
		args = append(args, "-o", setting)
	}
	out, err := exec.CommandContext(t.Context(), "ssh", append(args, "127.0.0.1", "true")...).CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || ended.ExitCode() != 255) {
		t.Fatalf("ssh: %v: %s", err, out)
	}
	return err == nil
}

// TestOnlySSHHasTheAlgorithm: a server with which only ssh has algorithms in common is reached by
// ssh, which is known for the rest of the run. A command runs once.
func TestOnlySSHHasTheAlgorithm(t *testing.T) {
	for what, lines := range map[string][]string{
		"MAC": {"Ciphers aes128-ctr", "MACs umac-64@openssh.com"}, "key exchange": {"KexAlgorithms sntrup761x25519-sha512@openssh.com"},
		"group": {"KexAlgorithms diffie-hellman-group18-sha512"},
	} {
		t.Run(what, func(t *testing.T) {
			s := sshtest.StartSshd(t, append(lines, "LogLevel VERBOSE")...)
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			settings := answersTo(s.Key, "UserKnownHostsFile="+filepath.Join(dir, "known"))
			results := runTwice(t, s, Auto, settings, "echo ran >>"+log)
			for _, r := range results {
				if r.Status() != fleet.OK || r.Engine != "openssh" {
					t.Errorf("%+v", r)
				}
			}
			if text, err := os.ReadFile(log); err != nil || string(text) != "ran\nran\n" {
				t.Errorf("it ran: %q, %v", text, err)
			}
			if refused := strings.Count(s.Log(), "Unable to negotiate"); refused > 2 { // both hosts at once
				t.Errorf("%d connections without an algorithm in common, of both hosts together", refused)
			}
			for _, r := range runTwice(t, s, Native, settings, "true") {
				if r.Class != fleet.NoCommonAlgo || !strings.Contains(r.Hint, "--engine openssh") {
					t.Errorf("%+v", r)
				}
			}
			t.Setenv("PATH", dir)
			for _, r := range runTwice(t, s, Auto, settings, "true") {
				if r.Class != fleet.NoCommonAlgo || !strings.Contains(r.Hint, "install the OpenSSH client") {
					t.Errorf("without ssh: %+v", r)
				}
			}
		})
	}
}

// TestOnlySSHHasTheJumpsAlgorithm: the same behind a jump host that only ssh reaches.
func TestOnlySSHHasTheJumpsAlgorithm(t *testing.T) {
	s, jump := sshtest.StartSshd(t), sshtest.StartSshd(t, "KexAlgorithms sntrup761x25519-sha512@openssh.com")
	dir := t.TempDir()
	log, file := filepath.Join(dir, "log"), filepath.Join(dir, "config")
	text := fmt.Sprintf("Host jump\nPort %d\nIdentityFile %s\nHost behind\nPort %d\nIdentityFile %s\nProxyJump jump\nHost *\nHostName 127.0.0.1\nUser %s\n"+
		"IdentityAgent none\nStrictHostKeyChecking accept-new\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\n", jump.Port, jump.Key, s.Port, s.Key, s.User, filepath.Join(dir, "known"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: file}}}
	for engine, want := range map[Engine]fleet.Class{Auto: fleet.NoFailure, Native: fleet.NoCommonAlgo} {
		p.Engine = engine
		executor, err := New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		sink := &sshtest.Told{}
		_, err = fanout.Run(t.Context(), fanout.Params{}, []host.Host{{Name: "behind"}}, fleet.Command{Line: "echo ran >>" + log}, executor, sink)
		executor.Close()
		if r := sink.Results()[0]; err != nil || r.Class != want || want == fleet.NoFailure && r.Engine != "openssh" || want != fleet.NoFailure && !strings.Contains(r.Hint, "--engine openssh") {
			t.Errorf("%s: %v, %+v", engine, err, r)
		}
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "ran\n" {
		t.Errorf("it ran: %q, %v", text, err)
	}
}

// TestNoMoreThanSSHOffers: nothing is agreed on that ssh itself would not take.
func TestNoMoreThanSSHOffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, settings []string }{
		{[]string{"KexAlgorithms diffie-hellman-group14-sha1"}, nil},
		{[]string{"Ciphers aes128-ctr", "MACs hmac-sha1-96"}, nil},
		{[]string{"KexAlgorithms curve25519-sha256@libssh.org"}, []string{"KexAlgorithms=-curve25519-sha256@libssh.org"}},
		{[]string{"KexAlgorithms curve25519-sha256@libssh.org", "Ciphers aes128-ctr"}, []string{"KexAlgorithms=-curve25519-sha256@libssh.org"}},
	} {
		s := sshtest.StartSshd(t, c.server...)
		if reachedBySSH(t, s, c.settings) {
			t.Errorf("ssh reaches %q", c.server)
		}
		for _, engine := range []Engine{Native, Auto} {
			r := try(t, s, engine, answersTo(s.Key, append(c.settings, "UserKnownHostsFile="+filepath.Join(t.TempDir(), "known"))...))
			if r.Class != fleet.NoCommonAlgo || r.Ran != fleet.RanNo {
				t.Errorf("%s, %q: %+v", engine, c, r)
			}
		}
	}
}

// runTwice runs a command on a server as on two hosts.
func runTwice(t *testing.T, s *sshtest.Sshd, engine Engine, settings []string, line string) []fleet.Result {
	t.Helper()
	return tryAll(t, s, engine, settings, []host.Host{{Name: "127.0.0.1", Label: "a"}, {Name: "127.0.0.1", Label: "b"}}, line)
}

// TestUnknownAlgorithm: a list with a name that the installed ssh does not know is a mistake of the
// configuration, as for ssh.
func TestUnknownAlgorithm(t *testing.T) {
	s := sshtest.StartSshd(t)
	for _, setting := range []string{"KexAlgorithms=curve25519-sha256,kex-of-tomorrow", "Ciphers=aes128-gcm@openssh.com,aes999", "HostKeyAlgorithms=ssh-ed25519,none-such"} {
		if reachedBySSH(t, s, []string{setting}) {
			t.Errorf("ssh takes %s", setting)
		}
		if r := try(t, s, Native, answersTo(s.Key, setting, "UserKnownHostsFile="+filepath.Join(t.TempDir(), "known"))); r.Status() == fleet.OK || r.Class != fleet.Local || r.Ran != fleet.RanNo {
			t.Errorf("%s: %+v", setting, r)
		}
	}
}
