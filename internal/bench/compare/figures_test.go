package compare_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

func measured(machine string, rows ...record.Measurement) compare.Input {
	f := &record.File{Measurements: rows}
	r, err := rank.Of(f, rank.Auto)
	if err != nil {
		panic(err)
	}
	return compare.Input{Label: machine, Ranking: r}
}

func TestFiguresSideBySide(t *testing.T) {
	a := measured("a", record.Measurement{Name: "md5", Unit: record.KBPerSecond, Value: 100}, record.Measurement{Name: "seek", Unit: record.Milliseconds, Value: 4},
		record.Measurement{Name: "only a", Unit: record.PerSecond, Value: 1})
	b := measured("b", record.Measurement{Name: "md5", Unit: record.KBPerSecond, Value: 150, Lo: 140, Hi: 160, N: 3}, record.Measurement{Name: "seek", Unit: record.Milliseconds, Value: 2})
	c, err := compare.Of([]compare.Input{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := c.Lines; len(f) != 2 || math.Abs(f[0].Ratios[0].Value()-1.5) > 1e-9 || math.Abs(f[1].Ratios[0].Value()-2) > 1e-9 || f[0].Values[1].Lo != 140 {
		t.Errorf("figures: %+v", f)
	}
	if c, err = compare.Of([]compare.Input{a, b}, compare.Options{Figures: []string{"see*"}}); err != nil || len(c.Lines) != 1 {
		t.Errorf("picked: %+v, %v", c, err)
	}
	if _, err := compare.Of([]compare.Input{a, b}, compare.Options{Figures: []string{"nothing"}}); err == nil {
		t.Error("nothing in common, and no error")
	}
}

// What a file does not say is no difference; figures without a counterpart are counted.
func TestUnknownIsNotDifferent(t *testing.T) {
	md5 := record.Measurement{Name: "md5", Unit: record.KBPerSecond, Value: 100}
	old := measured("old", md5, record.Measurement{Name: "idea", Unit: record.KBPerSecond, Value: 1})
	old.Ranking.Campaign.Imported = "openssl-speed"
	own := measured("own", md5)
	own.Ranking.Environment = record.Environment{CPU: "EPYC", Cores: 2, CPUFeatures: []string{"aesni"}}
	texts := func(a, b compare.Input) []string {
		c, err := compare.Of([]compare.Input{a, b}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, w := range c.Warnings {
			out = append(out, w.Text)
		}
		return out
	}
	if diff := cmp.Diff([]string{"figures besides SSH that are only in old: 1"}, texts(old, own)); diff != "" {
		t.Errorf("an imported file (-want +got):\n%s", diff)
	}
	plain := measured("plain", md5)
	plain.Ranking.Environment = record.Environment{CPU: "ARMv7", Cores: 4}
	want := []string{"CPU differs: EPYC in own, ARMv7 in plain", "CPU instructions differs: aesni in own, none in plain", "number of cores differs: 2 in own, 4 in plain"}
	if diff := cmp.Diff(want, texts(own, plain)); diff != "" {
		t.Errorf("two machines (-want +got):\n%s", diff)
	}
}
