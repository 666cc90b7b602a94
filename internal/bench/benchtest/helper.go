//go:build linux

package benchtest

import (
	"fmt"
	"os"
	"testing"

	"sshpace/internal/bench/flow"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Helper is the command line of a helper program of sshpace, which a test's own program
// is by Serve.
func Helper(name string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{self, "--helper", name}
}

// Serve is for TestMain: it does not return where the test was started as a helper
// program, one that all tests have or one of its own.
func Serve(own map[string]func(args []string) error) {
	if len(os.Args) < 3 || os.Args[1] != "--helper" {
		return
	}
	var err error
	switch name, args := os.Args[2], os.Args[3:]; name {
	case "flow":
		err = flow.Main(args, os.Stdin, os.Stdout)
	case "keep":
		err = safedir.Keep(args[0], os.Stdin)
	default:
		err = own[name](args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Workdir is a private folder and a spawner, until the test ends.
func Workdir(t testing.TB, p safedir.WorkdirParams) (*safedir.Workdir, *proc.Spawner) {
	t.Helper()
	home := t.TempDir()
	p.Getenv, p.Keeper = func(name string) string { return map[string]string{"HOME": home}[name] }, Helper("keep")
	dir, err := safedir.NewWorkdir(p)
	if err != nil {
		t.Fatal(err)
	}
	spawner := proc.NewSpawner()
	t.Cleanup(func() {
		spawner.Close()
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir, spawner
}
