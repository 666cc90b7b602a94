package reach

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// command runs a program that has to succeed, with an environment of its own where env is not nil.
func command(t *testing.T, env []string, argv ...string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	if env != nil {
		c.Env = append(os.Environ(), env...)
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pool is keys of all kinds, and certificates of them by two authorities, one of which counts: in a
// directory, by the names NAME, NAME.pub, NAME-good and NAME-bad.
func pool(t *testing.T, dir, user string) (names []string) {
	t.Helper()
	for _, ca := range []string{"good", "bad"} {
		command(t, nil, "ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", filepath.Join(dir, ca))
	}
	for i, kind := range []string{"ed25519", "ed25519", "ecdsa", "rsa", "dsa"} {
		name := fmt.Sprint(kind, i)
		names = append(names, name)
		path := filepath.Join(dir, name)
		command(t, nil, "ssh-keygen", "-q", "-N", "", "-t", kind, "-f", path)
		for _, ca := range []string{"good", "bad"} {
			command(t, nil, "ssh-keygen", "-q", "-s", filepath.Join(dir, ca), "-I", "id", "-n", user, path+".pub")
			if err := os.Rename(path+"-cert.pub", path+"-"+ca); err != nil {
				t.Fatal(err)
			}
		}
	}
	return names
}

// runAgent runs ssh-agent until the test ends.
func runAgent(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "agent")
	serve(t, socket, "ssh-agent", "-D", "-a", socket)
	return socket
}

// serve runs a program that listens at a socket until the test ends.
func serve(t *testing.T, socket string, argv ...string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	waittest.Until(t, argv[0]+" listens", sshtest.Listens("unix", socket))
}

// TestOnlySSHKnowsTheKey: a key that only ssh can sign with is given to ssh, where the native
// engine's have not logged in.
func TestOnlySSHKnowsTheKey(t *testing.T) {
	s, dir := sshtest.StartSshd(t, "PubkeyAcceptedAlgorithms +ssh-dss"), t.TempDir()
	path := filepath.Join(dir, "dsa")
	command(t, nil, "ssh-keygen", "-q", "-N", "", "-t", "dsa", "-f", path)
	put(t, filepath.Join(s.Dir, "authorized_keys"), textOf(t, path+".pub"), 0o600)
	settings := answersTo(path, "PubkeyAcceptedAlgorithms=+ssh-dss", "UserKnownHostsFile="+filepath.Join(dir, "known"))
	for engine, want := range map[Engine]fleet.Class{Auto: fleet.NoFailure, Native: fleet.AuthFailed} {
		r := try(t, s, engine, settings)
		if r.Class != want || want == fleet.NoFailure && r.Engine != "openssh" || want != fleet.NoFailure && !strings.Contains(r.Hint, "only ssh can use a key of type ssh-dss") {
			t.Errorf("%s: %+v", engine, r)
		}
	}
	if r := try(t, s, Auto, answersTo(path, "UserKnownHostsFile="+filepath.Join(dir, "known"))); r.Class != fleet.AuthFailed || r.Engine != "native" {
		t.Errorf("a type that ssh would not offer: %+v", r)
	}
}

// TestRandomIdentities: with keys, certificates and agents of all kinds, under random settings,
// auto logs in where ssh does, and the native engine nowhere else.
func TestRandomIdentities(t *testing.T) {
	dir, other := t.TempDir(), sshtest.NewKey(t).PublicKey()
	trusted := filepath.Join(dir, "good.pub")
	s := sshtest.StartSshd(t, "TrustedUserCAKeys "+trusted, "PubkeyAcceptedAlgorithms +ssh-dss,ssh-dss-cert-v01@openssh.com", "MaxAuthTries 50")
	names := pool(t, dir, s.User)
	known := filepath.Join(dir, "known")
	put(t, known, fmt.Sprintf("[127.0.0.1]:%d %sthere %s", s.Port, sshtest.AuthorizedLine(s.HostKey), sshtest.AuthorizedLine(other)), 0o600)
	count, seed := seedtest.Cases(t, 15)
	var reached, native int
	for n := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := identityCase{t: t, rng: rng, pool: dir, names: names, dir: t.TempDir(), known: known, certified: map[string]bool{}, here: fmt.Sprintf("[127.0.0.1]:%d", s.Port)}
			settings := append(c.make(filepath.Join(s.Dir, "authorized_keys")), "UserKnownHostsFile="+known, "GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes")
			args := []string{"-F", "none", "-p", fmt.Sprint(s.Port), "-l", s.User, "-o", "BatchMode=yes"}
			for _, setting := range settings {
				args = append(args, "-o", setting)
			}
			out, err := exec.CommandContext(t.Context(), "ssh", append(args, "127.0.0.1", "true")...).CombinedOutput()
			bySSH, byNative, byAuto := err == nil, try(t, s, Native, settings), try(t, s, Auto, settings)
			if bySSH {
				reached++
			}
			if byNative.Status() == fleet.OK {
				native++
			}
			if byNative.Status() == fleet.OK && !bySSH || (byAuto.Status() == fleet.OK) != bySSH {
				t.Errorf("%q\n%s\nssh %v (%s), native %v %s (%s), auto %v %s", settings, strings.Join(c.made, "\n"), bySSH, out, byNative.Class, byNative.Err, byNative.Hint, byAuto.Class, byAuto.Err)
			}
		})
	}
	t.Logf("%d cases: ssh reaches %d, the native engine %d; seed %d", count, reached, native, seed)
}

