package rank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Heat sums up how hot and how fast the processor was during a run. The zero
// value is that of a machine that does not tell.
type Heat struct {
	Looks   int       // how often it was looked at
	Slowed  int       // how often it was slowed then
	Why     []string  // for what reasons, in the order in which they came up
	celsius []float64 // of the hottest sensor of each look
	hz      []float64 // of the cores' clocks
}

// heatOf reads the looks of a run.
func heatOf(looks []record.Thermal) (h Heat) {
	for _, look := range looks {
		reasons := slices.Clone(look.Throttled)
		for _, why := range look.SinceBoot { // what began and ended between two looks
			if !slices.Contains(looks[0].SinceBoot, why) {
				reasons = append(reasons, why)
			}
		}
		h.Looks++
		if len(reasons) > 0 {
			h.Slowed++
		}
		for _, why := range reasons {
			if !slices.Contains(h.Why, why) {
				h.Why = append(h.Why, why)
			}
		}
		if len(look.Zones) > 0 {
			h.celsius = append(h.celsius, slices.MaxFunc(look.Zones, func(a, b record.ThermalZone) int { return cmp.Compare(a.Celsius, b.Celsius) }).Celsius)
		}
		for _, hz := range look.ClockHz {
			h.hz = append(h.hz, float64(hz))
		}
	}
	return h
}

// span is from the least to the greatest of some values in a unit, such as "48-71"; "" without any.
func span(values []float64, unit float64) string {
	if len(values) == 0 {
		return ""
	}
	from, to := fmt.Sprintf("%.0f", slices.Min(values)/unit), fmt.Sprintf("%.0f", slices.Max(values)/unit)
	if from == to {
		return from
	}
	return from + "-" + to
}

// Temperature is the range in °C, such as "48-71"; "" where it is unknown.
func (h Heat) Temperature() string { return span(h.celsius, 1) }

// Clock is the range of the cores' clocks in MHz; "" where it is unknown.
func (h Heat) Clock() string { return span(h.hz, 1e6) }

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
