package document_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// many is a result of twenty methods in one round, most of which have reasons not to be measured.
func many() *record.File {
	f := &record.File{Campaign: record.Campaign{Command: "programs", BudgetNS: 30 * time.Second, Target: "loopback"}}
	for i := range 20 {
		m := record.Method{
			Client: fmt.Sprintf("client %d", i), Server: "openssh 9.2", Direction: record.Upload, SizeBytes: 64 << 20,
			Suite: alg.NewSuite("aes128-gcm@openssh.com", "", ""),
		}
		if i%4 == 3 {
			m.Why = fmt.Sprintf("a reason of its own, which is number %d of several", i)
		}
		f.Subjects = append(f.Subjects, record.Subject{ID: i + 1, Method: &m})
		f.Readings = append(f.Readings, record.Reading{Subject: i + 1, Kind: record.ShortRun, WallNS: time.Second}, record.Reading{Subject: i + 1, Kind: record.LongRun, WallNS: 2*time.Second + time.Duration(i)*time.Millisecond})
		f.Limits = append(f.Limits, record.Limit{Direction: record.Upload, Sentence: strings.Repeat("what limits it ", 8), Help: strings.Repeat("what helps ", 9)})
	}
	return f
}

// Remarks are shown as far as there is room for them: all beside a short table; beside a long one
// the first, cut if need be.
func TestRowsBeforeRemarks(t *testing.T) {
	for _, c := range []struct {
		rows, remarks, leastRows, leastRemarks int
		why                                    string
	}{{3, 5, 3, 5, "it is not there"}, {30, 5, 8, 1, strings.Repeat("a long story ", 40)}} {
		machine := &record.File{Environment: record.Environment{Cores: 2}}
		for i := range c.rows {
			machine.Measurements = append(machine.Measurements, record.Measurement{Name: fmt.Sprintf("probe %d", i), Unit: record.PerSecond, Value: 1e8, N: 1})
		}
		for i := range c.remarks {
			machine.Findings = append(machine.Findings, record.Finding{What: fmt.Sprintf("P%d is not measured", i), Why: fmt.Sprint(i, c.why)})
		}
		screen := brief(document.OfMachine(machine, false, document.Standard))
		if rows, remarks := strings.Count(screen, "probe "), strings.Count(screen, "is not measured"); rows < c.leastRows || remarks < c.leastRemarks {
			t.Errorf("%d rows and %d remarks:\n%s", rows, remarks, screen)
		}
	}
}

// Whatever there is to say fits a screen of 24 lines with what follows it, the answer first and
// then what to do; all of it is in --all.
func TestFirstScreenFits(t *testing.T) {
	machine := &record.File{Environment: record.Environment{Cores: 2}}
	for i := range 40 {
		machine.Measurements = append(machine.Measurements, record.Measurement{Name: fmt.Sprintf("probe %d", i), Unit: record.PerSecond, Value: 1e8, N: 1})
		machine.Findings = append(machine.Findings, record.Finding{What: fmt.Sprintf("P%d is not measured", i), Why: "it is not there"})
	}
	machine.Measurements[7].Name, machine.Measurements[7].Unit = record.PipeFlow+", blocks of 32K", record.BytesPerSecond
	resume := "sshpace programs --resume " + strings.Repeat("a-long-name/", 9) + "result.jsonl"
	results := compare.MethodResults(many())
	for name, c := range map[string]struct {
		of     func(all bool) *document.Document
		first  string
		within []string // in order
	}{
		"methods": {func(all bool) *document.Document {
			return document.OfMethods(results, many(), all, document.Commands{Resume: resume, Report: "sshpace report"})
		}, "Not enough data yet to say which pair is fastest: ", []string{"measure longer\n" + resume + " --budget 60s", "client", "more remarks", "measured"}},
		"limits": {func(all bool) *document.Document {
			return document.OfMachine(machine, all, document.Commands{Report: "sshpace report x"})
		}, "No SSH connection on this machine can be faster", []string{"probe 0", "more rows: sshpace report x --all", "not measured: P0", "2 cores"}},
	} {
		screen := strings.ReplaceAll(brief(c.of(false)), "\u00a0", " ")
		lines := 0
		for line := range strings.Lines(screen) {
			lines += 1 + (len([]rune(strings.TrimRight(line, "\n")))-1)/80
		}
		if lines > 22-3 || !strings.HasPrefix(screen, c.first) {
			t.Errorf("%s: %d lines, or another answer first:\n%s", name, lines, screen)
		}
		rest := screen
		for _, want := range c.within {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: no %q, in this order, in\n%s", name, want, screen)
			}
			rest = after
		}
		if all := brief(c.of(true)); len(all) < 2*len(screen) {
			t.Errorf("%s: all is no more than\n%s", name, all)
		}
	}
}

// On a narrow terminal lines end between words; what is to be copied, and the longest bar, stay
// whole.
func TestNarrowTerminal(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload, record.Download)
	d := document.OfRanking(r, f, document.Options{Columns: 40})
	for _, b := range d.Brief {
		for _, line := range b.Text(40) {
			if whole := strings.HasPrefix(strings.TrimSpace(line), "sshpace ") || strings.Contains(line, "#"); len(line) > 40 && !whole {
				t.Errorf("%d columns: %q", len(line), line)
			}
		}
	}
}