// identityCase makes one case.
type identityCase struct {
	t           *testing.T
	rng         *rand.Rand
	pool, dir   string
	names       []string
	known, here string
	certified   map[string]bool // keys with certificates: some releases of ssh cannot use them with an agent that has the key for some hosts only
	made        []string        // what was made, for messages
}

func (c *identityCase) pick(texts ...string) string { return texts[c.rng.IntN(len(texts))] }

// file copies a file of the pool.
func (c *identityCase) file(from, to string, mode os.FileMode) {
	put(c.t, filepath.Join(c.dir, to), textOf(c.t, filepath.Join(c.pool, from)), mode)
	c.made = append(c.made, fmt.Sprintf("%s: %s, %04o", to, from, mode))
}

// make makes files, an agent and the server's list of keys, and returns settings that use them.
func (c *identityCase) make(authorized string) (settings []string) {
	var lines []string
	for _, name := range c.names {
		if c.rng.IntN(3) == 0 {
			lines = append(lines, textOf(c.t, filepath.Join(c.pool, name+".pub")))
			c.made = append(c.made, "authorized: "+name)
		}
	}
	put(c.t, authorized, strings.Join(lines, ""), 0o600)
	for i, name := range c.rng.Perm(len(c.names))[:1+c.rng.IntN(3)] {
		settings = append(settings, "IdentityFile="+filepath.Join(c.dir, c.key(c.names[name], fmt.Sprint("key", i))))
	}
	for range c.rng.IntN(4) - 1 {
		name, ca := c.pick(c.names...), c.pick("good", "good", "bad")
		settings = append(settings, "CertificateFile="+filepath.Join(c.pool, name+"-"+ca))
		c.certified[name] = true
	}
	settings = append(settings, "IdentitiesOnly="+c.pick("yes", "no"))
	if list := c.pick("", "", "+ssh-dss,ssh-dss-cert-v01@openssh.com", "ssh-ed25519", "-ssh-ed25519", "*-cert-v01@openssh.com", "rsa-sha2-512,ecdsa-sha2-nistp256"); list != "" {
		settings = append(settings, "PubkeyAcceptedAlgorithms="+list)
	}
	return append(settings, "IdentityAgent="+c.agent())
}

// key makes an identity, in as many ways as there are.
func (c *identityCase) key(name, as string) (file string) {
	switch c.rng.IntN(6) {
	case 0: // no private key
	case 1:
		c.file(name, as, 0o644)
	default:
		c.file(name, as, 0o600)
	}
	if from := c.pick("", name+".pub", name+".pub", name+"-good", name+"-bad"); from != "" {
		c.file(from, as+".pub", 0o600)
		c.certified[name] = c.certified[name] || !strings.HasSuffix(from, ".pub")
	}
	if from := c.pick("", "", name+"-good", name+"-bad"); from != "" {
		c.file(from, as+"-cert.pub", 0o600)
		c.certified[name] = true
	}
	return as
}

// agent runs one with some keys, some of which are for some hosts only.
func (c *identityCase) agent() (socket string) {
	if c.rng.IntN(3) == 0 {
		return "none"
	}
	socket = runAgent(c.t)
	for _, name := range c.names {
		if c.rng.IntN(2) == 0 {
			continue
		}
		args, as := []string{"ssh-add", "-q"}, "agent-"+name
		c.file(name, as, 0o600)
		if host := c.pick("", "", c.here, "there"); host != "" && !c.certified[name] {
			args = append(args, "-H", c.known, "-h", host)
		} else if from := c.pick("", name+"-good", name+"-bad"); from != "" {
			c.file(from, as+"-cert.pub", 0o600)
		}
		command(c.t, []string{"SSH_AUTH_SOCK=" + socket}, append(args, filepath.Join(c.dir, as))...)
		c.made = append(c.made, strings.Join(args, " ")+" "+as)
	}
	return socket
}
