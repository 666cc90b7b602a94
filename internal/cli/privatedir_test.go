package cli_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// stranger is a user that is neither we nor root.
const stranger = 47110

// theirs makes a directory that another user owns, in one that all can reach.
func theirs(t *testing.T) (base, foreign string) {
	t.Helper()
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

// swap is what another user does to get a command of his run as us: he finds the private directory
// by the command line of its keeper, moves what is in his reach aside, and puts a configuration of
// his in its place.
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

// A user who owns a directory above the one that we are told to use does not get his ForceCommand
// run, by the real sshd, as us.
func TestForeignParentGetsNoCommandRun(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	for _, variable := range []string{"XDG_RUNTIME_DIR", "HOME", "TMPDIR"} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			base, foreign := theirs(t)
			marker := filepath.Join(base, "ours", "marker")
			attack(t, foreign, marker)
			env := []string{variable + "=" + foreign, "XDG_STATE_HOME=" + filepath.Join(base, "ours")}
			text, err := sshpace(t, env, "doctor", "--only", "keys") // whatever logs in to a private sshd
			if err != nil {
				t.Errorf("doctor: %v\n%s", err, text)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("the other user's command was run")
			}
			if left, _ := os.ReadDir(foreign); len(left) > 0 {
				t.Errorf("the other user's directory holds %v", left)
			}
		})
	}
}

// nowhere runs sshpace, a copy of $0, where no directory is out of others' reach: in a mount
// namespace of its own in which /tmp is not sticky.
const nowhere = `
mount -t tmpfs none /mnt && cp "$0" /mnt/sshpace && mkdir /mnt/theirs && chown "$1" /mnt/theirs &&
	mount -t tmpfs -o mode=777 none /tmp && shift && exec /mnt/sshpace "$@"
`

// Where no directory is out of others' reach, nothing is begun, in two lines.
func TestNoDirectoryIsAClearError(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", nowhere, sshpaceProgram(t), fmt.Sprint(stranger), "bench", "--rounds", "1", "--out", "/mnt/result.jsonl")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=/mnt/theirs", "HOME=/mnt/theirs"}
	text, _ := cmd.CombinedOutput()
	want := "sshpace: error: no directory can be made that other users cannot reach: " +
		"/mnt/theirs belongs to another user (uid 47110); /mnt/theirs belongs to another user (uid 47110); /tmp can be written by others (mode 0777)\n" +
		"sshpace: hint: set XDG_RUNTIME_DIR to a directory that, with all above it, only you and root can change; as root, use sudo -H or su -\n"
	if string(text) != want {
		t.Errorf("said:\n%s\nwant:\n%s", text, want)
	}
}

// plant writes a result, which sshpace has made, where the newest is looked for, as another user's.
func plant(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
}

// refused makes sure that a command ended with these two lines, and code.
func refused(t *testing.T, text string, err error, code int, problem, hint string) {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Errorf("ended with %v, want exit code %d", err, code)
	}
	if !strings.Contains(text, "sshpace: error: ") || !strings.Contains(text, problem) || !strings.Contains(text, "sshpace: hint: "+hint) {
		t.Errorf("said:\n%s\nwant %q and the hint %q", text, problem, hint)
	}
}

// Without a FILE, only a result that we own is reported or made advice of, from a directory that
// nobody else can write.
func TestOthersResultsAreNotOurs(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	base, foreign := theirs(t)
	state := filepath.Join(base, "ours")
	results := filepath.Join(state, "sshpace", "results")
	plant(t, results, "20990101T000000.000Z-loopback.jsonl", "{}\n")
	for _, command := range []string{"report", "advise"} {
		text, err := sshpace(t, []string{"XDG_STATE_HOME=" + state}, command)
		refused(t, text, err, 2, "there is no result in "+results, "measure first")
	}
	if err := os.Chmod(results, 0o777); err != nil {
		t.Fatal(err)
	}
	text, err := sshpace(t, []string{"XDG_STATE_HOME=" + state}, "report")
	refused(t, text, err, 1, results+" can be written by others (mode 0777)", "name the result")
	text, err = sshpace(t, []string{"XDG_STATE_HOME=" + state, "HOME=" + base}, "bench", "--rounds", "1", "--cipher", "aes128-gcm*", "--kex", "curve25519-sha256")
	refused(t, text, err, 1, results+" can be written by others (mode 0777)", "make it yours alone")
	text, err = sshpace(t, []string{"XDG_STATE_HOME=" + foreign}, "limits", "--only", "memory*")
	refused(t, text, err, 1, foreign+" belongs to another user", "make it yours alone")
	if strings.Contains(text, "measuring") {
		t.Errorf("measured before the directory was looked at:\n%s", text)
	}
}

