package sudo_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/sudo"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
)

const secret = `p'w$(x) "1`

// server is how the native engine reaches one sshd.
type server struct{ *sshtest.Sshd }

func (s server) Target(context.Context, host.Host) (*dial.Target, error) {
	return &dial.Target{HostName: "127.0.0.1", Port: s.Port, User: s.User, HostKeys: s, Identity: dial.Identity{Files: []string{s.Key}}}, nil
}

func (server) Algorithms(_ context.Context, _ string, _ int, preference []string) ([]string, error) {
	return preference, nil
}

func (server) Check(context.Context, string, int, net.Addr, ssh.PublicKey) error { return nil }

// run runs a command as another user on hosts of one server.
func run(t *testing.T, s *sshtest.Sshd, hosts int, user, password string, cmd fleet.Command) *sshtest.Told {
	t.Helper()
	return runWith(t, s, hosts, user, sudo.NewPassword(password), cmd)
}

// runWith is run with a password that somebody may be asked for.
func runWith(t *testing.T, s *sshtest.Sshd, hosts int, user string, password *sudo.Password, cmd fleet.Command) *sshtest.Told {
	t.Helper()
	engine := dial.New(server{s}, dial.Options{})
	defer engine.Close()
	ex := &sudo.Executor{Executor: engine, User: user, Password: password, Timeout: 2 * time.Minute}
	var list []host.Host
	for i := range hosts {
		list = append(list, host.Host{Name: "h" + string(rune('a'+i))})
	}
	got := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{}, list, cmd, ex, got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got.Text(fleet.Stdout)+got.Text(fleet.Stderr), secret) {
		t.Errorf("the password is in the output: %q %q", got.Text(fleet.Stdout), got.Text(fleet.Stderr))
	}
	return got
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("these tests make a user with a password, which needs root")
	}
}

func TestSudo(t *testing.T) {
	needRoot(t)
	s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) ALL")
	for name, tt := range map[string]struct {
		user, password, line, input string
		out, err, failure           string
		exit                        int
	}{
		"root":      {password: secret, line: "id -un; echo e >&2; exit 7", out: "root\n", err: "e\n", exit: 7},
		"other":     {user: "daemon", password: secret, line: "id -un", out: "daemon\n"},
		"input":     {password: secret, line: "cat; echo end", input: "mine\n", out: "mine\nend\n"},
		"no input":  {password: secret, line: "cat; echo end", out: "end\n"},
		"quotes":    {password: secret, line: `printf '%s|' "a  b" 'c"d' $((1+1))`, out: `a  b|c"d|2|`},
		"wrong":     {password: "wrong", line: "echo never", failure: "sudo did not accept the password"},
		"none":      {line: "echo never", failure: "sudo asks for a password, and none was given"},
		"processes": {password: secret, line: "ps -ef; cat /proc/*/cmdline /proc/*/environ 2>/dev/null | grep -c x", exit: 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := fleet.Command{Line: tt.line}
			if tt.input != "" {
				spool := fleet.SpoolBytes([]byte(tt.input))
				defer spool.Close()
				cmd.Input = spool
			}
			got := run(t, s, 1, tt.user, tt.password, cmd)
			r := got.Results()[0]
			if tt.failure != "" {
				if r.Class != fleet.Privilege || !strings.HasPrefix(r.Err, tt.failure) || r.Ran != fleet.RanNo || r.Status() != fleet.Failed || got.Text(fleet.Stdout) != "" {
					t.Errorf("%+v %q", r, got.Text(fleet.Stdout))
				}
				return
			}
			if r.Class != fleet.NoFailure || r.Exit != tt.exit || tt.out != "" && (got.Text(fleet.Stdout) != tt.out || got.Text(fleet.Stderr) != tt.err) {
				t.Errorf("%+v\n%q\n%q", r, got.Text(fleet.Stdout), got.Text(fleet.Stderr))
			}
		})
	}
}

// TestScript: a script and its own input arrive through sudo.
func TestScript(t *testing.T) {
	needRoot(t)
	s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) ALL")
	program, err := remotesh.Script([]byte("#!/bin/sh\nread a\necho \"$a $1\"; id -un\n#"+strings.Repeat("x", 300_000)+"\n"), []string{"two"})
	if err != nil {
		t.Fatal(err)
	}
	line, input := remotesh.Command(program)
	spool := fleet.SpoolBytes(append(input, "one\n"...))
	defer spool.Close()
	got := run(t, s, 1, "", secret, fleet.Command{Line: line, Input: spool})
	if got.Text(fleet.Stdout) != "one two\nroot\n" {
		t.Errorf("%q %q %+v", got.Text(fleet.Stdout), got.Text(fleet.Stderr), got.Results()[0])
	}
}

