package reach

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// runOn runs a line on a server that is called web, under a configuration of its own.
func runOn(t *testing.T, s *sshtest.Sshd, engine Engine, config, line string) (fleet.Result, *sshtest.Told) {
	t.Helper()
	return doOn(t, s, engine, config, fleet.Command{Line: line})
}

// doOn is runOn for any command.
func doOn(t *testing.T, s *sshtest.Sshd, engine Engine, config string, cmd fleet.Command) (fleet.Result, *sshtest.Told) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	put(t, file, config+everywhere(t, s.User, s.Key, s.Port, s.HostKey), 0o600)
	params := Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: file}, Stderr: t.Output()}, Engine: engine}
	executor, err := New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	defer executor.Close()
	said := &sshtest.Told{}
	hosts := []host.Host{{Name: "web"}}
	if _, err := fanout.Run(t.Context(), fanout.Params{RetryFor: -1}, hosts, cmd, executor, said); err != nil {
		t.Fatal(err)
	}
	return said.Results()[0], said
}

// TestLocalCommand proves that both engines run the same LocalCommand: after the login and before
// the command, by the user's shell, whatever its end.
func TestLocalCommand(t *testing.T) {
	s := sshtest.StartSshd(t)
	const permitted = "PermitLocalCommand yes\nLocalCommand "
	for _, test := range []struct{ name, config, shell, want string }{
		{name: "tokens", config: permitted + "echo %h %n %p %r %u %k %L %l %d %i %C %T '%%' there\n"},
		{name: "other token", config: permitted + "touch DIR/ran; echo %q\n", want: "ran no"},
		{name: "token where it is not permitted", config: "LocalCommand echo %q\n", want: "ran no"},
		{name: "not permitted", config: "LocalCommand echo local\n", want: `exit 3, "remote\n"`},
		{name: "none", config: permitted + "none\n", want: `exit 3, "remote\n"`},
		{name: "comes first", config: permitted + "ls DIR; sleep 0.3; touch DIR/local\n", want: `, "remote local`},
		{name: "its end does not count", config: permitted + "echo local; exit 7\n", want: `exit 3, "local\nremote\n"`},
		{name: "a signal does not count", config: permitted + "kill -9 $$\n", want: "exit 3"},
		{name: "reads nothing", config: permitted + "cat\n", want: `exit 3, "remote\n"`},
		{name: "no login", config: permitted + "touch DIR/ran\nUserKnownHostsFile none\n", want: "ran no"},
		{name: "no shell", config: permitted + "echo local\n", shell: "/nonexistent/sh", want: `exit 3, "remote`},
		{name: "the user's shell", config: permitted + "echo $0\n", shell: "/bin/bash", want: "/bin/bash"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.shell != "" {
				t.Setenv("SHELL", test.shell)
			}
			ends := map[Engine]string{}
			for _, engine := range []Engine{Native, OpenSSH} {
				dir := t.TempDir()
				r, said := runOn(t, s, engine, strings.ReplaceAll(test.config, "DIR", dir), "echo remote $(ls "+dir+"); exit 3")
				if r.Engine != string(engine) && r.Ran == fleet.RanYes {
					t.Errorf("by %s", r.Engine)
				}
				stderr := said.Text(fleet.Stderr)
				if engine == Native && test.name == "no shell" && !strings.Contains(stderr, "/nonexistent/sh") {
					t.Errorf("nobody says why: %q", stderr)
				}
				ends[engine] = fmt.Sprintf("ran %v, exit %d, %q", r.Ran, r.Exit, said.Text(fleet.Stdout))
				if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
					t.Errorf("%s: it has run", engine)
				}
			}
			if ends[Native] != ends[OpenSSH] || !strings.Contains(ends[Native], test.want) {
				t.Errorf("native: %s\nopenssh: %s\nwant %s", ends[Native], ends[OpenSSH], test.want)
			}
		})
	}
}

// TestLocalCommandOfJumpHost proves that a jump host's LocalCommand is left to ssh, which runs it.
func TestLocalCommandOfJumpHost(t *testing.T) {
	s := sshtest.StartSshd(t)
	ran := filepath.Join(t.TempDir(), "ran")
	config := "Host gate\nPermitLocalCommand yes\nLocalCommand touch " + ran + "\nHost web\nProxyJump gate\n"
	if r, _ := runOn(t, s, Native, config, "true"); r.Ran != fleet.RanNo || !strings.Contains(r.Err, "jump host gate: a local command") {
		t.Errorf("native: %+v", r)
	}
	if r, _ := runOn(t, s, Auto, config, "true"); r.Status() != fleet.OK || r.Engine != "openssh" {
		t.Errorf("auto: %+v", r)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error(err)
	}
}

