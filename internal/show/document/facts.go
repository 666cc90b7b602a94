package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Fact is a name and its value.
type Fact struct{ Name, Value string }

// Environment lists the known facts about the machines and the run.
func Environment(f *record.File) []Fact { return environment(f.Environment, f.Campaign, rank.Heat{}) }

func environment(e record.Environment, c record.Campaign, heat rank.Heat) []Fact {
	cores := ""
	if e.Cores > 0 {
		cores = fmt.Sprint(e.Cores)
	}
	memory := ""
	if e.MemoryBytes > 0 {
		memory = e.MemoryBytes.String()
	}
	started := ""
	if !c.Started.IsZero() {
		started = c.Started.UTC().Format(time.RFC3339)
	}
	return Facts([]Fact{
		{"target", c.Target}, {"client", e.Client}, {"client program", e.ClientPath},
		{"server", e.Server}, {"server program", e.ServerPath}, {"server banner", e.ServerBanner}, {"server machine", e.ServerMachine},
		{"crypto library", e.Crypto}, {"CPU", e.CPU}, {"CPU instructions", strings.Join(e.CPUFeatures, " ")},
		{"cores", cores}, {"CPU quota, cores", positive(e.CPUQuota)}, {"governor", e.Governor}, {"hypervisor", e.Hypervisor},
		{"memory", memory}, {"system", strings.Join(text.NonEmpty(e.OS, e.Kernel, e.Arch), " ")},
		{"load average at the start", positive(e.LoadAverage)}, {"steal at the start, %", positive(e.StealPct)},
		{"temperature, °C", heat.Celsius}, {"clock of the cores, MHz", heat.MHz},
		{"CPU clock", e.CPUClock}, {"not visible here", strings.Join(e.Limits, "; ")},
		{"payload", c.Data}, {"client engine", string(c.Engine)}, {"kind of server", string(c.Server)}, {"policy", c.Policy},
		{"started", started}, {"seed", fmt.Sprint(c.Seed)}, {"version of sshpace", c.Tool},
	})
}

func positive(v float64) string {
	if v <= 0 {
		return ""
	}
	return unit.Digits(v)
}

// Facts drops unknown values and cleans the rest.
func Facts(all []Fact) []Fact {
	var out []Fact
	for _, f := range all {
		if f.Value != "" {
			out = append(out, Fact{f.Name, clean(f.Value)})
		}
	}
	return out
}

// quality says how reliable the answer and the numbers are.
func quality(s screen) []Fact {
	r := s.r
	n, m, h := r.Noise, r.Model, r.Harness
	var out []Fact
	if word, why := s.confidence(); word != "" {
		out = append(out, Fact{"confidence", word + ": " + why})
	}
	if r.Campaign.Server != record.ServerRemote { // on a host each ratio has its own interval, from as many turns as it needed
		out = append(out, Fact{"noise floor", noiseFloor(n)})
	}
	add := func(when bool, name, format string, args ...any) {
		if when {
			out = append(out, Fact{name, fmt.Sprintf(format, args...)})
		}
	}
	add(m.HoldoutCells > 0, "error of predictions", "%s", holdout(m))
	measured, predicted := Bases(r)
	add(len(r.Bulk) > 0, "cells", "%d measured, %d predicted", measured, predicted)
	add(h.CPUShare > 0, "harness", "%.1f %% of the CPU time of ssh and sshd", h.CPUShare)
	add(h.Drift != 0, "drift", "%+.1f %% over the run, corrected for", h.Drift)
	add(r.Ended != "", "ended by", "%s", r.Ended)
	return Facts(out)
}

func noiseFloor(n rank.NoiseFloor) string {
	return strings.Join(text.NonEmpty(share("throughput", n.Throughput), share("cost", n.Cost), share("login", n.Login)), ", ")
}

func holdout(m rank.Model) string {
	return fmt.Sprintf("%.1f %% (median), %.1f %% (95th percentile) on %d held-out cells", m.HoldoutError, m.HoldoutP95, m.HoldoutCells)
}

func share(name string, v float64) string {
	if v <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %s %%", name, unit.Percentage(v))
}

// Bases counts the cells of directions, all for none, by the basis of their figures.
func Bases(r *rank.Ranking, directions ...record.Direction) (measured, predicted int) {
	for _, c := range r.Bulk {
		switch {
		case len(directions) > 0 && !slices.Contains(directions, c.Direction):
		case c.Basis == rank.Measured:
			measured++
		default:
			predicted++
		}
	}
	return measured, predicted
}

// method explains in a paragraph how the numbers were made.
func method(r *rank.Ranking) []string {
	c := r.Combinations
	how := `after a warm-up, short segments of a steady transfer are timed: bytes at the sink, wall time, and the CPU time of both processes. ` +
		`Blocks in random order with a reference cell in each remove changes in the machine's speed.`
	if r.Slices > 0 {
		how = `all are open at the same time, and one at a time moves data for about a millisecond, in a new random order every time, so that other work on the machine slows all alike. ` +
			`CPU time is that of both processes between two sleeps; the cost of a slice beyond its bytes is found from slices of different lengths, and removed. ` +
			`Figures are the cost of bytes without neighbors, in the least quarter of each connection's slices, at the level that all slices usually have; where other guests slow some computations clearly more than others, a warning says how much more these cost on the mean of all slices.`
	}
	out := []string{fmt.Sprintf(`%d combinations of cipher, MAC and key exchange are %s per byte and %s: `+
		`a cipher with its own authentication tag ignores the MAC, alias names are one key exchange, and the key exchange does not change the bulk speed. `+
		`Each connection runs the real ssh and sshd with one cipher and one MAC; %s `+
		`A cell is measured, or predicted from the cost of its cipher and of its MAC; cells held out from the fit show how good such predictions are. `+
		`Pairs of names for the same computation, hidden in the run, give the noise floor.`, c.Total, unit.Count(c.Bulk, "different computation"), unit.Count(c.Kex, "key exchange"), how)}
	out = append(out, fmt.Sprintf(`Every number has a 95 %% interval, in brackets. Cells that do not differ significantly share a group letter. The order is by %s.`, bulkOrder(r)))
	if len(r.Copies) > 0 {
		out[0] = fmt.Sprintf(`%d combinations were each timed as a whole process: start, login and transfer together.`, len(r.Copies))
	}
	return out
}
