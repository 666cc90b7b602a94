package sshtest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Foreign is an SFTP server of another maker than OpenSSH, for the account that runs the test.
type Foreign struct {
	Port    int
	User    string
	Key     string // a private key file that may log in
	HostKey ssh.PublicKey
	Home    string // the directory that sessions begin in
}

//go:embed makers/*.py
var makers embed.FS

// StartAsyncSSH is a server by the Python library asyncssh, until the test ends. window is the one
// that it opens channels with.
func StartAsyncSSH(t testing.TB, window int) *Foreign {
	t.Helper()
	return startPython(t, "asyncssh", strconv.Itoa(window))
}

// StartParamiko is a server by the Python library paramiko, until the test ends.
func StartParamiko(t testing.TB) *Foreign { t.Helper(); return startPython(t, "paramiko") }

// StartTwisted is a server by Twisted Conch, until the test ends.
func StartTwisted(t testing.TB) *Foreign { t.Helper(); return startPython(t, "twisted") }

// startPython runs a program of makers with Debian's Python, which has the library.
func startPython(t testing.TB, maker string, args ...string) *Foreign {
	t.Helper()
	program, err := makers.ReadFile("makers/" + maker + ".py")
	if err != nil {
		t.Fatal(err)
	}
	return startForeign(t, func(f *Foreign, dir string) []string {
		return append([]string{
			"/usr/bin/python3", "-c", string(program),
			strconv.Itoa(f.Port), filepath.Join(dir, "host_key"), filepath.Join(dir, "user_key.pub"), f.Home,
		}, args...)
	})
}

// StartRclone is rclone serve sftp, until the test ends.
func StartRclone(t testing.TB) *Foreign {
	t.Helper()
	return startForeign(t, func(f *Foreign, dir string) []string {
		return []string{
			"rclone", "serve", "sftp", f.Home, "--config", "", "--dir-cache-time", "1ns", "--addr", fmt.Sprintf("127.0.0.1:%d", f.Port),
			"--key", filepath.Join(dir, "host_key"), "--authorized-keys", filepath.Join(dir, "user_key.pub"),
		}
	})
}

// StartProFTPD is ProFTPD with its module mod_sftp, until the test ends.
func StartProFTPD(t testing.TB) *Foreign {
	t.Helper()
	return startForeign(t, func(f *Foreign, dir string) []string {
		keys, err := exec.Command("ssh-keygen", "-e", "-m", "RFC4716", "-f", filepath.Join(dir, "user_key.pub")).Output()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "authorized"), string(keys))
		write(t, filepath.Join(dir, "passwd"), fmt.Sprintf("%s:*:%d:%d::%s:/bin/sh\n", f.User, os.Getuid(), os.Getgid(), f.Home))
		config := filepath.Join(dir, "proftpd.conf")
		write(t, config, strings.NewReplacer("DIR", dir, "PORT", strconv.Itoa(f.Port), "USER", f.User).Replace(proftpd))
		return []string{"/usr/sbin/proftpd", "-n", "-q", "-c", config}
	})
}

const proftpd = `ModulePath /usr/lib/proftpd
LoadModule mod_sftp.c
ServerType standalone
DefaultAddress 127.0.0.1
Port PORT
User USER
Group root
PidFile DIR/pid
ScoreboardFile DIR/scoreboard
ControlsEngine off
ControlsSocket DIR/socket
DelayEngine off
UseFtpUsers off
UseReverseDNS off
RootLogin on
RequireValidShell off
WtmpLog off
AuthPAM off
AuthOrder mod_auth_file.c
AuthUserFile DIR/passwd
AllowOverwrite on
SFTPEngine on
SFTPHostKey DIR/host_key
SFTPAuthMethods publickey
SFTPAuthorizedUserKeys file:DIR/authorized
`

// startForeign runs a server whose keys are in a directory, with the command line for it.
func startForeign(t testing.TB, command func(f *Foreign, dir string) []string) *Foreign {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := &Foreign{Port: port, User: me.Username, Home: t.TempDir()}
	_, f.HostKey = WriteKey(t, dir, "host_key", "")
	f.Key, _ = WriteKey(t, dir, "user_key", "")
	argv := command(f, dir)
	listen(t, exec.Command(argv[0], argv[1:]...), &logBuffer{}, port)
	return f
}
