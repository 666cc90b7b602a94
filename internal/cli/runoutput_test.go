package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/fleet"
	"sshpace/internal/host"
)

// scripted is an engine without a network: the name of the host says what
// becomes of it.
type scripted struct{}

func (scripted) FDs() int { return 0 }

func (scripted) Execute(_ context.Context, h host.Host, cmd fleet.Command, a *fleet.Attempt) fleet.Outcome {
	if strings.HasPrefix(h.Name, "down") {
		a.Reached(fleet.PhaseConnect)
		return fleet.Outcome{Class: fleet.Refused, Exit: -1, Err: "connection refused"}
	}
	a.Reached(fleet.PhaseExec)
	if err := a.Output(fleet.Stdout, []byte("ran "+cmd.Line+"\n")); err != nil {
		return fleet.Outcome{Class: fleet.Local, Exit: -1, Err: err.Error()}
	}
	a.Reached(fleet.PhaseExit)
	if strings.HasPrefix(h.Name, "bad") {
		return fleet.Outcome{Ran: fleet.RanYes, Exit: 3}
	}
	return fleet.Outcome{Ran: fleet.RanYes}
}

// testSystem is a world of its own for one test.
func testSystem(t *testing.T, stdin string) (sys System, stdout, stderr *bytes.Buffer) {
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_CONFIG_HOME": filepath.Join(dir, "config")}
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return System{Stdin: strings.NewReader(stdin), Stdout: stdout, Stderr: stderr, Getenv: func(k string) string { return env[k] }}, stdout, stderr
}

// runScripted runs a command on the hosts that the flags name.
func runScripted(t *testing.T, sys System, f outputFlags, hosts hostFlags) fleet.Summary {
	t.Helper()
	store := openHistory(sys)
	list, err := hosts.hosts(sys, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.begin(sys, store, "uptime", list)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := fleet.Run(t.Context(), fleet.Params{Fanout: 1}, list, fleet.Command{Line: "uptime"}, scripted{}, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.finish(summary); err != nil {
		t.Fatal(err)
	}
	return summary
}

func TestRunOutputPrefixAndRerun(t *testing.T) {
	sys, stdout, stderr := testSystem(t, "")
	runScripted(t, sys, outputFlags{record: "full"}, hostFlags{sets: []string{"web[1-2],bad[1-2],down[1-2]"}})
	wantOut := "web1  -> ran uptime\nweb2  -> ran uptime\nbad1  -> ran uptime\nbad2  -> ran uptime\n"
	if diff := cmp.Diff(wantOut, stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	for _, want := range []string{"bad1  =: exit 3\n", "down2 =: unreachable: connection refused\n",
		"6 hosts: 2 ok, 2 failed, 2 unreachable in ", "failed: bad[1-2]\n", "unreachable: down[1-2]\n"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	stdout.Reset()
	summary := runScripted(t, sys, outputFlags{record: "full"}, hostFlags{rerun: "failed", exclude: []string{"bad2"}})
	if summary.Failed != 1 || summary.Total() != 1 || stdout.String() != "bad1 -> ran uptime\n" {
		t.Errorf("rerun: %+v\n%s", summary, stdout)
	}
	stdout.Reset()
	if err := listHistory(sys, openHistory(sys)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "6      2   2       2            0           uptime") {
		t.Errorf("history:\n%s", stdout)
	}
}

func TestRunOutputGatherJSONAndFiles(t *testing.T) {
	sys, stdout, _ := testSystem(t, "# hosts\n%web\nweb[1-3]\n%db\ndb1\n")
	dir := filepath.Join(t.TempDir(), "out")
	runScripted(t, sys, outputFlags{gather: true, outdir: dir, record: "none"}, hostFlags{sets: []string{"-"}, labels: []string{"web"}})
	if want := "---------------\nweb[1-3] (3)\n---------------\nran uptime\n"; stdout.String() != want {
		t.Errorf("gathered:\n%s", stdout)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "web2.out")); err != nil || string(data) != "ran uptime\n" {
		t.Errorf("web2.out = %q, %v", data, err)
	}
	if ids, err := openHistory(sys).IDs(); err != nil || len(ids) != 0 {
		t.Errorf("recorded: %v, %v", ids, err)
	}
	stdout.Reset()
	runScripted(t, sys, outputFlags{json: true, record: "hosts"}, hostFlags{sets: []string{"web1,down1"}})
	var types []string
	for line := range strings.Lines(stdout.String()) {
		var rec struct{ Type, Schema, ID string }
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Type == "run" && (rec.Schema != "sshpace.run/1" || rec.ID == "") {
			t.Errorf("first record: %s", line)
		}
		types = append(types, rec.Type)
	}
	if diff := cmp.Diff([]string{"run", "output", "result", "result", "summary"}, types); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rec, err := openHistory(sys).Last(); err != nil || rec.Command != "" {
		t.Errorf("record = %+v, %v", rec, err)
	}
}

// Without a place for the history the run is done all the same.
func TestRunOutputWithoutHistory(t *testing.T) {
	sys, stdout, stderr := testSystem(t, "")
	sys.Getenv = func(string) string { return "" }
	runScripted(t, sys, outputFlags{record: "full"}, hostFlags{sets: []string{"web1"}})
	if stdout.String() != "web1 -> ran uptime\n" || !strings.Contains(stderr.String(), "warning: this run is not recorded") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
}

func TestHostFlagsGroupsAndKnownNames(t *testing.T) {
	sys, _, _ := testSystem(t, "")
	dir := configDir(sys.Getenv)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "groups"), []byte("db: db[1-2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := hostFlags{sets: []string{"@db", "gate*"}}
	hosts, err := f.hosts(sys, openHistory(sys), func() ([]string, error) { return []string{"gate1", "web1"}, nil })
	if err != nil || len(hosts) != 3 || hosts[2].Name != "gate1" {
		t.Errorf("%v, %v", hosts, err)
	}
	for _, f := range []hostFlags{{}, {sets: []string{"@none"}}, {sets: []string{"a;b"}}, {files: []string{"/none"}}, {sets: []string{"a"}, groups: "/none"}, {rerun: "failed"}} {
		_, err := f.hosts(sys, openHistory(sys), nil)
		if coded, ok := err.(*Error); !ok || coded.ExitCode() != ExitUsage {
			t.Errorf("%+v: error %v, want a usage error", f, err)
		}
	}
}

func TestOutputFlagsCheck(t *testing.T) {
	for _, f := range []outputFlags{{gather: true, json: true, record: "full"}, {record: "some"}} {
		if f.check() == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
	if err := (&outputFlags{json: true, outdir: "x", record: "hosts"}).check(); err != nil {
		t.Error(err)
	}
}
