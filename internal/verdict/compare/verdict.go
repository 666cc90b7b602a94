package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/verdict/rank"
)

// Verdict is what can be said of a ratio.
type Verdict string

// tables are what Worst looks through: overall, ciphers, MACs, key exchanges and
// cells. Each is corrected for its own lines only, so a gate over all of them
// divides its level by their number (Bonferroni).
const tables = 5

// Worst returns the names of what is significantly slower than in the first
// file by at least percent, or than the rest of its run is, slowest first: what a regression gate asks for. Equal
// runs fail such a gate in at most 5 % of comparisons.
func (c *Comparison) Worst(percent float64) []string {
	type found struct {
		text  string
		speed float64
	}
	var all []found
	limit := 1 / (1 + percent/100)
	look := func(name string, ratios []Ratio) {
		for k, r := range ratios {
			speed, than := r.Speed.Value(), ""
			if r.ByRest {
				speed, than = r.Rest.Value(), " than the rest"
			}
			if r.Verdict == Slower && r.P*tables < 1-stats.Confidence && speed <= limit {
				text := fmt.Sprintf("%s in %s: %.1f %% slower%s", name, c.Inputs[k+1].Label, 100*(1/speed-1), than)
				all = append(all, found{text, speed})
			}
		}
	}
	look("everything", c.Overall)
	for _, groups := range [][]Group{c.Ciphers, c.MACs, c.Kex} {
		for _, g := range groups {
			look(g.Name, g.Ratios)
		}
	}
	for _, cell := range c.Cells {
		look(cell.Suite.String(), cell.Ratios)
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.speed, b.speed) })
	var out []string
	for _, f := range all {
		out = append(out, f.text)
	}
	return out
}

// muchBusier is the difference of shares of disturbed segments that is worth a
// word.
const muchBusier = 0.25

// differences lists what besides speed differs between the files. What is
// unknown in one of them is no difference.
func differences(inputs []Input) []rank.Warning {
	var out []rank.Warning
	first := inputs[0].Ranking
	for _, in := range inputs[1:] {
		r := in.Ranking
		add := func(name, what, a, b string) {
			if a != b && a != "" && b != "" {
				out = append(out, rank.Warning{Name: name, Text: fmt.Sprintf("%s differs: %s in %s, %s in %s", what, a, inputs[0].Label, b, in.Label)})
			}
		}
		add("client", "client", first.Environment.Client, r.Environment.Client)
		add("server", "server", first.Environment.Server, r.Environment.Server)
		add("crypto", "crypto library", first.Environment.Crypto, r.Environment.Crypto)
		add("cpu", "CPU", first.Environment.CPU, r.Environment.CPU)
		add("features", "CPU instructions", features(first), features(r))
		add("cores", "number of cores", coreCount(first), coreCount(r))
		add("engine", "client engine", string(first.Campaign.Engine), string(r.Campaign.Engine))
		add("server-kind", "kind of server", string(first.Campaign.Server), string(r.Campaign.Server))
		add("data", "payload", first.Campaign.Data, r.Campaign.Data)
		add("tool", "version of sshpace", first.Campaign.Tool, r.Campaign.Tool)
		if a, b := first.Harness.Busy(), r.Harness.Busy(); math.Abs(a-b) > muchBusier {
			out = append(out, rank.Warning{Name: "load", Text: fmt.Sprintf("%.0f %% of the segments were disturbed in %s, %.0f %% in %s: small differences of all cells together may come from that",
				100*a, inputs[0].Label, 100*b, in.Label), Hint: "--normalise takes out what all cells have in common"})
		}
		add("clock", "CPU clock", first.Environment.CPUClock, r.Environment.CPUClock)
		for _, w := range r.Warnings {
			out = append(out, rank.Warning{Name: w.Name, Text: in.Label + ": " + w.Text, Hint: w.Hint})
		}
	}
	for _, w := range first.Warnings {
		out = append(out, rank.Warning{Name: w.Name, Text: inputs[0].Label + ": " + w.Text, Hint: w.Hint})
	}
	return append(out, unpaired(inputs)...)
}

// features are the CPU instructions that matter to SSH, "none" where the machine
// has none of them, "" where a log does not tell.
func features(r *rank.Ranking) string {
	if len(r.Environment.CPUFeatures) == 0 && r.Campaign.Imported == "" {
		return "none"
	}
	return strings.Join(r.Environment.CPUFeatures, " ")
}

// coreCount is the number of cores; "" where a log does not tell.
func coreCount(r *rank.Ranking) string {
	if r.Environment.Cores == 0 {
		return ""
	}
	return fmt.Sprint(r.Environment.Cores)
}
