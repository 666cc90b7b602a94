package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/record"
)

// hostile is what no command may write as it is: ESC, CSI as C1, DEL, an override of the direction
// of text, a line separator, and a bell.
const hostile = "\x1b[2J\u009b2J\x7f\u202e\u2028\a"

// harm finds a character that a terminal would act on.
func harm(text []byte) string {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || termsafe.Unsafe(r) {
			return fmt.Sprintf("%q in %q", r, text[max(0, i-60):min(len(text), i+20)])
		}
		i += size
	}
	return ""
}

// lineOf runs a command line and returns all that it writes.
func lineOf(t *testing.T, args ...string) (all []byte, code int) {
	t.Helper()
	var out bytes.Buffer
	env := map[string]string{"HOME": t.TempDir(), "PATH": os.Getenv("PATH")}
	sys := System{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(name string) string { return env[name] }}
	code = Main(context.Background(), sys, append([]string{"sshpace"}, args...))
	return out.Bytes(), code
}

// recordLines are the records of a small file as JSON objects, in order.
func recordLines(t *testing.T, f *record.File) []any {
	t.Helper()
	var lines []any
	add := func(r record.Record) {
		var text bytes.Buffer
		if err := record.Write(&text)(r); err != nil {
			t.Fatal(err)
		}
		var line any
		if err := json.Unmarshal(text.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	for r := range f.Records() {
		add(r)
	}
	add(&record.Finding{What: "x", Why: "x", Evidence: "x", Fix: "x"})
	add(&record.Measurement{Source: "sshpace limits", Name: "pipe", Unit: record.BytesPerSecond, Value: 1e9, N: 3})
	return lines
}

// textPaths lists where a value holds text, such as "trial.want.cipher", each once however many
// records have it.
func textPaths(value any, path string, found map[string]bool) {
	switch v := value.(type) {
	case string:
		found[path] = true
	case []any:
		for _, item := range v {
			textPaths(item, path, found)
		}
	case map[string]any:
		for name, item := range v {
			textPaths(item, strings.TrimPrefix(path+"."+name, "."), found)
		}
	}
}

// planted is a copy of value in which the text at each of the paths is changed.
func planted(value any, path string, at map[string]bool, change func(string) string) any {
	switch v := value.(type) {
	case string:
		if at[path] {
			return change(v)
		}
	case []any:
		var list []any
		for _, item := range v {
			list = append(list, planted(item, path, at, change))
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, item := range v {
			object[name] = planted(item, strings.TrimPrefix(path+"."+name, "."), at, change)
		}
		return object
	}
	return value
}

// writeLines writes objects as a record file. They are as raw as JSON allows.
func writeLines(t *testing.T, path string, lines []any) {
	t.Helper()
	var text bytes.Buffer
	for _, line := range lines {
		if err := json.NewEncoder(&text).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// describedFile is a small result with a text in every field that can have one.
func describedFile(t *testing.T) *record.File {
	_, f := benchtest.Ranking(t, 1, record.Upload)
	f.Campaign.Policy, f.Campaign.Imported = "none", "x"
	f.Environment = record.Environment{
		OS: "x", Kernel: "x", Arch: "x", CPU: "x", CPUFeatures: []string{"x"}, Governor: "x", Hypervisor: "x", CPUClock: "x",
		Client: "x", ClientPath: "/x", Server: "x", ServerPath: "/x", Crypto: "x", ServerBanner: "x", ServerMachine: "x", AddressCheck: "x",
		Limits: []string{"x"}, Cores: 2,
	}
	f.Samples[len(f.Samples)-1].Outcome, f.Samples[len(f.Samples)-1].Detail = record.Refused, "x"
	return f
}

// shownBy are the command lines that show a result.
func shownBy(file string) [][]string {
	var lines [][]string
	for _, name := range []string{"text", "md", "csv", "json", "html", "svg"} {
		lines = append(lines, []string{"report", "--format", name, file}, []string{"compare", "--format", name, file, file})
	}
	for _, table := range []string{"ranking", "kex", "copies", "failed", "controls"} {
		lines = append(lines, []string{"report", "--format", "csv", "--only", table, file})
	}
	return append(lines, []string{"report", "--format", "classic", file}, []string{"advise", file}, []string{"advise", "--json", file})
}

// TestNothingHarmsATerminal plants control characters in every text of a result, one field after
// the other and then in all that a result may have, and runs every command that shows one.
func TestNothingHarmsATerminal(t *testing.T) {
	lines := recordLines(t, describedFile(t))
	paths := map[string]bool{}
	textPaths(lines, "", paths)
	if len(paths) < 40 {
		t.Fatalf("only %d fields hold text", len(paths))
	}
	file := filepath.Join(t.TempDir(), "result.jsonl")
	plant := func(text string) string { return text + hostile }
	all := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		all[path] = true
		writeLines(t, file, planted(lines, "", all, plant).([]any))
		out, code := lineOf(t, "report", "--format", "json", file)
		if found := harm(out); found != "" {
			t.Errorf("%s: %s", path, found)
		}
		if code != ExitOK { // such as an outcome that does not exist
			delete(all, path)
		}
	}
	writeLines(t, file, planted(lines, "", all, plant).([]any))
	for _, args := range shownBy(file) {
		out, _ := lineOf(t, args...)
		if found := harm(out); found != "" {
			t.Errorf("%s: %s", args[:len(args)-1], found)
		}
	}
	if len(all) < 30 {
		t.Errorf("only %d fields could be planted", len(all))
	}
}

// TestAnonymizedNamesNobody plants a name in every text of a result and looks for it in all that a
// report can be.
func TestAnonymizedNamesNobody(t *testing.T) {
	const name = " Joes-Box.example"
	f := describedFile(t)
	f.Campaign.Target = "joe@box"
	lines := recordLines(t, f)
	paths := map[string]bool{}
	textPaths(lines, "", paths)
	file := filepath.Join(t.TempDir(), "result.jsonl")
	all := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		all[path] = true
		writeLines(t, file, planted(lines, "", all, func(text string) string { return text + name }).([]any))
		if _, code := lineOf(t, "report", "--anonymize", "--format", "json", file); code != ExitOK { // such as a time
			delete(all, path)
		}
	}
	if len(all) < 30 {
		t.Errorf("only %d fields could be planted", len(all))
	}
	writeLines(t, file, planted(lines, "", all, func(text string) string { return text + name }).([]any))
	for _, args := range append(shownBy(file), []string{"report", "--format", "jsonl", file}, []string{"report", "--format", "xlsx", file}) {
		if args[0] != "report" {
			continue
		}
		plain, _ := lineOf(t, args...)
		out, code := lineOf(t, append(args, "--anonymize")...)
		empty := bytes.Contains(out, []byte("there is no table")) || bytes.Contains(out, []byte("there is nothing to draw"))
		if code != ExitOK && !empty { // a role that nobody knows is none
			t.Errorf("%s: exit %d: %s", args, code, out)
		}
		if args[2] == "xlsx" {
			plain, out = unpacked(t, plain), unpacked(t, out)
		}
		for _, secret := range []string{"joes", "joe@", "box.ex"} {
			if at := bytes.Index(bytes.ToLower(out), []byte(secret)); at >= 0 {
				t.Errorf("%s: %q in %q", args[:len(args)-1], secret, out[max(0, at-60):min(len(out), at+40)])
			}
		}
		if !slices.Contains([]string{"jsonl", "csv", "classic", "svg"}, args[2]) && !bytes.Contains(bytes.ToLower(plain), []byte("joe")) { // of workloads that nobody knows nothing is drawn
			t.Errorf("%s: the name is not even in the report as it is", args[:len(args)-1])
		}
	}
}

// unpacked is all text in a workbook.
func unpacked(t *testing.T, archive []byte) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, file := range z.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return all
}

// TestAnonymizedResultReports: what people share says the same as what was measured.
func TestAnonymizedResultReports(t *testing.T) {
	file, shared := filepath.Join(t.TempDir(), "result.jsonl"), filepath.Join(t.TempDir(), "shared.jsonl")
	_, f := benchtest.Ranking(t, 1, record.Upload)
	f.Campaign.Target = "box"
	for id, trial := range f.Trials {
		trial.Target = "box"
		f.Trials[id] = trial
	}
	writeLines(t, file, recordLines(t, f))
	text, code := lineOf(t, "report", "--anonymize", "--format", "jsonl", file)
	if err := os.WriteFile(shared, text, 0o600); err != nil || code != ExitOK {
		t.Fatal(code, err)
	}
	want, _ := lineOf(t, "report", "--anonymize", "--format", "csv", file)
	got, _ := lineOf(t, "report", "--format", "csv", shared)
	plain, _ := lineOf(t, "report", "--format", "csv", file)
	if !bytes.Equal(want, got) || !bytes.Equal(plain, got) || len(got) < 1000 {
		t.Errorf("what is measured has changed:\n%s\n%s\n%s", plain, want, got)
	}
	if out, code := lineOf(t, "report", "--format", "jsonl", file); code != ExitUsage {
		t.Errorf("not anonymized: %d %.100s", code, out)
	}
}

// TestHistoryHarmsNoTerminal does the same with the record of a fan-out.
func TestHistoryHarmsNoTerminal(t *testing.T) {
	run := `{"type":"run","schema":"sshpace.run/1","id":"20260101T000000.000000000Z-abcdef","start":"2026-01-01T00:00:00Z","command":"x","hosts":1,"set":"web1","how":{}}
{"type":"result","host":"web1","status":"failed","ran":"yes","class":"lost","exit":3,"signal":"x","error":"x","incomplete":"x","elapsed_ns":1}
`
	state := t.TempDir()
	runs := filepath.Join(state, "sshpace", "runs")
	if err := os.MkdirAll(runs, 0o700); err != nil {
		t.Fatal(err)
	}
	escaped, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range regexp.MustCompile(`":"[^"]+`).FindAllStringIndex(run, -1) {
		name := filepath.Join(runs, fmt.Sprintf("2026%d%s.jsonl", i, hostile))
		text := run[:at[1]] + strings.Trim(string(escaped), `"`) + run[at[1]:]
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--history"}, {"--history", "2026"}, {"--history", hostile}, {"--list", "-w", "@last:all"}, {"--rerun", "failed", "--list"}} {
			var out bytes.Buffer
			sys := System{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(name string) string {
				return map[string]string{"XDG_STATE_HOME": state, "HOME": state}[name]
			}}
			Main(context.Background(), sys, append([]string{"sshpace", "run"}, args...))
			if found := harm(out.Bytes()); found != "" {
				t.Errorf("field %d, %q: %s", i, args, found)
			}
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArgumentsHarmNoTerminal gives commands arguments that they must refuse.
func TestArgumentsHarmNoTerminal(t *testing.T) {
	for _, args := range [][]string{
		{hostile}, {"--" + hostile}, {"report", hostile}, {"report", "--format", hostile}, {"bench", "--cipher", hostile}, {"bench", "--policy", hostile},
		{"run", "-w", hostile, "x"}, {"run", "--hosts-file", hostile, "x"}, {"run", "-w", "a", "-F", hostile, "x"}, {"run", "-w", "a", "-o", hostile, "x"},
		{"run", "-w", "a", "--engine", hostile, "x"}, {"run", "-w", "a", "--color", hostile, "x"}, {"run", "-w", "@" + hostile, "x"},
		{"config", hostile}, {"config", "-F", hostile, "a"}, {"known-hosts", "lookup", "--known-hosts", hostile, "a"}, {"known-hosts", "lint", "--known-hosts", hostile},
		{"compare", hostile, hostile}, {"import", hostile}, {"advise", hostile}, {"compat", hostile},
		{"compat", "mpssh.py", "-f", hostile, "x"}, {"compat", "mpssh.py", "--" + hostile}, {"compat", "mpssh", "-f", hostile, "x"}, {"compat", "mpssh", "--" + hostile},
		{"completion", hostile}, {"help", hostile},
	} {
		out, code := lineOf(t, args...)
		if found := harm(out); found != "" {
			t.Errorf("%q: %s", args, found)
		}
		if code == ExitOK && args[0] != "compat" && args[0] != "help" && args[0] != "completion" {
			t.Errorf("%q: no error: %q", args, out)
		}
	}
}
