package reach

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// typist answers as a person does, one question at a time.
type typist struct {
	t      *testing.T
	answer func(text string, secret bool) (string, error)

	mu     sync.Mutex
	away   bool
	asking bool
	asked  []string
	shown  []string
}

func (p *typist) person() *dial.Person {
	person := dial.NewPerson(func(do func()) { do() }, func(_ context.Context, text string, secret bool) (string, error) {
		p.mu.Lock()
		if p.asking {
			p.t.Error("two questions at once")
		}
		p.asking, p.asked = true, append(p.asked, text)
		p.mu.Unlock()
		answer, err := p.answer(text, secret)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asking = false
		return answer, err
	}, func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.shown = append(p.shown, text)
	})
	person.Away = func() bool { return p.away }
	return person
}

// asks runs true on hosts whose servers may ask.
func (p *typist) asks(config string, timeout time.Duration, names ...string) []fleet.Result {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
	executor, err := New(p.t.Context(), Params{
		Params: route.Params{Getenv: func(string) string { return "" }, Flags: conf.Flags{Config: path}, ConnectTimeout: timeout},
		Engine: Native, Person: p.person(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer executor.Close()
	sink := &sshtest.Told{}
	var hosts []host.Host
	for _, name := range names {
		hosts = append(hosts, host.Host{Name: name})
	}
	if _, err := fanout.Run(p.t.Context(), fanout.Params{}, hosts, fleet.Command{Line: "true"}, executor, sink); err != nil {
		p.t.Fatal(err)
	}
	return sink.Results()
}

// personConfig is a configuration with hosts web0 to web9 on a server.
func personConfig(t *testing.T, port int, user string, key ssh.PublicKey, more ...string) string {
	t.Helper()
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("* "+sshtest.AuthorizedLine(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "Host web%d\n HostName 127.0.0.%d\n", i, i+1)
	}
	fmt.Fprintf(&b, "Host *\n %s\n Port %d\n User %s\n UserKnownHostsFile %s\n GlobalKnownHostsFile none\n IdentityAgent none\n IdentityFile none\n",
		strings.Join(more, "\n "), port, user, known)
	return b.String()
}

// TestPerson: a person is asked by one host after the other, with its name, again after a wrong
// answer, and for longer than a login may take.
func TestPerson(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "UsePAM yes", "KbdInteractiveAuthentication yes", "AuthenticationMethods publickey,keyboard-interactive:pam")
	wrong := map[string]bool{"(nobody@web1) Password: ": true}
	p := &typist{t: t}
	p.answer = func(text string, secret bool) (string, error) {
		if !secret {
			t.Errorf("%q shows the answer", text)
		}
		time.Sleep(1200 * time.Millisecond)
		if wrong[text] {
			wrong[text] = false
			return "wrong", nil
		}
		return "hidden word", nil
	}
	for _, r := range p.asks(personConfig(t, s.Port, s.User, s.HostKey, "IdentityFile "+s.Key), time.Second, "web0", "web1", "web2") {
		if r.Status() != fleet.OK || r.Engine != "native" {
			t.Errorf("%s: %v %s %s", r.Host.Name, r.Class, r.Err, r.Hint)
		}
	}
	slices.Sort(p.asked)
	if got := strings.Join(p.asked, "|"); got != "(nobody@web0) Password: |(nobody@web1) Password: |(nobody@web1) Password: |(nobody@web2) Password: " {
		t.Error(got)
	}
}

// TestPersonIsSlow: a server that gives up while a person is asked is logged in to again, and asks
// again; who waits for others has no connection that could be given up.
func TestPersonIsSlow(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes", "LoginGraceTime 1")
	jump := sshtest.StartSshd(t)
	config := personConfig(t, s.Port, s.User, s.HostKey)
	for path, before := range map[string]string{
		"direct": "",
		"behind a jump host": fmt.Sprintf("Host gate\n HostName 127.0.0.1\n HostKeyAlias gate\n Port %d\n User %s\n IdentityFile %s\n KnownHostsCommand /bin/echo gate %sHost web*\n ProxyJump gate\n",
			jump.Port, jump.User, jump.Key, sshtest.AuthorizedLine(jump.HostKey)),
	} {
		p, slow := &typist{t: t}, true
		p.answer = func(string, bool) (string, error) {
			if slow {
				slow = false
				if !waittest.Comes(func() bool { return s.Processes(t) == 0 }) {
					t.Error("a host is connected while another one is asked")
				}
				time.Sleep(50 * time.Millisecond) // the jump host says so, too
			}
			return "hidden word", nil
		}
		for _, r := range p.asks(before+config, 0, "web0", "web1") {
			if r.Status() != fleet.OK {
				t.Errorf("%s: %s: %v %s %s", path, r.Host.Name, r.Class, r.Err, r.Hint)
			}
		}
		if len(p.asked) != 3 || len(p.shown) != 1 || !strings.Contains(p.shown[0], "the server has ended the login meanwhile") {
			t.Errorf("%s: asked %q, shown %q", path, p.asked, p.shown)
		}
	}
}

// TestPersonGivesUp: without an answer, or with none that is right, only the host itself fails; as
// often as ssh_config says.
func TestPersonGivesUp(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes", "LogLevel VERBOSE")
	for _, test := range []struct {
		setting string
		asked   int
		hint    string
	}{
		{"NumberOfPasswordPrompts 2", 2, "the answers were refused"},
		{"BatchMode yes", 0, ""},
		{"NumberOfPasswordPrompts 0", 0, ""},
		{"PasswordAuthentication no", 0, ""},
		{"Port " + fmt.Sprint(s.Port), 3, "the answers were refused"},
		{"ServerAliveCountMax 4", 0, ""},
	} {
		p := &typist{t: t, answer: func(text string, _ bool) (string, error) {
			if strings.Contains(text, "web1") {
				return "", errors.New("nobody is there")
			}
			return "wrong", nil
		}}
		p.away = test.setting == "ServerAliveCountMax 4"
		before := strings.Count(s.Log(), "Failed password")
		for _, r := range p.asks(personConfig(t, s.Port, s.User, s.HostKey, test.setting), 0, "web0") {
			if r.Class != fleet.AuthFailed || !strings.Contains(r.Hint, test.hint) {
				t.Errorf("%s: %v %s %s", test.setting, r.Class, r.Err, r.Hint)
			}
		}
		if len(p.asked) != test.asked || !waittest.Comes(func() bool { return strings.Count(s.Log(), "Failed password")-before == test.asked }) {
			t.Errorf("%s: asked %q; %s", test.setting, p.asked, s.Log())
		}
		p.away = false
		for _, r := range p.asks(personConfig(t, s.Port, s.User, s.HostKey), 0, "web1") {
			if r.Class != fleet.AuthFailed || r.Hint != "nobody is there" {
				t.Errorf("%s: %v %s %s", r.Host.Name, r.Class, r.Err, r.Hint)
			}
		}
	}
}

// TestOddQuestions: several rounds, texts without a question, as those of a push, answers that may
// be shown, and a server that says what others say: all of it is a host's own.
func TestOddQuestions(t *testing.T) {
	s := &sshtest.Server{Ask: func(client ssh.KeyboardInteractiveChallenge) error {
		time.Sleep(time.Second) // as after a push
		first, err := client("Token\x1b[2J", "A push\r\n\n(root@bank) Password: was sent\n", nil, nil)
		second, err2 := client("", "", []string{"Name: ", "Enter the\nco\u202ede: "}, []bool{true, false})
		third, err3 := client("", "", nil, nil)
		if fmt.Sprint(first, second, third) != "[] [bob 123456] []" {
			return fmt.Errorf("%q %q %q", first, second, third)
		}
		return errors.Join(err, err2, err3)
	}}
	s.Start(t)
	p := &typist{t: t}
	p.answer = func(text string, secret bool) (string, error) {
		if secret {
			return "123456", nil
		}
		return "bob", nil
	}
	for _, r := range p.asks(personConfig(t, s.Port(), "u", s.HostKey.PublicKey()), 500*time.Millisecond, "web3") {
		if r.Status() != fleet.OK {
			t.Errorf("%v %s %s", r.Class, r.Err, r.Hint)
		}
	}
	if got := strings.Join(p.shown, "|"); got != "(u@web3) Token\n(u@web3) A push\n(u@web3) (root@bank) Password: was sent\n" {
		t.Errorf("shown %q", got)
	}
	if got := strings.Join(p.asked, "|"); got != "(u@web3) Name: |(u@web3) Enter the\n(u@web3) co\\u202ede: " {
		t.Errorf("asked %q", got)
	}
}

// TestPersonBehindJumpHost: a jump host asks once for all hosts behind it, which wait for the
// person no less than they do themselves.
func TestPersonBehindJumpHost(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes")
	p := &typist{t: t, answer: func(string, bool) (string, error) {
		time.Sleep(1200 * time.Millisecond)
		return "hidden word", nil
	}}
	config := "Host web1 web2\n ProxyJump web0\n IdentityFile " + s.Key + "\n" + personConfig(t, s.Port, s.User, s.HostKey)
	for _, r := range p.asks(config, time.Second, "web1", "web2") {
		if r.Status() != fleet.OK {
			t.Errorf("%s: %v %s %s", r.Host.Name, r.Class, r.Err, r.Hint)
		}
	}
	if len(p.asked) != 1 || p.asked[0] != "(nobody@web0) Password: " {
		t.Errorf("asked %q", p.asked)
	}
}

// TestJumpHostIsLost: who is asked, and has to log in to the jump host once more for that, does not
// wait for itself.
func TestJumpHostIsLost(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes")
	jump := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes")
	p, lost := &typist{t: t}, false
	p.answer = func(text string, _ bool) (string, error) {
		if strings.Contains(text, "web") && !lost {
			lost = true
			jump.Signal(t, syscall.SIGTERM)
			time.Sleep(200 * time.Millisecond)
		}
		return "hidden word", nil
	}
	config := fmt.Sprintf("Host gate\n HostName 127.0.0.1\n HostKeyAlias gate\n Port %d\n KnownHostsCommand /bin/echo gate %sHost web*\n ProxyJump gate\n",
		jump.Port, sshtest.AuthorizedLine(jump.HostKey)) + personConfig(t, s.Port, s.User, s.HostKey)
	for _, r := range p.asks(config, 0, "web1") {
		if r.Status() != fleet.OK {
			t.Errorf("%s: %v %s %s", r.Host.Name, r.Class, r.Err, r.Hint)
		}
	}
	if len(p.asked) != 4 {
		t.Errorf("asked %q", p.asked)
	}
}

// TestPersonOpensKeys: the passphrase of a key is asked for once, again where it is wrong, while
// all hosts wait; in a batch nobody is asked.
func TestPersonOpensKeys(t *testing.T) {
	s := sshtest.StartSshdForOther(t)
	key := filepath.Join(t.TempDir(), "key")
	data, err := os.ReadFile(s.Key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte("secret words"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &typist{t: t}
	p.answer = func(string, bool) (string, error) {
		if time.Sleep(700 * time.Millisecond); len(p.asked) == 1 {
			return "wrong", nil
		}
		return "secret words", nil
	}
	config := personConfig(t, s.Port, s.User, s.HostKey, "IdentityFile "+key)
	for _, r := range p.asks(config, time.Second, "web0", "web1", "web2", "web3") {
		if r.Status() != fleet.OK {
			t.Errorf("%s: %v %s %s", r.Host.Name, r.Class, r.Err, r.Hint)
		}
	}
	if want := "Enter passphrase for key '" + key + "': "; !slices.Equal(p.asked, []string{want, want}) {
		t.Errorf("asked %q", p.asked)
	}
	p.asked = nil
	for _, r := range p.asks("BatchMode yes\n"+config, 0, "web0") {
		if r.Class != fleet.AuthFailed || len(p.asked) > 0 {
			t.Errorf("%v %s %s; asked %q", r.Class, r.Err, r.Hint, p.asked)
		}
	}
}
