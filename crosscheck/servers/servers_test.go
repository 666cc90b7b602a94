// Package servers copies files to SFTP servers of many makers and from them, in all the ways that
// sshpace has, and compares what comes of it with what scp and sftp do. It is the program itself
// that copies, in a process of its own.
package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/waittest"
	"sshpace/internal/cli"
	"sshpace/internal/sys/proc"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sshpace": func() {
		sys := cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals}
		os.Exit(cli.Main(context.Background(), sys, os.Args))
	}})
}

// TestServers does with each server the operations that its row is there for. With
// SSHPACE_SERVERS, a pattern of names such as . for all, it does all of them, with start-up files
// and shells as well, and prints a line for each server.
func TestServers(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	pattern, _ := os.LookupEnv("SSHPACE_SERVERS")
	_, seed := seedtest.Cases(t, 1)
	m := matrix{seed: seed, all: pattern != ""}
	for _, r := range m.rows(t, pattern) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			m.visit(t, r)
		})
	}
}

// A row without a login is an error, and says why.
func TestNobodyLogsIn(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	if err := start(t, openSSH("closed", "DenyUsers *")).login(t); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("%v", err)
	}
}

// matrix is a run over servers and operations.
type matrix struct {
	seed uint64
	all  bool // operations of each server, and each is printed
}

// rows are the servers whose names have the pattern.
func (m *matrix) rows(t *testing.T, pattern string) (rows []row) {
	t.Helper()
	rows = makers
	if !m.all {
		return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return len(r.quick) == 0 })
	}
	rows = append(slices.Clone(rows), accounts()...)
	rows = slices.DeleteFunc(rows, func(r row) bool { return !matches(t, pattern, r.name) })
	m.print("server", func(o operation) string { return o.name })
	return rows
}

// visit does operations with one server, each in directories of its own. Where nobody can log in,
// nothing is tried.
func (m *matrix) visit(t *testing.T, r row) {
	said := map[string]string{}
	if m.all {
		defer m.print(r.name, func(o operation) string { return cmp.Or(said[o.name], "-") })
	}
	wrong := func(name string, err error) {
		t.Errorf("%s: %v", name, err)
		if m.all {
			fmt.Printf("matrix: %s: %s: %s\n", r.name, name, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	s := start(t, r)
	if err := s.login(t); err != nil {
		wrong("login", err)
		return
	}
	for _, o := range operations {
		if !m.all && !slices.Contains(r.quick, o.name) {
			continue
		}
		err := s.try(t, o, m.seed)
		switch {
		case err == nil:
			said[o.name] = "ok"
		case errors.Is(err, errRefused):
			said[o.name] = "no"
			t.Logf("%s: %v", o.name, err)
		default:
			said[o.name] = "WRONG"
			wrong(o.name, err)
		}
	}
}

// print writes a line of the matrix.
func (m *matrix) print(name string, cell func(operation) string) {
	line := strings.Builder{}
	fmt.Fprintf(&line, "matrix: %-44s", name)
	for _, o := range operations {
		fmt.Fprintf(&line, " %-*s", max(len(o.name), len("WRONG")), cell(o))
	}
	fmt.Println(strings.TrimRight(line.String(), " "))
}
