//go:build linux

// Package lab is a private sshd on many loopback addresses for checks that measure fleets, with
// client files that reach it, and the cost of programs that use it.
package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"sshpace/crosscheck/daemon"
)

// Params say which lab is made.
type Params struct {
	Hosts      int    // addresses
	KnownBytes int    // known_hosts is filled with other hosts up to this size
	Copied     string // a size of what is copied, such as 100M or 1000x10K; "" copies nothing
	Startups   string // MaxStartups, and lost hosts are counted; "" is no limit
	Dir        string // parent of the lab's directory; "" is the usual one
}

// Lab is a private sshd on all loopback addresses, and client files that reach it.
type Lab struct {
	Port                    int
	Hosts                   []string
	User, UserKey           string // who may log in: the one who runs this
	Config, Known           string // ssh_config and known_hosts with the right key
	WrongConfig, WrongKnown string // the same with a wrong one

	dir      string
	load     load   // what is copied, none without Params.Copied
	startups string // MaxStartups, where lost hosts are counted
	sshd     *daemon.Sshd
}

// Start makes keys and files and starts sshd. The caller stops it.
func Start(ctx context.Context, p Params) (_ *Lab, err error) {
	dir, err := os.MkdirTemp(p.Dir, "fanout-")
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: dir, User: me.Username, startups: p.Startups}
	defer func() {
		if err != nil {
			l.Stop()
		}
	}()
	for i := range p.Hosts {
		l.Hosts = append(l.Hosts, fmt.Sprintf("127.0.%d.%d", i/250+1, i%250+1))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	settings, err := l.settings(p.Copied)
	if err != nil {
		return nil, err
	}
	if l.sshd, err = daemon.Start([]string{self, asReaper, "/usr/sbin/sshd"}, dir, "0.0.0.0", settings...); err != nil {
		return nil, err
	}
	if l.Port, err = strconv.Atoi(l.sshd.Port); err != nil {
		return nil, err
	}
	l.UserKey = l.sshd.Key
	if err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", l.Path("wrong")).Run(); err != nil {
		return nil, fmt.Errorf("ssh-keygen: %w", err)
	}
	return l, l.files(p.KnownBytes)
}

// settings returns the lines of sshd_config, and makes what they name: a home directory, and what
// is copied, with a directory for every host.
func (l *Lab) settings(copied string) (lines []string, err error) {
	startups := "1000"
	if l.startups != "" {
		startups, lines = l.startups, []string{"ForceCommand echo >>" + l.Path("ran")}
	}
	lines = append(lines, "PermitRootLogin prohibit-password", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"MaxStartups "+startups, "LogLevel ERROR", "KexAlgorithms curve25519-sha256", "SetEnv HOME="+l.Path("home"), "Subsystem sftp "+sftpServer())
	if err := os.Mkdir(l.Path("home"), 0o700); err != nil || copied == "" {
		return lines, err
	}
	if l.load, err = parseLoad(copied); err != nil {
		return nil, err
	}
	if err := l.load.make(l.Path("source")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(l.Path("session"), []byte(inDirectory), 0o755); err != nil {
		return nil, err
	}
	return append(lines, "ForceCommand "+l.Path("session")), nil
}

// sftpServer is where Debian, or others, have it.
func sftpServer() string {
	for _, path := range []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "sftp-server"
}

// Checked makes sure that a copy arrived, if there was one, and takes it away again.
func (l *Lab) Checked(hosts []string) error {
	if l.load.files == 0 {
		return nil
	}
	return l.arrived(hosts)
}

// Lost is on how many hosts no command has run since it was asked last.
func (l *Lab) Lost() (int, error) {
	noted, err := os.ReadFile(l.Path("ran"))
	if err != nil && !os.IsNotExist(err) {
		return 0, err
	}
	return len(l.Hosts) - bytes.Count(noted, []byte("\n")), os.WriteFile(l.Path("ran"), nil, 0o600)
}

// Path is a file of the lab.
func (l *Lab) Path(name string) string { return filepath.Join(l.dir, name) }

// Stop ends sshd and removes all files.
func (l *Lab) Stop() {
	if l.sshd != nil {
		l.sshd.Close()
	}
	os.RemoveAll(l.dir)
}

func (l *Lab) files(knownBytes int) error {
	for _, kind := range []string{"host", "wrong"} {
		pub, err := os.ReadFile(l.Path(kind + ".pub"))
		if err != nil {
			return err
		}
		key := strings.Join(strings.Fields(string(pub))[:2], " ")
		var known bytes.Buffer
		for i := 0; known.Len() < knownBytes-len(l.Hosts)*len(key); i++ {
			fmt.Fprintf(&known, "other%d.example,10.9.%d.%d %s\n", i, i/250%250, i%250, key)
		}
		for _, h := range l.Hosts {
			fmt.Fprintf(&known, "[%s]:%d %s\n", h, l.Port, key)
		}
		config := fmt.Sprintf("Host *\n Port %d\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n IdentityAgent none\n"+
			" UserKnownHostsFile %s\n GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n KexAlgorithms curve25519-sha256\n",
			l.Port, l.User, l.UserKey, l.Path(kind+".known"))
		if err := l.write(kind+".known", known.String()); err != nil {
			return err
		}
		if err := l.write(kind+".config", config); err != nil {
			return err
		}
	}
	l.Config, l.Known = l.Path("host.config"), l.Path("host.known")
	l.WrongConfig, l.WrongKnown = l.Path("wrong.config"), l.Path("wrong.known")
	return l.write("ansible.cfg", "")
}

func (l *Lab) write(name, text string) error {
	return os.WriteFile(l.Path(name), []byte(text), 0o600)
}
