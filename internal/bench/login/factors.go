//go:build linux

package login

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/sys/proc"
)

// Factors makes the cases of factors, with what they need: keys, servers, an
// agent. The server must be our own sshd.
type Factors struct {
	bed      *testbed.Testbed
	ends     *Ends
	dir      string
	host     []*keyPair
	user     []*keyPair
	everyKey *Ends // a server that takes all keys
	close    []func() error
}

// NewFactors makes keys and a server for them. The caller closes it.
func (e *Ends) NewFactors(bed *testbed.Testbed) (*Factors, error) {
	f := &Factors{bed: bed, ends: e, dir: bed.Rig.Dir.Path}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Factors) prepare() (err error) {
	if f.host, err = makeKeys(f.dir, "host-"); err != nil {
		return err
	}
	if f.user, err = makeKeys(f.dir, "user-"); err != nil {
		return err
	}
	var lines []string
	var known, permitted strings.Builder
	for i, k := range f.host {
		lines = append(lines, "HostKey "+k.file)
		known.WriteString(loopback.Alias + " " + k.line())
		permitted.WriteString(f.user[i].line())
	}
	if err := f.write("known_hosts.all", known.String()); err != nil {
		return err
	}
	if err := f.write("authorized_keys.all", permitted.String()); err != nil {
		return err
	}
	authority, err := f.authority()
	if err != nil {
		return err
	}
	if err := certify(f.certified(), f.account(), authority); err != nil {
		return err
	}
	lines = append(lines, "AuthorizedKeysFile "+f.file("authorized_keys.all"), "TrustedUserCAKeys "+f.file("authority.pub"), "MaxAuthTries 20")
	f.everyKey, err = f.server("keys", lines...)
	return err
}

func (f *Factors) file(name string) string { return filepath.Join(f.dir, name) }

func (f *Factors) write(name, text string) error {
	return os.WriteFile(f.file(name), []byte(text), 0o600)
}

// authority makes the key that certifies users' keys.
func (f *Factors) authority() (ssh.Signer, error) {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	pair, err := writeKey(f.file("authority"), k)
	if err != nil {
		return nil, err
	}
	return pair.signer, nil
}

// certified is the key that has a certificate: one of its own, for ssh offers a
// certificate wherever it finds one.
func (f *Factors) certified() *keyPair { return f.user[len(f.user)-1] }

// account is the user that logs in.
func (f *Factors) account() string {
	return f.ends.Destination.User
}

