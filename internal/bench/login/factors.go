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
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// prepare makes everything that the cases of factors need: keys, and a server for them, which must
// be our own sshd.
func (s *Study) prepare(ctx context.Context, ends *Ends) (err error) {
	s.ends = ends
	if s.host, err = makeKeys(s.Bed.Dir, "host-"); err != nil {
		return err
	}
	if s.user, err = makeKeys(s.Bed.Dir, "user-"); err != nil {
		return err
	}
	var lines []string
	var known, permitted strings.Builder
	for i, k := range s.host {
		lines = append(lines, "HostKey "+k.file)
		known.WriteString(loopback.Alias + " " + k.line())
		permitted.WriteString(s.user[i].line())
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	authority, err := writeKey(s.Bed.Dir, "authority", private) // that certifies users' keys
	if err == nil {
		err = errors.Join(s.write("known_hosts.all", known.String()), s.write("authorized_keys.all", permitted.String()),
			certify(s.certified(), s.ends.Destination.User, authority.signer))
	}
	if err != nil {
		return err
	}
	lines = append(lines, "AuthorizedKeysFile "+s.Bed.Dir.File("authorized_keys.all"), "TrustedUserCAKeys "+authority.file+".pub", "MaxAuthTries 20")
	s.everyKey, err = s.server(ctx, "keys", lines...)
	return err
}

func (s *Study) write(name, text string) error { return s.Bed.Dir.WriteFile(name, []byte(text), 0o600) }

// certified returns the key with a certificate: a separate one, because ssh offers a certificate
// wherever it finds one.
func (s *Study) certified() *keyPair { return s.user[len(s.user)-1] }

// server starts a variant of the private server, with lines before all others of its configuration:
// sshd takes the first of each (sshd_config(5)).
func (s *Study) server(ctx context.Context, name string, lines ...string) (*Ends, error) {
	text, err := os.ReadFile(s.Bed.Dir.File("sshd_config"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if option, _, _ := strings.Cut(line, " "); name != "keys" || option != "HostKey" && option != "HostKeyAlgorithms" && option != "PubkeyAcceptedAlgorithms" {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	config := s.Bed.Dir.File("sshd_config." + name)
	if err := s.write("sshd_config."+name, strings.Join(lines, "\n")+"\n"); err != nil {
		return nil, err
	}
	server, _, err := s.Bed.Serve(ctx, openssh.Program{Path: s.Bed.Environment.ServerPath}.ServeOne(config), s.Bed.Connect)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, server.Close)
	variant, err := s.ends.with(server)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, variant.Close)
	return variant, nil
}

// all returns the cases of all factors of this type, one factor at a time.
func (s *Study) all(ctx context.Context) (cases []Case, err error) {
	cases = slices.Concat(s.hostKeys(), s.userKeys())
	for _, more := range []func(context.Context) ([]Case, error){s.sources, s.knownHosts, s.settings, s.servers} {
		some, err := more(ctx)
		if err != nil {
			return nil, err
		}
		cases = append(cases, some...)
	}
	return cases, nil
}

// full returns the product of key exchanges, host keys and user keys.
func (s *Study) full(kex []string) (cases []Case) {
	for _, name := range kex {
		for _, h := range s.host {
			for _, u := range s.user {
				cases = append(cases, s.login(FullFactor, name+" "+h.name+" "+u.name, alg.Suite{Kex: standard(name, kex), HostKey: h.name}, u))
			}
		}
	}
	return cases
}

// login returns a case with one host key and one user key.
func (s *Study) login(factor, level string, want alg.Suite, user *keyPair) Case {
	e := *s.everyKey
	e.Destination.Identities = []string{user.file}
	settings := []string{"UserKnownHostsFile=" + s.Bed.Dir.File("known_hosts.all"), oldAccepted + user.name}
	return s.everyKey.caseOf(factor, level, e.Argv(want, "true", settings...))
}

// oldAccepted is PubkeyAcceptedAlgorithms by its name in ssh before 8.5.
const oldAccepted = "PubkeyAcceptedKeyTypes="

func (s *Study) hostKeys() (cases []Case) {
	for _, k := range s.host {
		cases = append(cases, s.login(HostKeyFactor, k.name, alg.Suite{HostKey: k.name}, s.user[0]))
	}
	return cases
}

func (s *Study) userKeys() (cases []Case) {
	for _, k := range s.user[:len(s.user)-1] {
		cases = append(cases, s.login(UserKeyFactor, k.name, alg.Suite{HostKey: s.host[0].name}, k))
	}
	plain, signed := s.certified().name, s.certified().name+"-cert-v01@openssh.com"
	for _, name := range []string{plain, signed} {
		k := *s.certified()
		k.name = name
		cases = append(cases, s.login(UserKeyFactor, name, alg.Suite{HostKey: s.host[0].name}, &k))
	}
	return cases
}

// sources returns a key in a file, and in agents with one key and with eight, of which the last is
// the right one.
func (s *Study) sources(ctx context.Context) ([]Case, error) {
	cases := []Case{s.login(SourceFactor, "file", alg.Suite{HostKey: s.host[0].name}, s.user[0])}
	for _, others := range []int{0, 7} {
		socket, err := s.agent(ctx, others)
		if err != nil {
			return nil, err
		}
		level := fmt.Sprintf("agent, %d keys, the last one is right", others+1)
		if others == 0 {
			level = "agent, 1 key"
		}
		e := *s.everyKey
		e.Destination.Identities = []string{"none"}
		cases = append(cases, s.everyKey.caseOf(SourceFactor, level, e.Argv(alg.Suite{HostKey: s.host[0].name}, "true",
			"UserKnownHostsFile="+s.Bed.Dir.File("known_hosts.all"), "IdentityAgent="+socket, "IdentitiesOnly=no")))
	}
	return cases, nil
}

// agentStart is the time for an agent to listen.
const agentStart = 5 * time.Second

// agent starts ssh-agent with some keys that no server accepts, and then the right one.
func (s *Study) agent(ctx context.Context, others int) (socket string, err error) {
	short, dir, err := safedir.Short(s.Bed.Dir.Path)
	if err != nil {
		return "", err
	}
	s.close = append(s.close, dir.Close)
	socket = fmt.Sprintf("%s/agent%d", short, others)
	cmd := exec.Command(filepath.Join(filepath.Dir(s.ends.SSH.Path), "ssh-agent"), "-D", "-a", socket)
	proc.Lead(cmd)
	child, err := proc.Begin(cmd, (*exec.Cmd).Start)
	if err != nil {
		return "", err
	}
	s.close = append(s.close, func() error { child.Kill(); return nil })
	var conn net.Conn
	if sched.Poll(ctx, agentStart, 5*time.Millisecond, func() bool { conn, err = net.Dial("unix", socket); return err == nil }) != nil {
		return "", err
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
	right, err := os.ReadFile(s.user[0].file)
	if err != nil {
		return "", err
	}
	private, err := ssh.ParseRawPrivateKey(right)
	if err != nil {
		return "", err
	}
	return socket, client.Add(agent.AddedKey{PrivateKey: private})
}

// knownHosts returns files of some lengths, plain and hashed. Split files have one line each.
func (s *Study) knownHosts(context.Context) (cases []Case, err error) {
	own, err := os.ReadFile(s.Bed.Keys.KnownHosts)
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
		if err := s.write(name, strangers(form.lines, form.hashed)+string(own)); err != nil {
			return nil, err
		}
		cases = append(cases, s.ends.caseOf(KnownHostsFactor, form.level, s.ends.Argv(alg.Suite{}, "true", "UserKnownHostsFile="+s.Bed.Dir.File(name))))
	}
	return cases, nil
}

// strangers returns lines of other hosts. Their keys are not points of the curve, which ssh does
// not check.
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

// settings returns settings of a client: Debian's additions to OpenSSH's defaults, and a name with
// addresses of both families, with a server on only one.
func (s *Study) settings(ctx context.Context) ([]Case, error) {
	gssapi, err := s.server(ctx, "gssapi", "GSSAPIAuthentication yes")
	if err != nil {
		return nil, err
	}
	const methods = "PreferredAuthentications=gssapi-with-mic,hostbased,publickey,keyboard-interactive,password"
	debian := []string{"SendEnv=LANG LC_*", "HashKnownHosts=yes", "GSSAPIAuthentication=yes", methods, "IdentitiesOnly=no"}
	named := *s.ends
	named.Destination.Host = "localhost"
	return []Case{
		s.ends.as(SettingFactor, "OpenSSH's"),
		s.ends.caseOf(SettingFactor, "Debian's", s.ends.Argv(alg.Suite{}, "true", debian...)),
		gssapi.caseOf(SettingFactor, "Debian's, and a server that offers GSSAPI", gssapi.Argv(alg.Suite{}, "true", debian...)),
		s.ends.caseOf(SettingFactor, "localhost, AddressFamily any", named.Argv(alg.Suite{}, "true", "AddressFamily=any")),
		s.ends.caseOf(SettingFactor, "localhost, AddressFamily inet", named.Argv(alg.Suite{}, "true", "AddressFamily=inet")),
	}, nil
}

func (s *Study) servers(ctx context.Context) ([]Case, error) {
	lookup, err := s.server(ctx, "dns", "UseDNS yes")
	if err != nil {
		return nil, err
	}
	return []Case{s.ends.as(ServerFactor, "UseDNS no"), lookup.as(ServerFactor, "UseDNS yes")}, nil
}
