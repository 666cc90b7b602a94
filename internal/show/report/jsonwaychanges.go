package report

import (
	"io"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/record"
	"sshpace/internal/verdict/ways"
)

// wayChangesSchema names the layout that WayChangesJSON writes.
const wayChangesSchema = "sshpace.ways-compare/1"

// WayChangesJSON writes what became of ways to move bytes for programs: ratios to the
// first file. A ratio that is not known is null.
func WayChangesJSON(w io.Writer, c *ways.Comparison) error {
	d := struct {
		Schema string          `json:"schema"`
		Files  []string        `json:"files"` // the first is what the others are related to
		Ways   []jsonWayChange `json:"ways"`  // that all files have figures of
	}{wayChangesSchema, c.Files, []jsonWayChange{}}
	for _, ch := range c.Changes {
		change := jsonWayChange{Way: ch.Way}
		for k := range ch.Speed {
			change.Speed = append(change.Speed, ratioOf(ch.Speed[k]))
			change.Cost = append(change.Cost, ratioOf(ch.Cost[k]))
		}
		d.Ways = append(d.Ways, change)
	}
	return termsafe.WriteJSON(w, d, " ")
}

// jsonWayChange has a ratio for each file but the first.
type jsonWayChange struct {
	record.Way
	Speed []*jsonWayRatio `json:"speed_ratio"` // above 1: faster
	Cost  []*jsonWayRatio `json:"cpu_ratio"`   // above 1: more CPU time per byte
}

type jsonWayRatio struct {
	jsonQuantity
	Shown bool `json:"shown"` // it differs from 1 by more than chance
}

func ratioOf(r ways.Ratio) *jsonWayRatio {
	if !r.Known() {
		return nil
	}
	i := r.Interval()
	return &jsonWayRatio{*quantity(&i), r.Shown()}
}
