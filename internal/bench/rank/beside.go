package rank

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
)

// Beside is how much more than its figure a cipher or MAC costs on average over all slices. Figures
// are costs without neighbors, at the level that all have: other guests of the machine slow
// computations that fill the vector and integer units (sha2-512, UMAC) more than those with their
// own instructions (AES, SHA-1, SHA-256).
type Beside struct {
	What string  `json:"what"`
	More float64 `json:"more_pct"`
}

// The assumed differences of connections of one computation before they show them.
const (
	usualBeside = 0.05
	besideWorth = 4
)

// beside lists the computations that other guests slow clearly more than the rest, most first, and
// then the rest. None: there is none, or it is unknown.
func (d *data) beside() (out []Beside) {
	if !d.sittings.Slowed.Known {
		return nil
	}
	of, all := map[string][]float64{}, []float64(nil)
	for _, t := range d.sittings.Connections {
		if !t.Cost().Known() {
			continue
		}
		suite := t.Trial.Cell().Suite
		name := cmp.Or(alg.Primitive(suite.MAC), suite.Cipher)
		of[name], all = append(of[name], t.Beside()), append(all, t.Beside())
	}
	names, usual := slices.Sorted(maps.Keys(of)), stats.Median(all)
	var groups [][]float64
	for _, name := range names {
		groups = append(groups, of[name])
	}
	ratios := stats.Grouped(groups, usualBeside, besideWorth)
	for i := range ratios {
		ratios[i].Log -= usual
	}
	for i, judged := range stats.Judge(ratios) {
		if more := math.Expm1(ratios[i].Log + usual); judged.Verdict == stats.Better && min(more, math.Expm1(ratios[i].Log)) > stats.Margin {
			out = append(out, Beside{names[i], 100 * more})
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.SortFunc(out, func(a, b Beside) int { return cmp.Compare(b.More, a.More) })
	return append(out, Beside{"all else", math.Max(0, 100*math.Expm1(usual))})
}

// besideText writes in words how much more CPU time ciphers took because of the other guests of the
// host.
func besideText(all []Beside) string {
	var words []string
	for _, b := range all {
		words = append(words, strings.TrimSuffix(b.What, "@openssh.com")+" took "+unit.Difference(b.More/100)+" more")
	}
	return "figures are the CPU time without neighbors; next to the other guests of this run " + strings.Join(words, ", ")
}
