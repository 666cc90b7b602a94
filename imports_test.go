package main

import (
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rules says which packages of ours each package may import: data packages
// only each other, deciding packages only data, packages that touch the world
// no deciders, and only cli everything. A new package needs a line here.
const rules = `
unit:
stats:
alg:
host:
clean:
hostset: host
sshconf:
knownhosts: host stats
bench: alg unit
model: alg bench stats unit
model/sim: alg bench unit
plan: alg bench model stats unit
rank: alg bench model stats unit
chart: alg bench clean model rank unit
chart/charttest: alg bench model/sim plan rank
page: alg chart
picture: chart
sheet: bench chart
report: alg bench chart clean rank stats unit
lab: alg bench
proc:
flow:
workdir:
loopback: proc workdir
openssh: alg bench
wire: alg
machine: bench proc unit
drive: alg bench flow loopback openssh proc unit workdir
fleet: host
dial: clean fleet host
forkssh: clean fleet host
output: clean fleet host hostset
history: fleet host hostset
compat: clean fleet host output
sshtest:
imports: alg bench unit
limits: alg bench imports unit
advise: alg bench rank
edit:
`

// allowed reads the rules.
func allowed(t *testing.T) map[string][]string {
	t.Helper()
	table := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(rules)) {
		name, imports, ok := strings.Cut(strings.TrimSpace(line), ":")
		if _, twice := table[name]; twice || !ok {
			t.Errorf("rule %q: want one line per package, such as `hostset: host`", line)
		}
		table[name] = strings.Fields(imports)
	}
	return table
}

func TestImports(t *testing.T) {
	const prefix = "sshpace/internal/"
	table := allowed(t)
	err := filepath.WalkDir("internal", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || d.Name() == "testdata" {
			return err
		}
		pkg, err := build.ImportDir(path, 0)
		if _, empty := err.(*build.NoGoError); empty {
			return nil
		}
		if err != nil {
			return err
		}
		name, _ := filepath.Rel("internal", path)
		if name == "cli" {
			return nil
		}
		list, known := table[name]
		if !known {
			t.Errorf("package %s has no line in the table of allowed imports", name)
		}
		for _, imported := range pkg.Imports {
			if ours, ok := strings.CutPrefix(imported, prefix); ok && !slices.Contains(list, ours) {
				t.Errorf("%s may not import %s", name, ours)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A dependency is adopted by one package and does not leak into others.
func TestOneAdopter(t *testing.T) {
	adopters := map[string][]string{
		"github.com/spf13/cobra":        {"cli"},
		"github.com/adrg/xdg":           {"cli"},
		"github.com/klauspost/cpuid/v2": {"machine"},
		"golang.org/x/perf/benchmath":   {"stats"},
		"github.com/xuri/excelize/v2":   {"sheet"},
		"gonum.org/v1/plot/vg":          {"picture"},
	}
	err := filepath.WalkDir("internal", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		pkg, err := build.ImportDir(path, 0)
		if err != nil {
			return nil
		}
		name, _ := filepath.Rel("internal", path)
		for module, packages := range adopters {
			if slices.Contains(pkg.Imports, module) && !slices.Contains(packages, name) {
				t.Errorf("%s may not import %s", name, module)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
