package document_test

import (
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// trustOf is how sure the first screen is.
func trustOf(t *testing.T, f *record.File) string {
	t.Helper()
	r, err := rank.Of(f, rank.Auto)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, b := range document.OfRanking(r, f, document.Options{}).Brief {
		lines = append(lines, b.Lines...)
	}
	_, rest, ok := strings.Cut(strings.Join(lines, "\n"), "\n  confidence ")
	if !ok {
		t.Fatalf("no confidence in %q", lines)
	}
	confidence, _, _ := strings.Cut(rest, "\n  measured ")
	return strings.Join(strings.Fields(confidence), " ")
}

// Who measured while the board was slowed must read so on the first screen; what was over before
// the run began is no doubt about it.
func TestThrottledRun(t *testing.T) {
	cool := record.Thermal{Zones: []record.ThermalZone{{Name: "cpu", Celsius: 48}, {Name: "wifi", Celsius: 40}}, ClockHz: []int64{1800e6, 1800e6}}
	hot := record.Thermal{Zones: []record.ThermalZone{{Name: "cpu", Celsius: 84.2}}, ClockHz: []int64{600e6, 1800e6}, Throttled: []string{"throttled"}}
	old := cool
	old.SinceBoot = []string{"under-voltage"}
	between := cool
	between.SinceBoot = []string{"frequency capped"}
	for name, tt := range map[string]struct {
		looks []record.Thermal
		want  string
	}{
		"unknown":           {nil, ""},
		"cool":              {[]record.Thermal{cool, cool}, ""},
		"before the run":    {[]record.Thermal{old, old}, ""},
		"hot":               {[]record.Thermal{cool, hot, cool}, "the processor was throttled in 1 of 3 looks: throttled, 48-84 °C, 600-1800 MHz; cool it"},
		"between two looks": {[]record.Thermal{cool, between}, "the processor was throttled in 1 of 2 looks: frequency capped, 48 °C, 1800 MHz; cool it"},
	} {
		_, f := benchtest.Ranking(t, 1, record.Upload)
		f.Thermals = tt.looks
		got := trustOf(t, f)
		if tt.want == "" && strings.Contains(got, "throttled") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: confidence %q, want %q", name, got, tt.want)
		}
	}
}

// What other programs did beside the slices is a reason for less confidence.
func TestForeignLoadIsSaid(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	r.Environment.Cores = 2
	r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
	for cores, want := range map[float64]bool{0: false, 0.05: false, 1: true} {
		r.Slowed.Foreign = cores
		said := strings.Join(strings.Fields(brief(document.OfRanking(r, f, document.Options{}))), " ")
		if strings.Contains(said, "medium: 1.0 of 2 cores were busy otherwise") != want {
			t.Errorf("%v cores: %s", cores, said)
		}
	}
}
