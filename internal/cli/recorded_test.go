package cli_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/cli"
)

var by = flag.String("by", "", "render the recorded results with this sshpace instead of the one under test")

// recordedReports are reports of the results in testdata/recorded, by the name of the golden file.
// They cover every table and every chart.
var recordedReports = map[string]string{
	"before":            "report before.jsonl",
	"before_cost":       "report before.jsonl --rank-by cost",
	"before_throughput": "report before.jsonl --rank-by throughput --machine machine.jsonl",
	"native":            "report native.jsonl --machine machine.jsonl",
	"copies":            "report copies.jsonl",
	"machine":           "report machine.jsonl",
	"imported":          "report five-1.jsonl",
	"two":               "compare before.jsonl after.jsonl",
	"two_throughput":    "compare before.jsonl after.jsonl --rank-by throughput",
	"three":             "compare before.jsonl after.jsonl native.jsonl",
	"normalized":        "compare before.jsonl after.jsonl native.jsonl --normalize aes*",
	"machines":          "compare five-1.jsonl five-3.jsonl five-5.jsonl --figure md5* --figure block*",
	"two_machines":      "compare five-1.jsonl five-3.jsonl --figure md5* --figure block*",
}

// formats of a report, with what follows --format. Those that are long, or not text, are kept as
// the hash of what matters in them.
var recordedFormats = []string{"text", "md", "csv", "json", "html", "xlsx", "svg"}

// Recorded results look the same in every format as they did: where this fails, either the change
// is a mistake, or -update records what it is to look like. With -by, another sshpace renders them,
// to see what a change changed.
func TestRecordedResultsLookTheSame(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // this machine's own limits are not theirs
	golden, err := filepath.Abs(filepath.Join("testdata", "recorded", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join("testdata", "recorded"))
	for name, command := range recordedReports {
		t.Run(name, func(t *testing.T) {
			formats := recordedFormats
			if strings.HasPrefix(command, "report before") {
				formats = append(slices.Clone(formats), "classic", "csv --only kex", "csv --only controls")
			}
			var all strings.Builder
			for _, format := range formats {
				out := renderRecorded(t, strings.Fields(command+" --format "+format))
				fmt.Fprintf(&all, "--- %s ---\n%s\n", format, gist(t, format, out))
			}
			file := filepath.Join(golden, name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(all.String(), "\n")); diff != "" {
				t.Errorf("%s is rendered otherwise (-was +is):\n%s", command, diff)
			}
		})
	}
}

// renderRecorded runs the command line. Without a picture to draw it may fail.
func renderRecorded(t *testing.T, args []string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if *by != "" {
		cmd := exec.Command(*by, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
	} else {
		sys := cli.System{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
		cli.Main(context.Background(), sys, append([]string{"sshpace"}, args...))
	}
	return append(out.Bytes(), errs.Bytes()...)
}

var (
	longNumber = regexp.MustCompile(`-?\d+\.\d{6,}(e[-+]\d+)?`)
	ownScript  = regexp.MustCompile(`(?s)<script>.*?</script>|<style>.*?</style>|<meta http-equiv[^>]*>`)
)

// gist is a report without what may differ between processors (last digits) and what is not part of
// the report (scripts of the page, dates of a workbook), hashed where nobody would read it.
func gist(t *testing.T, format string, out []byte) string {
	t.Helper()
	switch format {
	case "html":
		out = ownScript.ReplaceAll(out, nil)
	case "xlsx":
		out = sheets(t, out)
	}
	out = longNumber.ReplaceAllFunc(out, func(number []byte) []byte {
		v, _ := strconv.ParseFloat(string(number), 64)
		return strconv.AppendFloat(nil, v, 'g', 6, 64)
	})
	switch format {
	case "html", "xlsx", "svg":
		return fmt.Sprintf("%d bytes, SHA-256 %x", len(out), sha256.Sum256(out))
	}
	return strings.TrimRight(string(out), "\n")
}

// sheets is what a workbook shows: its parts but for the dates.
func sheets(t *testing.T, workbook []byte) []byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(workbook), int64(len(workbook)))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(archive.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	for _, part := range archive.File {
		if strings.HasPrefix(part.Name, "docProps/") || part.Name == "[Content_Types].xml" { // dates; in random order
			continue
		}
		content, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, part.Name)
		if _, err := io.Copy(&out, content); err != nil {
			t.Fatal(err)
		}
		content.Close()
	}
	return out.Bytes()
}

// Of a host whose newest result is of another kind the newest one is compared that is of the kind
// of the others.
func TestHostsAreComparedByOneKind(t *testing.T) {
	desk(t)
	dir := filepath.Join("state", "sshpace", "results")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bench := readFile(t, "run.jsonl")
	head, rest, _ := bytes.Cut(bench, []byte("\n"))
	methods := `{"method":{"id":1,"mode":"pipe","direction":"upload","size_bytes":1000}}
{"run":{"method":1,"kind":"long","start":"2026-01-02T03:04:07Z","wall_ns":318884419}}
`
	for _, result := range []struct{ name, target, rest string }{
		{"20260101T000000.000Z-alpha.jsonl", "alpha", string(rest)}, {"20260103T000000.000Z-alpha.jsonl", "alpha", methods}, {"20260102T000000.000Z-beta.jsonl", "beta", string(rest)},
	} {
		campaign := regexp.MustCompile(`"target":"[^"]*"`).ReplaceAllString(string(head), `"target":"`+result.target+`"`)
		if err := os.WriteFile(filepath.Join(dir, result.name), []byte(campaign+"\n"+result.rest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, stdout, _ := typed(t, "__complete bench --resume al"); !strings.Contains(stdout, "alpha\n") || !strings.Contains(stdout, "\n20260101T000000.000Z-alpha.jsonl\n") {
		t.Errorf("results to go on with: %s", stdout)
	}
	if exit, _, stderr := typed(t, "login --resume alpha"); exit != cli.ExitUsage || !strings.Contains(stderr, "hint: measure it first: sshpace login alpha\n") {
		t.Errorf("a host without logins: exit %d, %s", exit, stderr)
	}
	for _, line := range []string{"compare alpha beta", "compare beta alpha", "compare run.jsonl alpha"} {
		if exit, stdout, stderr := typed(t, line); exit != cli.ExitOK || strings.Contains(stdout, "20260103") {
			t.Errorf("%s: exit %d, %s%s", line, exit, stdout, stderr)
		}
	}
}
