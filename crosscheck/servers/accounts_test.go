package servers

import (
	"os"
	"path/filepath"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// startUps are what people write into the files that their login shell reads for every command.
var startUps = []struct {
	shell, file string
	texts       []string
}{
	{"/bin/bash", ".bashrc", []string{
		`echo hello`, `echo hello >&2`, `printf 'no end of line'`, `yes | head -c 300000`, `printf '\033[2J\033]0;title\007'`,
		`cd work`, `cd /`, `cd /nonexistent`, `exit 0`, `exit 3`, `return 1`, `kill -9 $$`, `exec sh`, `exec true`,
		`PATH=`, `unset PATH`, `PATH=/nonexistent`, `HOME=/nonexistent`, `IFS=sh`, `umask 077`, `umask 0`,
		`cat >/dev/null`, `read line`, `stty -echo`, `sleep 1`, `sleep 3 &`,
		`shopt -s expand_aliases; alias cat=false tar=false cksum=false sh=false`, `exec() { echo no; }`, `sh() { false; }`,
		`trap 'echo bye' EXIT`, `trap '' TERM HUP INT PIPE`, `trap 'echo debug' DEBUG`,
		`set -e`, `set -u`, `set -x`, `set -C`, `set -f`, `ulimit -f 100`, `export TAR_OPTIONS=--verbose`, `export POSIXLY_CORRECT=1 LC_ALL=C`,
		`if then`,
	}},
	{"/bin/zsh", ".zshenv", []string{`echo hello`, `cd work`, `exit 0`, `PATH=`, `setopt noclobber nounset`, `cat >/dev/null`}},
	{"/usr/bin/fish", ".config/fish/config.fish", []string{`echo hello`, `cd work`, `exit 0`, `set -x PATH`, `cat >/dev/null`}},
	{"/bin/tcsh", ".cshrc", []string{`echo hello`, `cd work`, `exit 0`, `set path = ()`, `set noclobber`, `cat >/dev/null`}},
}

// shells are login shells that read no such file, or run nothing.
var shells = []string{"/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/fish", "/bin/tcsh", "/bin/ksh93", "/bin/mksh", "/bin/rbash", "/usr/sbin/nologin", "/bin/false"}

// accounts are rows of login shells and start-up files.
func accounts() (rows []row) {
	for _, shell := range shells {
		rows = append(rows, account(shell, "", ""))
	}
	noisy := account("/bin/bash", ".bashrc", "echo hello", "Subsystem sftp /usr/lib/openssh/sftp-server")
	noisy.name = "bash with sftp-server: echo hello"
	rows = append(rows, refuser(), noisy)
	for _, s := range startUps {
		for _, text := range s.texts {
			rows = append(rows, account(s.shell, s.file, text))
		}
	}
	return rows
}

// refuser is an account whose shell knows no command, as the one of Windows does.
func refuser() row {
	return row{name: "a shell that knows no exec", start: func(t testing.TB, home string) server {
		shell := filepath.Join(home, "shell")
		text := "#!/bin/sh\necho \"'exec' is not recognized as an internal or external command,\"\necho operable program or batch file.\nexit 1\n"
		if err := os.WriteFile(shell, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return ofSshd(sshtest.StartSshdWithHome(t, home, shell), home)
	}}
}
