//go:build linux

package benchtest

import (
	"context"
	"os"
	"testing"

	"sshpace/internal/bench/helper"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Serve is for TestMain: it does not return if the test was started as a helper program.
func Serve() {
	if exit, ran := helper.Run(context.Background(), os.Args, os.Stderr, nil); ran {
		os.Exit(exit)
	}
}

// Workdir returns a private directory and a spawner, until the test ends.
func Workdir(t testing.TB, p safedir.WorkdirParams) (*safedir.Workdir, *proc.Spawner) {
	t.Helper()
	home := t.TempDir()
	p.Getenv, p.Keeper = func(name string) string { return map[string]string{"HOME": home}[name] }, helper.Line("keep")
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
