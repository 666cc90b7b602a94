package servers

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/sshtest"
)

// row is a server that is tried.
type row struct {
	name  string
	quick []string // operations that are always tried
	start func(t testing.TB, home string) server
	flags []string // of sshpace
	// lacks is what goes wrong, line by line, because the server cannot do what it takes; "":
	// nothing may.
	lacks string
}

// server is one that runs.
type server struct {
	port    int
	user    string
	key     string
	hostKey ssh.PublicKey
	root    string // what its sessions begin in, on this machine
}

func ofSshd(s *sshtest.Sshd, root string) server {
	return server{s.Port, s.User, s.Key, s.HostKey, root}
}

func ofForeign(f *sshtest.Foreign) server { return server{f.Port, f.User, f.Key, f.HostKey, f.Home} }

// foreign is a row of a server that needs nothing but to be started.
func foreign(name string, start func(testing.TB) *sshtest.Foreign, quick ...string) row {
	return row{name: name, quick: quick, start: func(t testing.TB, _ string) server { return ofForeign(start(t)) }}
}

// openSSH is a row of sshd with an account of nobody's and lines of sshd_config.
func openSSH(name string, lines ...string) row {
	return row{name: name, start: func(t testing.TB, home string) server {
		return ofSshd(sshtest.StartSshdWithHome(t, home, "/bin/sh", lines...), home)
	}}
}

// asyncSSH is a row of asyncssh with a window.
func asyncSSH(name string, window int, quick ...string) row {
	return foreign(name, func(t testing.TB) *sshtest.Foreign { return sshtest.StartAsyncSSH(t, window) }, quick...)
}

var makers = append([]row{
	openSSH("OpenSSH"),
	openSSH("OpenSSH, sftp-server", "Subsystem sftp /usr/lib/openssh/sftp-server"),
	openSSH("OpenSSH, ForceCommand internal-sftp", "ForceCommand internal-sftp"),
	openSSH("OpenSSH, read-only", "Subsystem sftp internal-sftp -R"),
	inside("OpenSSH, internal-sftp -d", "work", "Subsystem sftp internal-sftp -d %d/work"),
	chroot("OpenSSH, ChrootDirectory", "copy"),
	by("OpenSSH, --engine openssh", "--engine", "openssh"),
	foreign("ProFTPD mod_sftp", sshtest.StartProFTPD, "backup", "links", "large", "fetch", "delete"),
	foreign("rclone serve sftp", sshtest.StartRclone, "copy", "backup"),
	foreign("paramiko", sshtest.StartParamiko, "copy", "delete"),
	foreign("Twisted Conch", sshtest.StartTwisted, "copy", "backup", "links"),
	// It shows links as what they lead to, and those stay.
	{name: "MySecureShell", quick: []string{"copy"}, lacks: `"old(/link)?" is too much`, start: func(t testing.TB, home string) server {
		return ofSshd(sshtest.StartMySecureShell(t, home), home)
	}},
	asyncSSH("asyncssh, window 64 KiB", 64<<10),
	asyncSSH("asyncssh, window 1 MiB", 1<<20),
	asyncSSH("asyncssh, window 2 MiB", 2<<20, "copy", "backup", "links", "delete"),
	asyncSSH("asyncssh, window 8 MiB", 8<<20),
	asyncSSH("asyncssh, window 64 MiB", 64<<20, "large"),
}, denied()...)

// denied are rows of OpenSSH that refuse one request each, and some together.
func denied() (rows []row) {
	for _, requests := range []string{
		"open", "close", "read", "write", "lstat", "fstat", "setstat", "fsetstat", "opendir", "readdir", "remove", "mkdir", "rmdir", "realpath",
		"stat", "rename", "readlink", "symlink", "posix-rename", "statvfs", "fstatvfs", "hardlink", "fsync", "lsetstat", "limits", "expand-path",
		"setstat,fsetstat", "rename,posix-rename", "remove,rmdir",
	} {
		r := openSSH("OpenSSH -P "+requests, "Subsystem sftp internal-sftp -P "+requests)
		if requests == "lstat" || requests == "stat" {
			r.quick = []string{"copy", "again"}
		}
		switch {
		case requests == "readlink": // where links lead
			r.lacks = `fetch fails: .*Permission denied|what is one`
		case regexp.MustCompile(`remove|rmdir|readdir|opendir`).MatchString(requests): // parts cannot be removed, or found
			r.lacks = `\.sshpace-`
		case requests == "rename,posix-rename": // files are written in place, as scp does it
			r.lacks = `bytes of something else|copy fails: .*Permission denied`
		}
		rows = append(rows, r)
	}
	return rows
}

// by is a row of OpenSSH with flags of sshpace.
func by(name string, flags ...string) row {
	r := openSSH(name)
	r.flags = flags
	return r
}

// inside is a row of OpenSSH whose SFTP begins in another directory than its commands.
func inside(name, dir string, lines ...string) row {
	r := openSSH(name, lines...)
	plain := r.start
	r.start = func(t testing.TB, home string) server {
		s := plain(t, home)
		s.root = filepath.Join(home, dir)
		return s
	}
	return r
}

// chroot is a row of OpenSSH that shows a home directory as /.
func chroot(name string, quick ...string) row {
	return row{name: name, quick: quick, start: func(t testing.TB, home string) server {
		if err := os.Chown(home, 0, 0); err != nil {
			t.Fatal(err)
		}
		return ofSshd(sshtest.StartSshdInChroot(t, home), filepath.Join(home, "work"))
	}}
}

func matches(t *testing.T, pattern, name string) bool {
	t.Helper()
	found, err := regexp.MatchString(pattern, name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// account is a row of OpenSSH with a login shell, and a file that it reads when it starts.
func account(shell, file, text string, lines ...string) row {
	name := filepath.Base(shell)
	if text != "" {
		name += ": " + text
	}
	return row{name: name, start: func(t testing.TB, home string) server {
		if file != "" {
			if err := os.WriteFile(filepath.Join(home, file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return ofSshd(sshtest.StartSshdWithHome(t, home, shell, lines...), home)
	}}
}
