package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/ssh/sshtest"
)

// TestSecondRunStartsNothing: what the installed ssh says of itself is known from the first run on,
// also where ssh is a script that counts its starts.
func TestSecondRunStartsNothing(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	counted := t.TempDir()
	script := "#!/bin/sh\n# counts\necho \"$*\" >>\"$HOME/starts\"\nexec /usr/bin/ssh \"$@\"\n"
	if err := os.WriteFile(filepath.Join(counted, "ssh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2100 * time.Millisecond) // nothing is kept of a newer file
	for name, args := range map[string][]string{
		"run":            {"run", "-w", "127.0.1.[1-3]", "--", "true"},
		"run -o":         {"run", "-o", "KexAlgorithms=-*sha1", "-o", "IPQoS=af21", "-w", "127.0.1.1", "--", "true"},
		"run -o VERSION": {"run", "-o", "IgnoreUnknown=Moon", "-o", "Moon=full", "-w", "127.0.1.1", "--", "true"},
		"copy":           {"copy", "-w", "127.0.1.1", "ssh_config", ":" + t.TempDir()},
		"hosts":          {"hosts", "127.0.1.1"},
		"config":         {"config", "127.0.1.1"},
	} {
		for ssh, path := range map[string]string{"": os.Getenv("PATH"), ", a script": counted + ":" + os.Getenv("PATH")} {
			t.Run(name+ssh, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				fleetFiles(t, dir, s)
				first, second := childrenOf(t, dir, path, args), childrenOf(t, dir, path, args)
				if second {
					t.Errorf("the second run starts processes; the first one: %v", first)
				}
				asked, _ := os.ReadFile(filepath.Join(dir, "starts"))
				for question := range strings.Lines(string(asked)) {
					if n := strings.Count("\n"+string(asked), "\n"+question); n > 1 {
						t.Errorf("asked %d times: %s", n, question)
					}
				}
			})
		}
	}
}

// childrenOf runs sshpace, and reports whether it has started any process, by the faults of pages
// of those that it has waited for.
func childrenOf(t *testing.T, dir, search string, args []string) bool {
	t.Helper()
	path, err := exec.LookPath("sshpace")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{args[0], "-F", filepath.Join(dir, "ssh_config")}, args[1:]...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "XDG_CACHE_HOME="+dir+"/cache", "PATH="+search)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if ended := cmd.Wait(); err != nil || ended != nil {
		t.Fatalf("%v, %v: %s", err, ended, &said)
	}
	_, fields, _ := strings.Cut(string(stat), ") ") // proc(5): the first is field 3, cminflt field 11
	return strings.Fields(fields)[8] != "0"
}
