package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What the start-up file of a shell is changed by is typed twice, with a later edit between: the
// first time puts the guard before the old file and keeps that, the second one changes nothing.
func TestStartUpIsKept(t *testing.T) {
	for shell, guard := range guards {
		f, found := plain(), &Finding{Cost: of(480)}
		f.Server.Started, f.Server.Shell = of(480), "/bin/"+shell
		if !startUp(f, found) {
			t.Fatalf("%s: not taken for the cause", shell)
		}
		home, bin := t.TempDir(), t.TempDir()
		file := filepath.Join(home, guard.file[2:])
		const old = "# old\n"
		ssh := "#!/bin/sh\nfor command; do :; done\nexec " + shell + " -c \"$command\"\n" // the last argument
		for name, text := range map[string]string{file: old, filepath.Join(bin, "ssh"): ssh} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		repair := func() error {
			cmd := exec.Command("sh", "-c", found.Do)
			cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"))
			return cmd.Run()
		}
		if err := repair(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, found.Do)
		}
		guarded, _ := os.ReadFile(file)
		if want := guard.line + "\n" + old; string(guarded) != want {
			t.Errorf("%s: %q, want %q", shell, guarded, want)
		}
		edited := string(guarded) + "# later\n"
		if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := repair(); err == nil {
			t.Errorf("%s: goes on though there is a copy already", shell)
		}
		if now, _ := os.ReadFile(file); string(now) != edited {
			t.Errorf("%s: a later edit is lost: %q", shell, now)
		}
	}
}