// TestNoLocalCommandForCopies proves that copies run no LocalCommand, as scp and sftp run none.
func TestNoLocalCommandForCopies(t *testing.T) {
	s := sshtest.StartSshd(t)
	for _, engine := range []Engine{Native, OpenSSH} {
		ran := filepath.Join(t.TempDir(), "ran")
		talked := false
		copies := fleet.Command{Line: "sftp", Dialogue: func(context.Context, host.Host, fleet.Channel) error {
			talked = true
			return nil
		}}
		r, _ := doOn(t, s, engine, "PermitLocalCommand yes\nLocalCommand touch "+ran+"\n", copies)
		if _, err := os.Stat(ran); err == nil || !talked {
			t.Errorf("%s: talked %v: %+v", engine, talked, r)
		}
	}
}

// TestKnownHostsCommand proves that both engines ask a KnownHostsCommand at the same times for the
// same things, and believe it as much.
func TestKnownHostsCommand(t *testing.T) {
	s := sshtest.StartSshd(t)
	name := knownhosts.HostPort("127.0.0.1", s.Port)
	right, other := knownhosts.MarshalKey(s.HostKey), knownhosts.MarshalKey(newSigner(t).PublicKey())
	const asked = "KnownHostsCommand DIR/keys "
	const listed = "HostKeyAlgorithms ssh-ed25519\n" // no question about the order: 9.2 has another %H
	const nothing = "UserKnownHostsFile none\n"
	for _, test := range []struct {
		name, config, script string
		ran                  bool
	}{
		{"all tokens", asked + "%I %t %f %K %n %h %p %r %u %k %L %l %d %i %C %%\n" + nothing, "echo 'NAME KEY'", true},
		{"MD5", "FingerprintHash md5\n" + asked + "%I %f\n" + nothing, "echo 'NAME KEY'", true},
		{"words", asked + "'a  b' c\\ d # \"${HOME}\"\n" + nothing, "echo 'NAME KEY'", true},
		{"alias", "HostKeyAlias Other\n" + listed + asked + "%H %k\n" + nothing, "echo 'other KEY'", true},
		{"a list of algorithms", listed + asked + "%I %H\n" + nothing, "echo 'NAME KEY'", true},
		{"no keys", asked + "%I\n" + nothing, "true", false},
		{"another key", asked + "%I\n" + nothing, "echo 'NAME OTHER'", false},
		{"another key, and a file with the right one", asked + "%I\n", "echo 'NAME OTHER'", true},
		{"revoked, and a file with the key", asked + "%I\n", "echo '@revoked * KEY'", false},
		{"the name without the port", asked + "%I\n" + nothing, "echo '127.0.0.1 KEY'", false},
		{"fails", asked + "%I\n", "echo 'NAME KEY'; exit 1", false},
		{"fails at first", asked + "%I\n", "test $1 != ORDER", false},
		{"fails at last", asked + "%I\n", "test $1 = ORDER", false},
		{"is killed", asked + "%I\n", "kill -9 $$", false},
		{"reads nothing", asked + "%I\n", "cat", true},
		{"unknown token", asked + "%q\n", "echo 'NAME KEY'", false},
		{"variable that is not set", asked + "${NOBODY_SETS_THIS}\n", "echo 'NAME KEY'", false},
		{"no absolute path", "KnownHostsCommand keys\n", "", true},
		{"no program, and no key", "KnownHostsCommand DIR/none\n" + nothing, "", false},
		{"no program", "KnownHostsCommand DIR/none\n", "", true},
		{"is no program", "KnownHostsCommand DIR/config\n", "", false},
		{"new key", "StrictHostKeyChecking accept-new\nUserKnownHostsFile DIR/new\n" + asked + "%I\n", "true", true},
		{"told key", "StrictHostKeyChecking accept-new\nUserKnownHostsFile DIR/new\n" + asked + "%I\n", "echo 'NAME KEY'", true},
		{"changed key", "StrictHostKeyChecking accept-new\nUserKnownHostsFile DIR/new\n" + asked + "%I\n", "echo 'NAME OTHER'", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := map[Engine]string{}
			for _, engine := range []Engine{Native, OpenSSH} {
				dir := t.TempDir()
				named := strings.NewReplacer("DIR", dir, "NAME", name, "KEY", right, "OTHER", other)
				put(t, filepath.Join(dir, "config"), "", 0o600)
				script := "#!/bin/sh\nprintf '[%s]' \"$@\" >>DIR/asked; echo >>DIR/asked\n" + test.script + "\n"
				put(t, filepath.Join(dir, "keys"), named.Replace(script), 0o700)
				r, _ := runOn(t, s, engine, named.Replace(test.config), "true")
				if (r.Status() == fleet.OK) != test.ran || !test.ran && engine == Native && r.Hint == "" {
					t.Errorf("%s: %+v", engine, r)
				}
				asked, _ := os.ReadFile(filepath.Join(dir, "asked"))
				recorded, _ := os.ReadFile(filepath.Join(dir, "new"))
				seen[engine] = strings.ReplaceAll(string(asked)+string(recorded), dir, "DIR")
			}
			if seen[Native] != seen[OpenSSH] {
				t.Errorf("native asks %s\nopenssh asks %s", seen[Native], seen[OpenSSH])
			}
		})
	}
}
