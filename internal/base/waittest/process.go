package waittest

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// Again runs the test once more, alone in its own process, with settings of the environment and
// through other programs, such as unshare(1). The output and the result of that process become the
// test's.
func Again(t *testing.T, env []string, by ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(by, exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Errorf("again: %v", err)
	}
}

// ownRoot runs a program, $0, where /, /run, /root and /tmp are ours, and the accounts of root and
// nobody are not locked: files of the real root belong to a stranger there.
const ownRoot = `root=$(mktemp -d) && mount -t tmpfs -o mode=755 none "$root" && cd "$root" || exit
for at in /*; do
	if [ -h "$at" ]; then cp -P "$at" .; elif [ -d "$at" ]; then mkdir ".$at" && mount --rbind "$at" ".$at"; fi
done
mount -t tmpfs -o mode=755 none run && mount -t tmpfs -o mode=700 none root && mount -t tmpfs -o mode=1777 none tmp &&
	printf '%s:+:::::::\n' root nobody >shadow && mount --bind shadow etc/shadow && cp "$0" test &&
	HOME=/root TMPDIR=/tmp exec chroot . sh -c 'cd "$0"; exec "$@"' "$OLDPWD" /test "$@"`

// AsRoot reports whether the test has root's rights. If not, it runs the test again as root of a
// user namespace with other users and its own mounts; the caller then has nothing more to do. That
// takes newuidmap(1), and subordinate users of ours (subuid(5)).
func AsRoot(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		Again(t, nil, "unshare", "--map-root-user", "--map-auto", "--mount", "sh", "-c", ownRoot)
	}
	return os.Geteuid() == 0
}

// Piped starts a command and returns its standard input and output. The caller waits for its end.
func Piped(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}
