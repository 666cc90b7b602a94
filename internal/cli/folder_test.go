package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// stranger is a user that is neither we nor root.
const stranger = 47110

// theirs makes a folder that another user owns, in one that all can reach.
func theirs(t *testing.T) (base, foreign string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	base, err := os.MkdirTemp("/tmp", "sshpace-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	foreign = filepath.Join(base, "theirs")
	for _, path := range []string{base, foreign, filepath.Join(base, "ours")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(foreign, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	return base, foreign
}

// swap is what another user does to get a command of his run as us: he finds the
// private folder by the command line of its keeper, moves what is in his reach
// aside, and puts a configuration of his in its place.
const swap = `
cd "$0" || exit
echo ready
while :; do
	for line in /proc/[0-9]*/cmdline; do
		mapfile -d '' -t words <"$line"
		path=${words[3]}
		[[ ${words[2]} == keep && $path == "$0"/* ]] && break 2
	done
done 2>/dev/null
below=${path#"$0"/}
first=${below%%/*}
rest=${below#"$first"}
mv "$first" aside && mkdir -p "$path" || exit
echo swapped
for f in host_key user_key authorized_keys known_hosts; do ln -s "$0/aside$rest/$f" "$path/$f"; done
while [ -d "$path" ]; do
	printf '%s\n' "HostKey $0/aside$rest/host_key" "AuthorizedKeysFile $0/aside$rest/authorized_keys" \
		"StrictModes no" "UsePAM no" "PidFile none" "PermitRootLogin yes" "ForceCommand touch $1" >"$path/new"
	mv -f "$path/new" "$path/sshd_config"
done 2>/dev/null
`

// attack runs swap as the other user until the test ends.
func attack(t *testing.T, foreign, marker string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", swap, foreign, marker)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}, Setpgid: true}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other user said %q, %v", line, err)
	}
}

// sshpace runs it with an environment of its own.
func sshpace(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(sshpaceProgram(t), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin"}, env...)
	cmd.Dir = "/"
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// A user who owns a folder above the one that we are told to use does not get
// his ForceCommand run, by the real sshd, as us.
func TestForeignParentGetsNoCommandRun(t *testing.T) {
	for _, variable := range []string{"XDG_RUNTIME_DIR", "HOME", "TMPDIR"} {
		t.Run(variable, func(t *testing.T) {
			base, foreign := theirs(t)
			marker := filepath.Join(base, "ours", "marker")
			attack(t, foreign, marker)
			env := []string{variable + "=" + foreign, "XDG_STATE_HOME=" + filepath.Join(base, "ours")}
			text, err := sshpace(t, env, "bench", "--rounds", "1", "--cipher", "aes128-gcm*", "--kex", "curve25519-sha256", "--out", filepath.Join(base, "ours", "result.jsonl"))
			if err != nil {
				t.Errorf("bench: %v\n%s", err, text)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("the other user's command was run")
			}
			if left, _ := os.ReadDir(foreign); len(left) > 0 {
				t.Errorf("the other user's folder holds %v", left)
			}
		})
	}
}

// nowhere runs sshpace, a copy of $0, where no folder is out of others' reach: in a
// mount namespace of its own in which /tmp is not sticky.
const nowhere = `
mount -t tmpfs none /mnt && cp "$0" /mnt/sshpace && mkdir /mnt/theirs && chown "$1" /mnt/theirs &&
	mount -t tmpfs -o mode=777 none /tmp && shift && exec /mnt/sshpace "$@"
`

// Where no folder is out of others' reach, nothing is begun, in two lines.
func TestNoFolderIsAClearError(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", nowhere, sshpaceProgram(t), fmt.Sprint(stranger), "bench", "--rounds", "1", "--out", "/mnt/result.jsonl")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=/mnt/theirs", "HOME=/mnt/theirs"}
	text, _ := cmd.CombinedOutput()
	want := "sshpace: error: no folder can be made that other users cannot reach: " +
		"/mnt/theirs belongs to another user (uid 47110); /mnt/theirs belongs to another user (uid 47110); /tmp can be written by others (mode 0777)\n" +
		"sshpace: hint: set XDG_RUNTIME_DIR to a folder of yours in folders of yours or root's; as root, use sudo -H or su -\n"
	if string(text) != want {
		t.Errorf("said:\n%s\nwant:\n%s", text, want)
	}
}