// TestOneTry: a password that is wrong everywhere is given to one host only.
func TestOneTry(t *testing.T) {
	needRoot(t)
	s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) ALL\nDefaults logfile="+t.TempDir()+"/log")
	got := run(t, s, 8, "", "wrong", fleet.Command{Line: "echo never"})
	tried := 0
	for _, r := range got.Results() {
		if strings.HasPrefix(r.Err, "sudo did not accept") {
			tried++
		} else if !strings.Contains(r.Err, "was refused on h") {
			t.Errorf("%+v", r)
		}
	}
	if tried != 1 || strings.Count(got.Text(fleet.Stderr), "Sorry, try again") != 1 {
		t.Errorf("%d hosts have refused it: %q", tried, got.Text(fleet.Stderr))
	}
	right := run(t, s, 8, "", secret, fleet.Command{Line: "id -un"})
	if right.Text(fleet.Stdout) != strings.Repeat("root\n", 8) {
		t.Errorf("%q %q", right.Text(fleet.Stdout), right.Text(fleet.Stderr))
	}
}

// TestAsked: somebody is asked once, when a host wants a password, and not where none does.
func TestAsked(t *testing.T) {
	needRoot(t)
	for rule, want := range map[string]int32{"ALL": 1, "NOPASSWD: ALL": 0} {
		s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) "+rule)
		var asked atomic.Int32
		got := runWith(t, s, 8, "", sudo.AskFor(func(context.Context) (string, error) {
			asked.Add(1)
			return secret, nil
		}), fleet.Command{Line: "id -un"})
		if got.Text(fleet.Stdout) != strings.Repeat("root\n", 8) || asked.Load() != want {
			t.Errorf("%s: asked %d times, %q %q", rule, asked.Load(), got.Text(fleet.Stdout), got.Text(fleet.Stderr))
		}
	}
}

// TestNobodyToAsk: who does not answer is asked by the next host, and who has none to give is asked
// once.
func TestNobodyToAsk(t *testing.T) {
	for _, tt := range []struct {
		err   error
		asked int
	}{{context.Canceled, 2}, {nil, 1}} {
		asked := 0
		p := sudo.AskFor(func(context.Context) (string, error) { asked++; return "", tt.err })
		for _, host := range []string{"a", "b"} {
			if err := p.Offer(t.Context(), host); err == nil {
				t.Error("a host got a password that nobody gave")
			}
		}
		if asked != tt.asked {
			t.Errorf("%v: asked %d times", tt.err, asked)
		}
	}
}

// TestNoPassword: where sudo asks for none, none is given.
func TestNoPassword(t *testing.T) {
	needRoot(t)
	s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) NOPASSWD: ALL")
	got := run(t, s, 3, "", secret, fleet.Command{Line: "cat; id -un"})
	if got.Text(fleet.Stdout) != "root\nroot\nroot\n" {
		t.Errorf("%q %q %+v", got.Text(fleet.Stdout), got.Text(fleet.Stderr), got.Results())
	}
	for _, rules := range []string{"root ALL=(ALL) ALL", "nobody ALL=(daemon) NOPASSWD: ALL"} { // the second one's refusal repeats the command
		s = sshtest.StartSshdWithSudo(t, secret, rules)
		r := run(t, s, 1, "", secret, fleet.Command{Line: "true"}).Results()[0]
		if r.Class != fleet.Privilege || !strings.Contains(r.Err, "not in the sudoers file") && !strings.Contains(r.Err, "not allowed") {
			t.Errorf("%+v", r)
		}
	}
}

// hostile is a host that prints what it likes and keeps what it is sent.
type hostile struct {
	says string
	mu   sync.Mutex
	got  []byte
}

func (*hostile) FDs() int { return 1 }

func (x *hostile) Execute(ctx context.Context, _ host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	in := cmd.Input.Reader()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := in.Read(buf)
			x.mu.Lock()
			x.got = append(x.got, buf[:n]...)
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	a.Output(fleet.Stderr, []byte(x.says))
	a.Output(fleet.Stdout, []byte(x.says))
	<-ctx.Done()
	in.Close()
	<-done
	o := fleet.Outcome{Ran: fleet.RanYes, Exit: -1}
	o.Class, o.Err = fleet.Stopped(context.Cause(ctx))
	return o
}

// TestForgedPrompts do not get the password.
func TestForgedPrompts(t *testing.T) {
	for _, says := range []string{"[sudo] password for root: ", "Password: ", "sshpace-AAAAAAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("sshpace-", 100), "Verification code: "} {
		waittest.InTime(t, 200*time.Millisecond, func(limit time.Duration) error {
			x := &hostile{says: says}
			ex := &sudo.Executor{Executor: x, Password: sudo.NewPassword(secret), Timeout: limit}
			got := &sshtest.Told{}
			if _, err := fanout.Run(t.Context(), fanout.Params{}, []host.Host{{Name: "h"}}, fleet.Command{Line: "true"}, ex, got); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(x.got, []byte(secret)) {
				t.Errorf("%q got %q", says, x.got)
			}
			if r := got.Results()[0]; !bytes.Contains(x.got, []byte("sudo")) || r.Class != fleet.Privilege || !strings.Contains(r.Err, "did not start the command in time: ") || got.Text(fleet.Stderr) != says {
				return fmt.Errorf("%q got %q; %+v, shown: %q", says, x.got, r, got.Text(fleet.Stderr))
			}
			return nil
		})
	}
}

