package workdir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain is also the keeper, and a process that is killed while it has a
// folder.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "keep" {
		if Keep(os.Args[2], os.Stdin) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "hold" {
		d, err := New(Params{Getenv: os.Getenv, Keeper: []string{os.Args[0], "keep"}})
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(d.Path + "\n")
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
	d, err := New(Params{Getenv: env(map[string]string{"XDG_RUNTIME_DIR": t.TempDir()}), Keeper: []string{self(t), "keep"}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
	if d.Strict {
		t.Error("a folder below /tmp was called strict")
	}
	if err := os.WriteFile(d.File("key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Error("the folder is still there")
	}
}

func TestFallsBackWhenAFolderCannotBeMade(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := New(Params{Getenv: env(map[string]string{"XDG_RUNTIME_DIR": blocked, "HOME": "/with blank"}), Keeper: []string{self(t), "keep"}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !strings.HasPrefix(d.Path, os.TempDir()) {
		t.Errorf("folder %s, want one below %s", d.Path, os.TempDir())
	}
}

// After kill -9 the keeper must remove the folder.
func TestKilledRunLeavesNothing(t *testing.T) {
	cmd := exec.Command(self(t), "hold")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(line[:n]))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return
		}
	}
	t.Errorf("%s is still there", path)
}

func TestKeepRefusesForeignFolders(t *testing.T) {
	dir := t.TempDir()
	if err := Keep(dir, strings.NewReader("")); err == nil {
		t.Error("a foreign folder was removed")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
