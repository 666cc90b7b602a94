package safedir

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
)

// TestMain is also the keeper, and a process that is killed while it has a directory.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "keep" {
		if Keep(os.Args[2], os.Stdin) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "hold" {
		d, err := NewWorkdir(WorkdirParams{Getenv: os.Getenv, Keeper: []string{os.Args[0], "keep"}})
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(d.Path, d.keeper.Process.Pid)
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestNewAndClose(t *testing.T) {
	d, err := NewWorkdir(WorkdirParams{Getenv: env(map[string]string{"XDG_RUNTIME_DIR": t.TempDir()}), Keeper: []string{self(t), "keep"}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
	if d.Strict {
		t.Error("a directory below /tmp was called strict")
	}
	if err := os.WriteFile(d.File("key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Error("the directory is still there")
	}
}

func makeIn(t *testing.T, values map[string]string) *Workdir {
	t.Helper()
	d, err := NewWorkdir(WorkdirParams{Getenv: env(values), Keeper: []string{self(t), "keep"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestFallsBackWhenADirectoryCannotBeMade(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blank := filepath.Join(t.TempDir(), "with blank")
	d := makeIn(t, map[string]string{"XDG_RUNTIME_DIR": blocked, "HOME": blank, "TMPDIR": filepath.Join(blocked, "below")})
	if filepath.Dir(d.Path) != "/tmp" {
		t.Errorf("directory %s, want one in /tmp", d.Path)
	}
}

// A directory above which somebody else may rename things is no private one, whichever variable
// names it.
func TestForeignParentsAreLeftOut(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	for _, variable := range []string{"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"} {
		foreign := t.TempDir()
		give(t, foreign)
		for _, value := range []string{foreign, filepath.Join(foreign, "below")} {
			d := makeIn(t, map[string]string{variable: value})
			if filepath.Dir(d.Path) != "/tmp" {
				t.Errorf("%s=%s: the directory is %s", variable, value, d.Path)
			}
		}
		if left, _ := os.ReadDir(foreign); len(left) != 0 {
			t.Errorf("%s: %v was made in the directory of another user", variable, left)
		}
	}
}

func TestParentsThatOthersMayWriteAreLeftOut(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	d := makeIn(t, map[string]string{"XDG_RUNTIME_DIR": open, "HOME": open, "TMPDIR": open})
	if filepath.Dir(d.Path) != "/tmp" {
		t.Errorf("the directory is %s", d.Path)
	}
}

// Where nothing can be used, all reasons are reported.
func TestNoneErrorTellsAllReasons(t *testing.T) {
	err := error(&NoneError{[]error{&UntrustedError{Path: "/a", Why: "belongs to another user (uid 7)"}, errHeld}})
	want := "no directory can be made that other users cannot reach: /a belongs to another user (uid 7); the directory is in use"
	if err.Error() != want || !errors.Is(err, errHeld) {
		t.Errorf("error %q", err)
	}
}

func TestInMemory(t *testing.T) {
	if _, err := os.Stat(memory); err != nil {
		t.Fatal(err)
	}
	d, err := NewWorkdir(WorkdirParams{Getenv: env(nil), Keeper: []string{self(t), "keep"}, InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(d.Path) != memory {
		t.Errorf("directory %s", d.Path)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// holder is a process that has a private directory.
type holder struct {
	cmd    *exec.Cmd
	path   string
	keeper int
}

func startHolder(t *testing.T, runtime string) holder {
	t.Helper()
	h := holder{cmd: exec.Command(self(t), "hold")}
	h.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+runtime)
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill() })
	if _, err := fmt.Fscan(out, &h.path, &h.keeper); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.path); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h holder) kill(t *testing.T) {
	t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
}

// After kill -9 the keeper must remove the directory.
func TestKilledRunLeavesNothing(t *testing.T) {
	h := startHolder(t, t.TempDir())
	h.kill(t)
	waittest.Until(t, "the end of "+h.path, func() bool { _, err := os.Stat(h.path); return os.IsNotExist(err) })
}

// What a run leaves that was killed together with its keeper goes with the next run; the directory
// of one that lives stays, as does what is not ours.
func TestNextRunSweeps(t *testing.T) {
	runtime := t.TempDir()
	dead, alive := startHolder(t, runtime), startHolder(t, runtime)
	if err := os.WriteFile(filepath.Join(dead.path, "user_key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(dead.keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead.kill(t)
	others := filepath.Join(runtime, "sshpace-results")
	if err := os.Mkdir(others, 0o700); err != nil {
		t.Fatal(err)
	}
	makeIn(t, map[string]string{"XDG_RUNTIME_DIR": runtime})
	if _, err := os.Stat(dead.path); !os.IsNotExist(err) {
		t.Errorf("the dead run's directory is still there: %v", err)
	}
	for _, path := range []string{alive.path, others} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestForeignDirectoriesAreNotSwept(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	runtime := t.TempDir()
	foreign := filepath.Join(runtime, prefix+"1")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	give(t, foreign)
	makeIn(t, map[string]string{"XDG_RUNTIME_DIR": runtime})
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// Many runs that begin at once, each sweeping, do not take each other's directories.
func TestRunsThatBeginTogether(t *testing.T) {
	runtime := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				d, err := newIn(runtime)
				if err != nil {
					t.Error(err)
					return
				}
				sweep([]string{runtime})
				if err := d.Verify(); err != nil {
					t.Error(err)
				}
				if err := d.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestKeepRefusesForeignDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := Keep(dir, strings.NewReader("")); err == nil {
		t.Error("a foreign directory was removed")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