// A result that goes to a file needs no directory for those without a name.
func TestMachineOutNeedsNoStateDirectory(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	base, foreign := theirs(t)
	out := filepath.Join(base, "ours", "m.jsonl")
	text, err := sshpace(t, []string{"XDG_STATE_HOME=" + foreign}, "limits", "--only", "memory*", "--only", "disk*", "--rounds", "1", "--out", out)
	if err != nil || !strings.Contains(text, "disk read is not measured: there is no directory to put a file into") {
		t.Errorf("%v\n%s", err, text)
	}
	if left, _ := os.ReadDir(foreign); len(left) > 0 {
		t.Errorf("the other user's directory holds %v", left)
	}
}

// A recorded run decides which hosts are meant, and what is run again: one that another user has
// written is none of ours.
func TestOthersHistoryIsNotOurs(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	base, _ := theirs(t)
	state := filepath.Join(base, "ours")
	runs := filepath.Join(state, "sshpace", "runs")
	plant(t, runs, "20990101T000000.000000000Z-aaaaaa.jsonl",
		`{"type":"run","schema":"sshpace.run/1","id":"x","start":"2099-01-01T00:00:00Z","command":"touch /tmp/planted","set":"evil","how":{}}`+"\n")
	text, err := sshpace(t, []string{"XDG_STATE_HOME=" + state}, "run", "--list", "-w", "@last:all")
	if err == nil || strings.Contains(text, "evil\n") || !strings.Contains(text, "there is no such run in the history") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := os.Chmod(filepath.Dir(runs), 0o777); err != nil {
		t.Fatal(err)
	}
	text, err = sshpace(t, []string{"XDG_STATE_HOME=" + state}, "run", "--list", "-w", "@last:all")
	if err == nil || !strings.Contains(text, "can be written by others (mode 0777)") {
		t.Errorf("%v\n%s", err, text)
	}
}

// A directory for output that is another user's, open to others, or cannot be written is found out
// before a command is started.
func TestOutdirIsCheckedBeforeCommandsStart(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	s := sshtest.StartSshd(t)
	base, foreign := theirs(t)
	ours := filepath.Join(base, "ours")
	fleetFiles(t, ours, s)
	open, readOnly := filepath.Join(ours, "open"), filepath.Join(ours, "ro")
	for path, mode := range map[string]os.FileMode{open: 0o777, readOnly: 0o700} {
		if err := os.Mkdir(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount("none", readOnly, "tmpfs", syscall.MS_RDONLY, "mode=700"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(readOnly, syscall.MNT_DETACH) }()
	marker := filepath.Join(ours, "marker")
	for path, why := range map[string]string{
		open: "can be written by others (mode 0777)", foreign: "belongs to another user", filepath.Join(foreign, "below"): "belongs to another user",
		readOnly: "read-only file system",
	} {
		text, err := sshpace(t, []string{"XDG_STATE_HOME=" + ours}, "run", "-F", filepath.Join(ours, "ssh_config"), "-w", "127.0.1.1", "--dir", path, "--", "touch", marker)
		refused(t, text, err, 1, why, "name a directory that is yours alone")
		if _, err := os.Stat(marker); err == nil {
			t.Fatalf("%s: the command was run", path)
		}
	}
}