// server starts a variant of the private server, with lines before all others
// of its configuration: sshd takes the first of each (sshd_config(5)).
func (f *Factors) server(name string, lines ...string) (*Ends, error) {
	text, err := os.ReadFile(f.file("sshd_config"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if option, _, _ := strings.Cut(line, " "); name != "keys" || option != "HostKey" && option != "HostKeyAlgorithms" && option != "PubkeyAcceptedAlgorithms" {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	config := f.file("sshd_config." + name)
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	argv := []string{f.bed.Environment.ServerPath, "-i", "-e", "-f", config}
	server, err := loopback.Start(argv, f.bed.Rig.Spawner, f.bed.Rig.Dir)
	if err != nil {
		return nil, err
	}
	f.close = append(f.close, server.Close)
	variant, err := f.ends.with(server)
	if err != nil {
		return nil, err
	}
	f.close = append(f.close, variant.Close)
	return variant, nil
}

// Close ends what was started.
func (f *Factors) Close() error {
	var errs []error
	for _, c := range slices.Backward(f.close) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// All are the cases of all factors of this type, one factor at a time.
func (f *Factors) All(ctx context.Context) (cases []Case, err error) {
	cases = slices.Concat(f.hostKeys(), f.userKeys())
	for _, more := range []func(context.Context) ([]Case, error){f.sources, f.knownHosts, f.settings, f.servers} {
		some, err := more(ctx)
		if err != nil {
			return nil, err
		}
		cases = append(cases, some...)
	}
	return cases, nil
}

// Full is the product of key exchanges, host keys and user keys.
func (f *Factors) Full(kex []string) (cases []Case) {
	for _, name := range kex {
		for _, h := range f.host {
			for _, u := range f.user {
				cases = append(cases, f.login(FullFactor, name+" "+h.name+" "+u.name, alg.Suite{Kex: standard(name, kex), HostKey: h.name}, u))
			}
		}
	}
	return cases
}

// login is a case with one host key and one user key.
func (f *Factors) login(factor, level string, want alg.Suite, user *keyPair) Case {
	e := *f.everyKey
	e.Destination.Identities = []string{user.file}
	settings := []string{"UserKnownHostsFile=" + f.file("known_hosts.all"), oldAccepted + user.name}
	return f.everyKey.caseOf(factor, level, e.Argv(want, "true", settings...))
}

// oldAccepted is PubkeyAcceptedAlgorithms by the name that ssh before 8.5 knows, too.
const oldAccepted = "PubkeyAcceptedKeyTypes="

func (f *Factors) hostKeys() (cases []Case) {
	for _, k := range f.host {
		cases = append(cases, f.login(HostKeyFactor, k.name, alg.Suite{HostKey: k.name}, f.user[0]))
	}
	return cases
}

func (f *Factors) userKeys() (cases []Case) {
	for _, k := range f.user[:len(f.user)-1] {
		cases = append(cases, f.login(UserKeyFactor, k.name, alg.Suite{HostKey: f.host[0].name}, k))
	}
	plain, signed := f.certified().name, f.certified().name+"-cert-v01@openssh.com"
	for _, name := range []string{plain, signed} {
		k := *f.certified()
		k.name = name
		cases = append(cases, f.login(UserKeyFactor, name, alg.Suite{HostKey: f.host[0].name}, &k))
	}
	return cases
}

// sources are a key in a file, and in agents with one key and with eight, of
// which the last is the right one.
func (f *Factors) sources(ctx context.Context) ([]Case, error) {
	cases := []Case{f.login(SourceFactor, "file", alg.Suite{HostKey: f.host[0].name}, f.user[0])}
	for _, others := range []int{0, 7} {
		socket, err := f.agent(ctx, others)
		if err != nil {
			return nil, err
		}
		level := fmt.Sprintf("agent, %d keys, the last one is right", others+1)
		if others == 0 {
			level = "agent, 1 key"
		}
		e := *f.everyKey
		e.Destination.Identities = []string{"none"}
		cases = append(cases, f.everyKey.caseOf(SourceFactor, level, e.Argv(alg.Suite{HostKey: f.host[0].name}, "true",
			"UserKnownHostsFile="+f.file("known_hosts.all"), "IdentityAgent="+socket, "IdentitiesOnly=no")))
	}
	return cases, nil
}

// agentStart is how long an agent may take to listen.
const agentStart = 5 * time.Second

// agent starts ssh-agent with some keys that no server takes, and the right one
// behind them.
func (f *Factors) agent(ctx context.Context, others int) (socket string, err error) {
	dir, err := os.Open(f.dir)
	if err != nil {
		return "", err
	}
	f.close = append(f.close, dir.Close)
	socket = fmt.Sprintf("/proc/%d/fd/%d/agent%d", os.Getpid(), dir.Fd(), others) // see StartMaster
	cmd := exec.Command(filepath.Join(filepath.Dir(f.ends.SSH.Path), "ssh-agent"), "-D", "-a", socket)
	proc.Lead(cmd)
	child, err := proc.Begin(cmd, (*exec.Cmd).Start)
	if err != nil {
		return "", err
	}
	f.close = append(f.close, func() error { child.Kill(); return nil })
	var conn net.Conn
	for limit := time.Now().Add(agentStart); conn == nil; {
		if conn, err = net.Dial("unix", socket); err != nil && (time.Now().After(limit) || !sched.For(ctx, 5*time.Millisecond)) {
			return "", err
		}
	}
	defer conn.Close()
	client := agent.NewClient(conn)
	for range others {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			err = client.Add(agent.AddedKey{PrivateKey: k})
		}
		if err != nil {
			return "", err
		}
	}
	right, err := os.ReadFile(f.user[0].file)
	if err != nil {
		return "", err
	}
	private, err := ssh.ParseRawPrivateKey(right)
	if err != nil {
		return "", err
	}
	return socket, client.Add(agent.AddedKey{PrivateKey: private})
}

// knownHosts are files of some lengths, plain and hashed. Split files have one
// line each.
func (f *Factors) knownHosts(context.Context) (cases []Case, err error) {
	own, err := os.ReadFile(f.bed.Keys.KnownHosts)
	if err != nil {
		return nil, err
	}
	for _, form := range []struct {
		level  string
		lines  int
		hashed bool
	}{
		{"split, 1 line each", 0, false}, {"10 lines", 9, false}, {"1,400 lines", 1399, false}, {"20,000 lines", 19999, false},
		{"10 lines, hashed", 9, true}, {"1,400 lines, hashed", 1399, true}, {"20,000 lines, hashed", 19999, true},
	} {
		name := "known_hosts." + strings.ReplaceAll(form.level, " ", "")
		if err := f.write(name, strangers(form.lines, form.hashed)+string(own)); err != nil {
			return nil, err
		}
		cases = append(cases, f.ends.caseOf(KnownHostsFactor, form.level, f.ends.Argv(alg.Suite{}, "true", "UserKnownHostsFile="+f.file(name))))
	}
	return cases, nil
}

// strangers are lines of other hosts. Their keys are no points of the curve,
// which ssh does not look at.
func strangers(lines int, hashed bool) string {
	var text strings.Builder
	blob := make([]byte, ed25519.PublicKeySize)
	for i := range lines {
		name := fmt.Sprintf("host%05d.example.com", i)
		if hashed {
			name = knownhosts.HashName(name)
		}
		_, _ = rand.Read(blob)
		key, _ := ssh.NewPublicKey(ed25519.PublicKey(blob)) // fails on another length only
		text.WriteString(name + " " + string(ssh.MarshalAuthorizedKey(key)))
	}
	return text.String()
}

// settings are a client's: what Debian adds to OpenSSH's defaults, and a name
// with addresses of both families of which only one is listened at.
func (f *Factors) settings(context.Context) ([]Case, error) {
	gssapi, err := f.server("gssapi", "GSSAPIAuthentication yes")
	if err != nil {
		return nil, err
	}
	const methods = "PreferredAuthentications=gssapi-with-mic,hostbased,publickey,keyboard-interactive,password"
	debian := []string{"SendEnv=LANG LC_*", "HashKnownHosts=yes", "GSSAPIAuthentication=yes", methods, "IdentitiesOnly=no"}
	named := *f.ends
	named.Destination.Host = "localhost"
	return []Case{
		f.ends.as(SettingFactor, "OpenSSH's"),
		f.ends.caseOf(SettingFactor, "Debian's", f.ends.Argv(alg.Suite{}, "true", debian...)),
		gssapi.caseOf(SettingFactor, "Debian's, and a server that offers GSSAPI", gssapi.Argv(alg.Suite{}, "true", debian...)),
		f.ends.caseOf(SettingFactor, "localhost, AddressFamily any", named.Argv(alg.Suite{}, "true", "AddressFamily=any")),
		f.ends.caseOf(SettingFactor, "localhost, AddressFamily inet", named.Argv(alg.Suite{}, "true", "AddressFamily=inet")),
	}, nil
}

func (f *Factors) servers(context.Context) ([]Case, error) {
	lookup, err := f.server("dns", "UseDNS yes")
	if err != nil {
		return nil, err
	}
	return []Case{f.ends.as(ServerFactor, "UseDNS no"), lookup.as(ServerFactor, "UseDNS yes")}, nil
}
