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
base/alg: base/fault
base/fault:
base/host: base/shell base/wildcard
base/sched:
base/seedtest:
base/shell:
base/stats:
base/termsafe:
base/text:
base/unit:
base/waittest:
base/wildcard:
record: base/alg base/termsafe base/unit sys/journal
record/anonymize: base/alg base/wildcard record
record/store: base/fault base/shell record sys/file sys/safedir sys/journal
sys/file: base/fault base/sched sys/safedir
sys/journal: base/fault base/sched sys/file sys/safedir
sys/proc:
sys/relay: sys/tcp
sys/safedir:
sys/tcp:
sys/terminal: base/fault base/sched base/text
ssh/admit: base/sched
ssh/channel: base/sched
ssh/conf: base/host base/sched base/wildcard ssh/knownhosts sys/file
ssh/dial: base/alg base/fault base/host base/sched base/termsafe fleet ssh/channel ssh/knownhosts ssh/line ssh/openssh ssh/session ssh/transport sys/file sys/tcp
ssh/forkssh: base/host base/sched base/termsafe base/text fleet ssh/conf ssh/line ssh/openssh ssh/route ssh/session sys/proc
ssh/knownhosts: base/wildcard ssh/pubkey
ssh/knownhosts/check: base/alg base/shell base/wildcard ssh/knownhosts ssh/knownhosts/index
ssh/knownhosts/index: base/sched base/wildcard ssh/knownhosts
ssh/knownhosts/tidy: base/fault base/host base/sched base/shell base/wildcard ssh/conf ssh/knownhosts ssh/knownhosts/check ssh/knownhosts/index sys/safedir
ssh/line:
ssh/mux: base/termsafe base/wildcard fleet ssh/channel ssh/line ssh/openssh ssh/session sys/proc sys/safedir sys/tcp
ssh/openssh: base/alg base/fault base/sched base/shell base/wildcard record ssh/conf ssh/knownhosts ssh/knownhosts/check sys/file sys/proc sys/safedir
ssh/reach: base/alg base/fault base/host base/sched base/termsafe fleet ssh/conf ssh/dial ssh/forkssh ssh/knownhosts ssh/knownhosts/check ssh/knownhosts/index ssh/line ssh/mux ssh/openssh ssh/pubkey ssh/route ssh/session ssh/sshfp sys/proc sys/safedir
ssh/route: base/fault base/host base/sched base/shell base/termsafe ssh/conf ssh/knownhosts ssh/openssh ssh/pubkey ssh/transport sys/file sys/proc sys/safedir
ssh/session: base/sched base/termsafe fleet ssh/channel ssh/line ssh/openssh
ssh/sftp: base/sched ssh/channel
ssh/session/sessiontest: base/host fleet ssh/session
ssh/sshtest: base/host base/waittest fleet programs/oldserver ssh/channel ssh/conf ssh/knownhosts
ssh/pubkey:
ssh/sshfp: sys/file
ssh/transport: base/alg ssh/channel ssh/pubkey
ssh/wire: base/alg ssh/openssh ssh/transport sys/tcp
bench/advise: base/alg base/fault base/stats base/text base/unit bench/rank record sys/file
bench/apply: base/alg base/fault base/shell base/termsafe base/unit bench/advise bench/loopback bench/rank record ssh/conf ssh/openssh ssh/route sys/file sys/safedir
bench/bed: bench/loopback ssh/openssh
bench/benchtest: base/alg base/unit bench/helper bench/lab bench/plan bench/rank record sys/proc sys/safedir
bench/compare: base/alg base/fault base/shell base/stats base/unit bench/rank record record/store
bench/doctor: base/alg base/fault base/host base/sched base/shell base/stats base/unit base/wildcard bench/bed bench/hostkeys bench/limits bench/login bench/loopback bench/testbed bench/transfer record ssh/admit ssh/conf ssh/knownhosts ssh/openssh ssh/route sys/proc sys/safedir
bench/drive: base/alg base/sched base/text base/unit bench/bed bench/flow bench/lab bench/loopback bench/plan record ssh/admit ssh/openssh sys/proc sys/safedir
bench/flow: base/shell sys/proc
bench/helper: base/termsafe bench/flow ssh/wire sys/proc sys/safedir
bench/hostinfo: base/unit record sys/proc
bench/hostkeys: base/sched base/stats ssh/conf ssh/knownhosts ssh/knownhosts/index sys/proc sys/tcp
bench/lab: base/alg bench/plan record
bench/latency: base/alg base/fault base/sched base/stats base/text bench/bed record ssh/admit ssh/openssh sys/proc
bench/limits: base/alg base/sched base/text base/unit bench/speed record
bench/login: base/alg base/sched base/stats bench/bed bench/loopback bench/rounds bench/testbed record ssh/admit ssh/knownhosts ssh/openssh sys/proc sys/relay sys/safedir
bench/loopback: ssh/openssh ssh/wire sys/proc sys/safedir sys/tcp
bench/model: base/alg base/stats record
bench/plan: base/alg base/sched base/stats bench/model record ssh/admit
bench/prove: base/alg base/fault base/sched base/stats base/termsafe base/text base/unit bench/advise bench/drive bench/lab bench/model bench/plan bench/testbed bench/transfer record ssh/openssh sys/safedir
bench/rank: base/alg base/fault base/stats base/unit bench/model record
bench/rounds: base/sched record
bench/speed: base/wildcard record
bench/testbed: base/alg base/fault base/shell bench/bed bench/drive bench/hostinfo bench/lab bench/loopback record ssh/openssh ssh/route ssh/wire sys/proc sys/safedir
bench/transfer: base/alg base/fault base/sched base/shell base/unit base/wildcard bench/bed bench/flow bench/limits bench/loopback bench/rounds bench/testbed record ssh/admit ssh/openssh sys/file sys/proc sys/relay sys/safedir sys/tcp
fanout: base/fault base/host base/sched fleet ssh/admit sys/proc
fanout/copy: base/fault base/host base/sched base/shell base/termsafe base/unit base/wildcard fanout/expand fleet fleet/output fleet/remotesh ssh/sftp sys/safedir
fanout/expand: base/fault base/host base/shell base/wildcard fleet fleet/hostset fleet/output fleet/remotesh sys/file
fanout/hostlist: base/fault base/host base/sched base/shell base/termsafe base/text base/wildcard fanout/expand fleet/history fleet/hostset ssh/conf ssh/knownhosts/index ssh/openssh ssh/route sys/file sys/proc sys/safedir
fanout/hub: base/fault base/host base/sched base/termsafe fanout/job ssh/mux sys/file sys/safedir sys/tcp
fanout/job: base/fault base/host base/sched base/termsafe base/unit base/wildcard fanout fleet fleet/history fleet/hostset fleet/output ssh/conf ssh/openssh sys/file sys/journal sys/safedir
fanout/keep: base/fault base/host base/termsafe base/text base/unit fanout fleet fleet/hostset fleet/output ssh/conf ssh/mux ssh/reach ssh/session sys/journal sys/tcp
fanout/page: base/fault base/host base/sched base/termsafe base/unit fanout/job fleet fleet/history fleet/hostset fleet/output
fanout/preview: base/host base/termsafe base/text base/unit fleet/hostset fleet/output ssh/reach
fanout/reboot: base/host base/sched fleet
fanout/scan: base/fault base/host base/termsafe base/unit base/wildcard fanout fleet fleet/hostset fleet/output ssh/knownhosts ssh/knownhosts/check ssh/openssh ssh/reach sys/file
fanout/survey: base/alg base/host base/sched fanout fleet record ssh/dial ssh/reach ssh/transport sys/proc
fanout/shell: base/host base/shell base/termsafe base/text fleet fleet/remotesh
fanout/sudo: base/fault base/host base/shell base/termsafe base/text base/wildcard fleet fleet/remotesh sys/proc sys/terminal
fleet: base/fault base/host base/termsafe sys/file
fleet/history: base/fault base/host base/sched base/shell base/termsafe base/text base/unit fleet fleet/hostset fleet/output sys/file sys/safedir sys/journal
fleet/hostset: base/host base/wildcard
fleet/output: base/fault base/host base/termsafe base/text base/unit base/wildcard fleet fleet/hostset sys/file sys/safedir sys/terminal sys/journal
fleet/remotesh: base/shell
fleet/watch: base/fault base/termsafe base/text base/unit fleet fleet/output sys/file sys/terminal
show/booktest:
show/document: base/alg base/shell base/stats base/termsafe base/text base/unit bench/advise bench/compare bench/plan bench/rank record
show/findings: base/alg base/fault base/host base/stats base/termsafe base/text base/unit bench/advise bench/bed bench/compare bench/doctor bench/hostkeys bench/latency bench/login bench/plan bench/rank record show/document ssh/conf ssh/knownhosts ssh/knownhosts/index ssh/knownhosts/tidy ssh/openssh ssh/route sys/terminal
show/format: base/fault base/shell base/termsafe base/text base/unit bench/advise bench/compare bench/rank record record/anonymize record/store show/document show/findings show/page show/picture show/report show/workbook sys/file sys/terminal
show/live: base/termsafe base/text bench/advise bench/plan bench/rank record show/document sys/terminal
show/page: base/alg show/document
show/picture: base/unit base/wildcard show/document
show/report: base/alg base/stats base/termsafe base/text base/unit bench/compare bench/rank record show/document
show/workbook: base/stats record show/document
campaign: base/alg base/fault base/sched base/shell base/termsafe base/text base/unit bench/compare bench/drive bench/hostinfo bench/lab bench/limits bench/login bench/plan bench/rank bench/testbed bench/transfer record record/store show/document show/format show/live ssh/admit ssh/openssh sys/terminal sys/journal
dropin: base/fault base/host base/sched base/shell base/termsafe base/wildcard fanout fanout/copy fanout/expand fanout/hostlist fleet fleet/hostset fleet/output fleet/remotesh ssh/conf ssh/forkssh ssh/openssh sys/file sys/proc sys/safedir sys/terminal
classic: base/alg base/stats base/termsafe base/text base/unit bench/rank record show/document
legacy: base/alg base/fault base/shell base/termsafe base/unit base/wildcard bench/speed record record/store ssh/openssh sys/file
programs: base/alg base/fault base/text base/wildcard bench/flow bench/helper bench/loopback bench/transfer programs/oldserver record ssh/openssh ssh/wire sys/proc sys/relay sys/safedir
programs/oldserver: base/unit
`

// allowed reads such lines: a name, and those that it may import.
func allowed(t *testing.T, text string) map[string][]string {
	t.Helper()
	table := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
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
	table := allowed(t, rules)
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

// districts says which other districts each one sees, from the lowest floor to the attic: each
// sees only districts above it in this list, and only cli sees campaign and the attic.
const districts = `
base:
sys: base
record: base sys
fleet: base sys
ssh: base sys record fleet
bench: base sys record ssh
fanout: base sys record fleet ssh
show: base sys record ssh bench
campaign: base sys record ssh bench show
dropin: base sys fleet ssh fanout
legacy: base sys record ssh bench
classic: base sys record ssh bench show
programs: base sys record ssh bench
`

// TestTwoPrograms: sshpace is two programs on one floor. What measures and judges
// and what runs on fleets share base, sys, record and ssh, and never see each
// other; nor does what shows results see fleets. Kits are part of the tests.
func TestTwoPrograms(t *testing.T) {
	sees := allowed(t, districts)
	for name, imports := range allowed(t, rules) {
		district, _, _ := strings.Cut(name, "/")
		if strings.HasSuffix(name, "test") {
			continue
		}
		for _, imported := range imports {
			if other, _, _ := strings.Cut(imported, "/"); other != district && !slices.Contains(sees[district], other) {
				t.Errorf("%s may not import %s: %s never sees %s", name, imported, district, other)
			}
		}
	}
}

// TestArrowsGoDown: no district sees one on the same floor or above.
func TestArrowsGoDown(t *testing.T) {
	var below []string
	for line := range strings.Lines(strings.TrimSpace(districts)) {
		district, sees, _ := strings.Cut(strings.TrimSpace(line), ":")
		for _, other := range strings.Fields(sees) {
			if !slices.Contains(below, other) {
				t.Errorf("%s may not see %s, which is not below it", district, other)
			}
		}
		below = append(below, district)
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
	for name := range allowed(t, rules) {
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
				t.Errorf("the map has %s, which is not a package", m[1])
			}
		}
		for _, m := range named.FindAllStringSubmatch(cells[1]+cells[3], -1) { // those below another one stand in its description
			inMap[m[1]] = true
		}
	}
	for name := range allowed(t, rules) {
		if base := path.Base(name); !inMap[base] && !strings.HasSuffix(base, "test") {
			t.Errorf("the map lacks %s", name)
		}
	}
}

// A dependency is adopted by one package and does not leak into others.
func TestOneAdopter(t *testing.T) {
	adopters := map[string][]string{
		"github.com/spf13/cobra":                   {"cli"},
		"github.com/klauspost/cpuid/v2":            {"bench/hostinfo"},
		"filippo.io/mldsa":                         {"ssh/pubkey"},
		"gonum.org/v1/plot/vg":                     {"show/picture"},
		"charm.land/bubbletea/v2":                  {"fleet/watch"},
		"github.com/nats-io/nats.go":               {"fanout/hub"},
		"github.com/nats-io/nats-server/v2/server": {"fanout/hub"},
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
