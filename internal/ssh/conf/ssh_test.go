package conf_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
)

// lab is a home directory of its own and the installed ssh. ssh takes "~" from the passwd entry,
// but the base of relative Includes from $HOME.
type lab struct {
	home string
	env  []string
}

func newLab(t testing.TB) *lab {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &lab{home: home, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh", "FLEET=blue"}}
}

// ssh is the Runner of the lab.
func (l *lab) ssh(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
	cmd := exec.CommandContext(ctx, "ssh", args...)
	cmd.Env = l.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.Bytes(), errs.Bytes(), err
}

func (l *lab) getenv(name string) (string, bool) {
	for _, v := range l.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// shell runs the commands of Match exec as ssh does.
func (l *lab) shell(ctx context.Context, command string) (bool, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env = l.env
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return false, nil
	}
	return err == nil, err
}

func (l *lab) system(t testing.TB) conf.System {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		t.Fatal(err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return conf.System{Home: me.HomeDir, User: me.Username, UID: uid, Hostname: hostname,
		Getenv: l.getenv, Exec: l.shell, HomeOf: func(name string) (string, bool) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", false
			}
			return u.HomeDir, true
		}}
}

var askOnce = sync.OnceValues(func() (*conf.Defaults, error) {
	l := &lab{env: []string{"PATH=" + os.Getenv("PATH")}}
	return conf.AskDefaults(context.Background(), l.ssh)
})

func defaults(t testing.TB) *conf.Defaults {
	t.Helper()
	d, err := askOnce()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// write puts files into the .ssh directory of the lab.
func (l *lab) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(l.home, ".ssh", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// call is one command line: flags and a host.
type call struct {
	params conf.Params
	query  host.Endpoint
	args   []string // as ssh takes them
}

// parseCall reads "-p 22 -o User=bob web1".
func parseCall(t testing.TB, line string) call {
	t.Helper()
	var c call
	words := strings.Fields(line)
	for len(words) > 1 {
		flag, value := words[0], words[1]
		words = words[2:]
		c.args = append(c.args, flag, value)
		switch flag {
		case "-o":
			c.params.Settings = append(c.params.Settings, value)
		case "-p":
			port, _ := strconv.ParseUint(value, 10, 16)
			c.params.Port = uint16(port)
		case "-l":
			c.params.User = value
		case "-J":
			c.params.Jump = value
		case "-i":
			c.params.Identities = append(c.params.Identities, value)
		default:
			t.Fatalf("flag %q of %q is not known to the test", flag, line)
		}
	}
	c.args = append(c.args, "--", words[0])
	c.query.Name = words[0]
	if i := strings.LastIndexByte(words[0], '@'); i > 0 {
		c.query.User, c.query.Name = words[0][:i], words[0][i+1:]
	}
	return c
}
