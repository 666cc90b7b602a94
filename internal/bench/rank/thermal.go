package rank

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Heat sums up how hot and how fast the processor was during a run. The zero
// value is that of a machine that does not tell.
type Heat struct {
	Looks        int      // how often it was looked at
	Slowed       int      // how often it was slowed then
	Why          []string // for what reasons, in the order in which they came up
	Celsius      span     // of the hottest sensor of each look
	Hz           span     // of the cores' clocks
	sinceTheBoot []string // reasons that were there before the run
}

// heatOf reads the looks of a run.
func heatOf(looks []record.Thermal) (h Heat) {
	for i, look := range looks {
		h.Looks++
		if i == 0 {
			h.sinceTheBoot = look.SinceBoot
		}
		reasons := slices.Clone(look.Throttled)
		for _, why := range look.SinceBoot { // what began and ended between two looks
			if !slices.Contains(h.sinceTheBoot, why) {
				reasons = append(reasons, why)
			}
		}
		if len(reasons) > 0 {
			h.Slowed++
		}
		for _, why := range reasons {
			if !slices.Contains(h.Why, why) {
				h.Why = append(h.Why, why)
			}
		}
		hottest := math.Inf(-1)
		for _, zone := range look.Zones {
			hottest = max(hottest, zone.Celsius)
		}
		if len(look.Zones) > 0 {
			h.Celsius.add(hottest)
		}
		for _, hz := range look.ClockHz {
			h.Hz.add(float64(hz))
		}
	}
	return h
}

// span is from the least to the greatest of some values; zero without any.
type span struct{ lo, hi float64 }

func (s *span) add(x float64) {
	if *s == (span{}) {
		s.lo, s.hi = x, x
	}
	s.lo, s.hi = min(s.lo, x), max(s.hi, x)
}

// text is the span in a unit, such as "48-71"; "" without values.
func (s span) text(unit float64) string {
	from, to := fmt.Sprintf("%.0f", s.lo/unit), fmt.Sprintf("%.0f", s.hi/unit)
	switch {
	case s == span{}:
		return ""
	case from == to:
		return from
	}
	return from + "-" + to
}

// Temperature is the range in °C, such as "48-71"; "" where it is unknown.
func (h Heat) Temperature() string { return h.Celsius.text(1) }

// Clock is the range of the cores' clocks in MHz; "" where it is unknown.
func (h Heat) Clock() string { return h.Hz.text(1e6) }

// text says that the processor was slowed.
func (h Heat) text() string {
	words := []string{strings.Join(h.Why, ", ")}
	if t := h.Temperature(); t != "" {
		words = append(words, t+" °C")
	}
	if c := h.Clock(); c != "" {
		words = append(words, c+" MHz")
	}
	return fmt.Sprintf("the processor was throttled in %d of %s: %s", h.Slowed, unit.Count(h.Looks, "look"), strings.Join(words, ", "))
}
