package main

import (
	"go/build"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rules says which packages of ours each package may import: data packages
// only each other, deciding packages only data, packages that touch the world
// no deciders, and only cli everything. A new package needs a line here.
const rules = `
base/unit:
base/stats:
base/alg: base/fault base/near
base/near:
base/pattern:
base/parallel:
base/vegas:
base/wait:
base/wildcard:
base/host:
base/termsafe:
base/fault:
base/shell:
record: base/alg base/termsafe base/unit
record/anonymize: base/alg base/pattern record
record/store: base/fault base/near base/shell record sys/bounded sys/edit sys/safedir
sys/proc:
sys/safedir:
sys/ownport:
sys/workdir: sys/safedir
sys/terminal: base/fault
sys/bounded:
sys/edit: base/shell sys/bounded sys/safedir
sys/quickack:
sys/relay: sys/quickack
ssh/sshconf: base/pattern base/wildcard sys/bounded
ssh/knownhosts: base/wildcard
ssh/knownhosts/knownhoststest: ssh/knownhosts ssh/sshtest
ssh/knownhosts/index: base/wildcard base/parallel ssh/knownhosts
ssh/knownhosts/check: base/wildcard base/shell ssh/knownhosts ssh/knownhosts/index
ssh/knownhosts/accept: ssh/knownhosts ssh/knownhosts/check ssh/knownhosts/index
ssh/knownhosts/lint: base/wildcard base/parallel ssh/knownhosts ssh/knownhosts/index
ssh/knownhosts/perhost: base/shell sys/safedir
ssh/knownhosts/split: base/wildcard base/host base/parallel ssh/knownhosts ssh/knownhosts/index ssh/knownhosts/perhost ssh/sshconf sys/safedir
ssh/knownhosts/pin: base/wildcard ssh/knownhosts ssh/knownhosts/check ssh/knownhosts/index ssh/knownhosts/perhost ssh/sshconf
ssh/sshlog:
ssh/openssh: base/alg base/fault base/shell record ssh/knownhosts/check ssh/sshlog sys/bounded sys/proc
ssh/wire: base/alg ssh/sshlog
ssh/oldserver: ssh/wire
ssh/packet:
ssh/channel: base/vegas ssh/packet
ssh/transport: ssh/channel ssh/packet
ssh/dial: base/host base/termsafe base/wait fleet ssh/channel ssh/sshlog ssh/transport sys/bounded sys/quickack
ssh/forkssh: base/host base/termsafe fleet ssh/knownhosts/check ssh/openssh ssh/sshlog sys/proc
ssh/route: base/fault base/host base/shell base/termsafe base/wait ssh/openssh ssh/sshconf ssh/wire sys/proc
ssh/mux: base/termsafe base/wait fleet ssh/channel
ssh/reach: base/host base/wait fleet ssh/dial ssh/forkssh ssh/knownhosts ssh/knownhosts/accept ssh/knownhosts/check ssh/knownhosts/index ssh/mux ssh/route ssh/sshconf sys/safedir
ssh/sshtest: ssh/packet ssh/sshconf
measure/model: base/alg base/stats base/unit record
measure/model/sim: base/alg base/unit measure/plan record
measure/plan: base/alg base/stats base/unit measure/model record
measure/lab: base/alg measure/plan record
measure/flow: base/shell sys/proc
measure/loopback: sys/ownport sys/proc sys/quickack sys/workdir
measure/hostinfo: base/unit record sys/proc
measure/drive: base/alg base/unit measure/flow measure/loopback record ssh/openssh sys/proc sys/workdir
measure/testbed: base/alg base/fault base/near base/shell measure/drive measure/hostinfo measure/lab measure/loopback record ssh/knownhosts/check ssh/openssh ssh/route ssh/sshlog ssh/wire sys/ownport sys/proc sys/workdir
measure/workload: base/alg base/pattern base/shell base/unit base/wait measure/flow measure/limits measure/loopback measure/testbed record ssh/openssh sys/bounded sys/ownport sys/proc sys/relay
measure/implementation: base/alg base/fault base/shell measure/flow measure/loopback measure/workload record ssh/openssh ssh/wire sys/bounded sys/ownport sys/proc sys/relay sys/workdir
measure/handshake: base/alg base/stats base/wait measure/drive measure/loopback measure/testbed record ssh/knownhosts ssh/openssh ssh/sshlog sys/ownport sys/proc sys/relay
measure/hostkeys: base/stats ssh/knownhosts ssh/knownhosts/index sys/proc
measure/ping: base/alg base/fault base/shell base/stats base/wait record ssh/openssh sys/proc
measure/symptoms: base/alg base/fault base/host base/pattern base/shell base/wait measure/handshake measure/hostkeys measure/limits measure/loopback measure/ping measure/testbed record ssh/knownhosts ssh/openssh ssh/route ssh/sshconf ssh/sshlog sys/proc sys/workdir
measure/limits: base/alg base/unit record show/legacylog
campaign: base/alg base/fault base/near base/shell base/termsafe base/unit measure/drive measure/handshake measure/hostinfo measure/lab measure/limits measure/plan measure/testbed measure/workload record record/store show/document show/format show/live show/report ssh/openssh sys/terminal verdict/rank verdict/methods
verdict/methods: base/alg base/stats record
verdict/rank: base/alg base/stats base/unit measure/model record
verdict/compare: base/alg base/fault base/stats record verdict/rank
verdict/result: base/fault base/shell record record/store verdict/compare verdict/rank
verdict/verdicttest: base/alg measure/model/sim measure/plan record verdict/rank
verdict/choice: base/alg base/fault base/stats record sys/bounded verdict/rank
verdict/advise: base/alg record verdict/choice verdict/rank
verdict/apply: base/alg base/fault base/shell base/termsafe measure/loopback record ssh/openssh ssh/route sys/bounded sys/edit sys/safedir sys/workdir verdict/advise verdict/choice verdict/rank
verdict/prove: base/alg base/fault base/stats base/termsafe base/unit measure/drive measure/lab measure/model measure/plan measure/testbed measure/workload record sys/workdir verdict/advise
verdict/doctor: base/alg base/shell measure/handshake measure/symptoms ssh/sshconf
fleet/fleettest: base/host fleet ssh/sshtest
fleet/hostset: base/host base/wildcard
fleet/transfer: base/host base/pattern base/shell base/termsafe base/unit fleet fleet/output fleet/remotesh ssh/sftp sys/safedir
ssh/sftp: base/vegas
fleet/inventory: base/fault base/host base/pattern base/shell fleet/hostset sys/bounded
fleet: base/host base/vegas
fleet/remotesh: base/shell
fleet/sudo: base/fault base/host base/pattern base/shell base/termsafe fleet fleet/remotesh
fleet/output: base/fault base/host base/termsafe base/unit fleet fleet/hostset sys/safedir sys/terminal
fleet/hostlist: base/fault base/host base/pattern base/termsafe fleet/history fleet/hostset fleet/inventory ssh/knownhosts/index ssh/route sys/bounded sys/safedir
fleet/history: base/fault base/shell base/termsafe fleet fleet/hostset fleet/output sys/bounded sys/safedir
fleet/compat: base/host base/pattern base/shell base/termsafe fleet fleet/output fleet/remotesh fleet/transfer sys/bounded sys/safedir sys/terminal
show/latency: base/termsafe base/unit measure/ping
show/diagnosis: base/termsafe base/unit measure/handshake measure/symptoms verdict/doctor
show/login: base/alg base/stats base/termsafe base/unit measure/handshake record show/document
show/document: base/alg base/stats base/termsafe base/unit record verdict/choice verdict/compare verdict/rank verdict/methods
show/document/documenttest: base/alg measure/model/sim measure/plan record verdict/rank
show/manual:
show/listing: base/fault base/host base/termsafe fleet/hostlist fleet/hostset
show/live: base/termsafe measure/plan record show/document sys/terminal verdict/choice verdict/rank
show/explanation: base/host base/termsafe ssh/route ssh/sshconf
show/hostkeys: base/fault base/stats base/termsafe base/unit measure/hostkeys ssh/knownhosts ssh/knownhosts/index ssh/knownhosts/lint ssh/knownhosts/split sys/terminal
show/format: base/fault base/near base/shell base/termsafe record record/store show/document show/login show/page show/picture show/report show/sheet sys/edit sys/terminal verdict/choice verdict/compare verdict/rank verdict/methods
show/advice: base/alg base/stats base/termsafe record show/document verdict/advise verdict/rank
show/page: base/alg show/document
show/picture: base/pattern show/document
show/sheet: record show/document show/workbook
show/workbook:
show/report: base/alg base/stats base/termsafe base/unit record show/document verdict/choice verdict/compare verdict/rank verdict/methods
show/legacylog: base/alg base/fault base/pattern base/shell base/termsafe base/unit record ssh/openssh ssh/sshlog sys/bounded
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

// TestMap: the map in doc/design.md has every package of the table but those for
// tests, and nothing else.
func TestMap(t *testing.T) {
	text, err := os.ReadFile("doc/design.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/]+)`")
	known := map[string]bool{}
	for name := range allowed(t) {
		known[path.Base(name)] = true
	}
	inMap := map[string]bool{"cli": true}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.Contains(line, "---") {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(cells[2], -1) {
			if inMap[m[1]] = true; !known[m[1]] {
				t.Errorf("the map has %s, which is no package", m[1])
			}
		}
		for _, m := range named.FindAllStringSubmatch(cells[1]+cells[3], -1) { // those below another one stand in its description
			inMap[m[1]] = true
		}
	}
	for name := range allowed(t) {
		if base := path.Base(name); !inMap[base] && !strings.HasSuffix(base, "test") && base != "sim" {
			t.Errorf("the map lacks %s", name)
		}
	}
}

// A dependency is adopted by one package and does not leak into others.
func TestOneAdopter(t *testing.T) {
	adopters := map[string][]string{
		"github.com/spf13/cobra":        {"cli"},
		"github.com/klauspost/cpuid/v2": {"measure/hostinfo"},
		"github.com/xuri/excelize/v2":   {}, // tests read workbooks with it; its start takes milliseconds
		"gonum.org/v1/plot/vg":          {"show/picture"},
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
