package route

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
)

// TestFirstFlagWins compares with ssh -G which of a flag and a setting counts, and which may not
// stand together.
func TestFirstFlagWins(t *testing.T) {
	for _, line := range []string{
		"-o Port=23 -p 24", "-o =Port=23 -p 24", "-p 24 -o Port=23", "-oport=23 -p24", "-p 24 -p 25", "-o User=bob -l eve", "-l eve -o User=bob", "-l eve -l bob",
		"-J a -J b", "-o ProxyJump=a -J b", "-J a -o ProxyJump=b", "-o ProxyCommand=nc -J b", "-J b -o ProxyCommand=nc", "-p x", "-o", "-p 70000",
		"-p 022", "-p 0x17", "-p +23", "-p 0b11", "-p 1_0", "-p ssh", "-p 0", "-p -1",
	} {
		var c conf.Flags
		flags := pflag.NewFlagSet("ssh", pflag.ContinueOnError)
		flags.SetOutput(io.Discard)
		flags.VarP(c.PortFlag(), "port", "p", "")
		flags.VarP(c.UserFlag(), "login", "l", "")
		flags.VarP(c.JumpFlag(), "jump", "J", "")
		flags.StringArrayVarP(&c.Settings, "option", "o", nil, "")
		err := flags.Parse(strings.Fields(line))
		dump, refusal := askWords(t, append(append([]string{"-G", "-F", "none"}, strings.Fields(line)...), "--", "x"))
		if (err == nil) != (refusal == nil) {
			t.Errorf("%s: %v, ssh: %v", line, err, refusal)
		}
		if err != nil || refusal != nil {
			continue
		}
		c.Config = "none"
		r, err := New(t.Context(), Params{Flags: c, Getenv: os.Getenv, Stderr: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		found, err := r.Route(t.Context(), host.Host{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]string{"port": strconv.Itoa(found.Host.Port()), "user": found.Host.User()} {
			if want := "\n" + name + " " + got + "\n"; !strings.Contains("\n"+dump, want) {
				t.Errorf("%s: ssh has no %q", line, want)
			}
		}
	}
}

// TestThroughSSH: the host that a ProxyCommand goes through, where it is of the usual form.
func TestThroughSSH(t *testing.T) {
	for command, want := range map[string]string{
		"ssh -W %h:%p gate": "gate", "exec /usr/bin/ssh -qW [h]:22 bob@gate": "gate", "ssh gate nc h 22": "gate", "ssh -q -p 23 -oPort=24 'gate' -W h:22": "gate",
		"ssh -F c -W h:22 gate": "gate", "ssh -Fc gate": "gate", "ssh -F d -W h:22 gate": "", "ssh -F none gate": "", "nc h 22": "", "ssh -W h:22": "", "": "", "exec": "", "sshuttle gate": "", "ssh": "",
	} {
		if j, ok := throughSSH(command, "c"); j.Name != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", command, j.Name, ok, want)
		}
	}
}

// TestInstalledRelease: what newer releases refuse is no error where the installed one takes it,
// and the reverse.
func TestInstalledRelease(t *testing.T) {
	for _, word := range []string{"0x10", "0X1f", "010", "+4", "-0", "08", "0x", "0b10", "1_0", "256", "0x100", "lowdelay"} {
		_, refusal := askWords(t, []string{"-G", "-F", "none", "-o", "IPQoS=" + word, "--", "x"})
		r, err := New(t.Context(), Params{Flags: conf.Flags{Config: "none", Settings: []string{"IPQoS=" + word}}, Getenv: os.Getenv, Stderr: io.Discard})
		if err == nil {
			_, err = r.Configuration(t.Context())
		}
		if (err == nil) != (refusal == nil) {
			t.Errorf("IPQoS %s: %v, ssh: %v", word, err, refusal)
		}
	}
}

// "Match !final" asks for a second pass up to OpenSSH 10.0, which only the installed ssh can tell:
// names are those of HostName then, and "Match canonical" holds.
func TestSecondPassOfTheInstalledRelease(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	text := "Match !final host other\nHost * !10.0.0.7\nUser nobody\nHost *\nHostName web1\nMatch canonical all\nIdentityAgent /key\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i := invocation{connection: conf.Flags{Config: config}, host: host.Host{Name: "10.0.0.7"}}
	usual, err := sshG(t, invocation{connection: conf.Flags{Config: "none"}, host: host.Host{Name: "usual"}})
	if err != nil {
		t.Fatal(err)
	}
	if what := check(t, usual, i); what != "" {
		t.Error(what)
	}
}

// TestJumpByToken: a jump host named by a token goes by the name of the host behind it, and has the
// configuration of its own name.
func TestJumpByToken(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	text := "Host web*\nHostName %h.test\nUser bob\nProxyJump first,gw-%n\nHost gw-web1\nHostName 10.0.0.7\nUser gate\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), Params{Flags: conf.Flags{Config: config}, Getenv: os.Getenv, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.Route(t.Context(), host.Host{Name: "web1"})
	if err != nil || len(found.Jumps) != 2 || found.Jumps[1].HostName() != "10.0.0.7" || found.Jumps[1].User() != "gate" || found.Jumps[1].Name != "gw-web1" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestUnsafeUserIsRefused before the configuration is looked at, by all that connects.
func TestUnsafeUserIsRefused(t *testing.T) {
	c := conf.Flags{Settings: []string{"User=x;>/tmp/p"}}
	_, err := New(t.Context(), Params{Flags: c, Getenv: os.Getenv})
	if _, destined := Destination(c, "web1"); !errors.Is(err, conf.ErrUnsafeUser) || !errors.Is(destined, conf.ErrUnsafeUser) || !errors.Is(CheckFlags(c), conf.ErrUnsafeUser) {
		t.Errorf("%v, %v", err, destined)
	}
}