func TestCheckUser(t *testing.T) {
	for name, good := range map[string]bool{"": true, "root": true, "#0": true, "a.b-c$": true, "-i": false, "a b": false, "$(x)": false, "a'": false} {
		if err := sudo.CheckUser(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// scripted is a host whose sudo says what it is told, in pieces. {prompt} and {began} are the words
// of the dialog, {password} waits for the password and sends it back.
type scripted struct{ stdout, stderr string }

func (scripted) FDs() int { return 1 }

func (x scripted) Execute(_ context.Context, _ host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	in := cmd.Input.Reader()
	defer in.Close()
	var got []byte
	read := func(until func() bool) {
		for buf := make([]byte, 4096); !until(); {
			n, err := in.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				return
			}
		}
	}
	words := regexp.MustCompile(`-p (sshpace-[A-Z0-9]{26})(?s:.*)printf %s%s (sshpace-[A-Z0-9]+) ([A-Z0-9]+) `)
	read(func() bool { return words.Match(got) })
	told := words.FindSubmatch(got)[1:]
	told[1] = append(told[1], told[2]...)
	got = nil
	say := func(stream fleet.Stream, text string) {
		for i := range text {
			a.Output(stream, []byte(text[i:i+1]))
		}
	}
	text := strings.NewReplacer("{prompt}", string(told[0]), "{began}", string(told[1])).Replace(x.stderr)
	asking, more, _ := strings.Cut(text, "{password}")
	say(fleet.Stderr, asking)
	read(func() bool { return bytes.HasSuffix(got, []byte("\n")) })
	between, more, spelled := strings.Cut(more, "{spelled}")
	password := strings.TrimSuffix(string(got), "\n")
	if !spelled {
		between, more = "", between
	}
	echo := strings.Join(strings.Split(password, ""), between)
	say(fleet.Stderr, strings.ReplaceAll(more, "{echo}", echo))
	say(fleet.Stdout, strings.ReplaceAll(x.stdout, "{echo}", echo))
	return fleet.Outcome{Ran: fleet.RanYes, Exit: 1}
}

// dialogOf runs what a sudo writes.
func dialogOf(t *testing.T, x scripted, password string) (stdout, stderr string, r fleet.Result) {
	t.Helper()
	ex := &sudo.Executor{Executor: x, Password: sudo.NewPassword(password), Timeout: 2 * time.Minute}
	got := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{}, []host.Host{{Name: "h"}}, fleet.Command{Line: "true"}, ex, got); err != nil {
		t.Fatal(err)
	}
	return got.Text(fleet.Stdout), got.Text(fleet.Stderr), got.Results()[0]
}

// TestEchoedPassword is shown nowhere, before the command begins or after that, nor with escape
// sequences, which are not shown, between its letters.
func TestEchoedPassword(t *testing.T) {
	for _, test := range []struct{ password, shown, began string }{
		{secret, "********", ""}, {secret, "********", "{began}"}, {"pw1", "********", ""}, {"pw1", "pw1", "{began}"},
	} {
		for _, between := range []string{"", "\x1b[0m", "\x1b[1;31m\x1b]0;title\x07"} {
			said := "you said {echo}\n"
			out, errs, r := dialogOf(t, scripted{said + secret[:4], "{prompt}{password}" + between + "{spelled}" + test.began + said}, test.password)
			want := "you said " + test.shown + "\n"
			if string(termsafe.Text([]byte(out))) != want+secret[:4] || string(termsafe.Text([]byte(errs))) != want {
				t.Errorf("%+v: %q and %q, want %q", test, out, errs, want)
			}
			if test.shown == "********" && strings.Contains(r.Err, test.password) {
				t.Errorf("%+v: %s", test, r.Err)
			}
		}
	}
}

// TestPromptOfSudoRs: nothing of what sudo-rs writes around the prompt is in the output, whatever
// PAM's part of it.
func TestPromptOfSudoRs(t *testing.T) {
	for _, prompt := range []string{"Password: ", "Mot de passe : ", "Passwort:", "密码：", ""} {
		wrapped := "[sudo: {prompt}] " + prompt
		for _, end := range []string{"", "\n"} {
			_, errs, r := dialogOf(t, scripted{"", "a banner: [sudo: yes]\n" + wrapped + "{password}" + end + "{began}\nerr: 1\n"}, secret)
			if errs != "a banner: [sudo: yes]\n\nerr: 1\n" || r.Exit != 1 {
				t.Errorf("%s: %q, %+v", prompt, errs, r)
			}
		}
		const failed = "sudo: Authentication failed, try again.\n"
		_, errs, r := dialogOf(t, scripted{"", wrapped + "{password}" + failed + wrapped}, secret)
		if !strings.HasSuffix(failed, errs) || strings.HasSuffix(prompt, ": ") && errs != failed || r.Err != "sudo did not accept the password" {
			t.Errorf("%s: %q, %+v", prompt, errs, r)
		}
	}
}
