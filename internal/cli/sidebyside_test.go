package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// sideBySide calls another program and our mode of it with the same arguments, each in its own
// directory that holds the same files.
type sideBySide struct {
	original string // path of the program
	name     string // of our mode
	env      []string
	files    func(t *testing.T, dir string)
	sshd     *sshtest.Sshd
	normal   func(text string) string // of stdout and of stderr
	// restarts is how often the original is started again when it hangs, as pdsh does on a busy
	// machine, or when it trips over itself.
	restarts int
	trips    string // in its stderr
}

// call is one invocation.
type call struct {
	args  string // cut at blanks; a word may be quoted with '
	stdin string
	env   []string
	// differs says what of it is knowingly different: stdout, stderr.
	differs string
}

// limitWord in the arguments is a number of seconds in which a command begins.
const limitWord = "$LIMIT"

// answer is what came of a call.
type answer struct {
	Stdout, Stderr string
	Code           int
	Files          map[string]string // below the directory, with their modes where they are remote
}

// words cuts arguments.
func words(text string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(text, -1) {
		list = append(list, m[1]+m[2])
	}
	return list
}

// run runs one of the two.
func (s *sideBySide) run(t *testing.T, program string, c call) answer {
	t.Helper()
	dir, err := os.MkdirTemp("", "side-") // t.TempDir has the call in its name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	fleetFiles(t, dir, s.sshd)
	if s.files != nil {
		s.files(t, dir)
	}
	limit := 5 * time.Minute
	if program == s.original {
		limit = 45 * time.Second // it may hang, and is started again
	}
	ctx, end := context.WithTimeout(t.Context(), limit)
	defer end()
	cmd := exec.CommandContext(ctx, program, words(strings.ReplaceAll(c.args, "$DIR", dir))...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "LC_ALL=C.UTF-8", "SSH_AUTH_SOCK="), append(s.env, c.env...)...)
	for i, v := range cmd.Env {
		cmd.Env[i] = strings.ReplaceAll(v, "$DIR", dir)
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.stdin), &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("%v: install pssh and pdsh", err)
	}
	clean := func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), dir, "$DIR"), program, filepath.Base(program))
	}
	if ctx.Err() != nil && program != s.original {
		t.Errorf("%s %s does not end", s.name, c.args)
	}
	return answer{s.normal(clean(out.String())), sortedLines(s.normal(clean(errs.String()))), cmd.ProcessState.ExitCode(), tree(t, dir, clean)}
}

// tree is every file below a directory with its content.
func tree(t *testing.T, dir string, clean func(string) string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		if rel == ".ssh" || rel == "state" || rel == ".cache" || rel == ".pdsh" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			files[rel] = "directory"
		case strings.HasPrefix(rel, "dest"): // what was copied has modes, too
			text, err := os.ReadFile(at)
			files[rel] = fmt.Sprintf("%s %s", info.Mode(), text)
			return err
		default:
			text, err := os.ReadFile(at)
			files[rel] = clean(string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sortedLines(text string) string {
	list := strings.SplitAfter(text, "\n")
	slices.Sort(list)
	return strings.Join(list, "")
}

// failed says whether the original did not get to its answer.
func (s *sideBySide) failed(a answer) bool {
	return a.Code == -1 || s.trips != "" && strings.Contains(a.Stderr, s.trips)
}

// compare runs all calls with both.
func (s *sideBySide) compare(t *testing.T, calls []call) {
	t.Helper()
	if _, err := exec.LookPath(s.original); errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("%v: install pssh and pdsh", err)
	}
	ours, err := exec.LookPath(s.name) // put on PATH by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(c.args, limitWord) {
				if err := s.differ(t, ours, c); err != nil {
					t.Error(err)
				}
				return
			}
			waittest.InTime(t, 2*time.Second, func(limit time.Duration) error {
				c := c
				c.args = strings.ReplaceAll(c.args, limitWord, fmt.Sprint(int(limit.Seconds())))
				return s.differ(t, ours, c)
			})
		})
	}
}

// differ runs a call with both.
func (s *sideBySide) differ(t *testing.T, ours string, c call) error {
	t.Helper()
	want, got := s.run(t, s.original, c), s.run(t, ours, c)
	for n := 0; n < s.restarts && s.failed(want); n++ {
		want = s.run(t, s.original, c)
	}
	if strings.Contains(c.differs, "stdout") {
		want.Stdout, got.Stdout = "", ""
	}
	if strings.Contains(c.differs, "stderr") {
		want.Stderr, got.Stderr = "", ""
	}
	if strings.Contains(c.differs, "files") {
		want.Files, got.Files = nil, nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s %s: original (-), ours (+)\n%s", s.name, c.args, diff)
	}
	return nil
}
