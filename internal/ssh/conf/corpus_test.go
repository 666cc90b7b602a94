package conf_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/sshtest"
)

// A case of the corpus is a directory in one of the archives:
//
//	NAME/config   the file given with -F
//	NAME/hosts    command lines, one per line; "example" if there is none
//	NAME/refused  present if ssh refuses the configuration
//	NAME/*        files to include, below ~/.ssh
type corpusCase struct {
	name    string
	files   map[string]string
	hosts   []string
	refused bool
}

func corpus(t testing.TB) []corpusCase {
	t.Helper()
	archives, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var cases []corpusCase
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		topic := strings.TrimSuffix(filepath.Base(path), ".txtar")
		for _, file := range archive.Files {
			dir, name, ok := strings.Cut(file.Name, "/")
			if !ok {
				t.Fatalf("%s: %s is not in the directory of a case", path, file.Name)
			}
			dir = topic + "/" + dir
			if len(cases) == 0 || cases[len(cases)-1].name != dir {
				cases = append(cases, corpusCase{name: dir, files: map[string]string{}, hosts: []string{"example"}})
			}
			c := &cases[len(cases)-1]
			switch name {
			case "hosts":
				c.hosts = strings.Split(strings.TrimSpace(string(file.Data)), "\n")
			case "refused":
				c.refused = true
			default:
				c.files[name] = string(file.Data)
			}
		}
	}
	return cases
}

// TestCorpus compares every field with ssh -G.
func TestCorpus(t *testing.T) {
	cases := corpus(t)
	if len(cases) < 150 {
		t.Errorf("the corpus has %d cases, want at least 150", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			for name, text := range c.files {
				l.write(t, name, text)
			}
			for _, host := range c.hosts {
				compare(t, l, host, c.refused)
			}
		})
	}
}

func compare(t *testing.T, l *lab, line string, refused bool) {
	t.Helper()
	call := parseCall(t, line)
	config := filepath.Join(l.home, ".ssh", "config")
	out, stderr, sshErr := l.ssh(t.Context(), slices.Concat([]string{"-G", "-F", config}, call.args)...)
	got, err := resolve(t, l, config, call)
	if (sshErr != nil) != refused {
		t.Fatalf("%s: the case says refused=%v, ssh says %v: %s", line, refused, sshErr, stderr)
	}
	if refused {
		if err == nil && len(got.Gaps) == 0 {
			t.Errorf("%s: resolved, but ssh refuses it: %s", line, stderr)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v, but ssh takes it", line, err)
	}
	if len(got.Gaps) > 0 {
		t.Fatalf("%s: gaps %v", line, got.Gaps)
	}
	if diff := cmp.Diff(sshtest.TableOfDump(string(out)).Read(), sshtest.TableOf(got).Read()); diff != "" {
		t.Errorf("%s: -ssh +ours\n%s", line, diff)
	}
}

func resolve(t testing.TB, l *lab, config string, c call) (*conf.Resolved, error) {
	t.Helper()
	params := c.params
	params.Config, params.System, params.Defaults = config, l.system(t), defaults(t)
	loaded, err := conf.Load(t.Context(), params)
	if err != nil {
		return nil, err
	}
	if err := loaded.CheckText(t.Context(), l.ssh); err != nil {
		return nil, err
	}
	return loaded.Resolve(t.Context(), c.query)
}
