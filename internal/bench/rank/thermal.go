package rank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Heat summarizes the temperature and the clock rate of the processor during a run. The zero value
// is that of a machine that reports nothing.
type Heat struct {
	Looks   int      // how often it was looked at
	Slowed  int      // how often it was slowed then
	Why     []string // for these reasons, in the order in which they appeared
	Celsius string   // range of the hottest sensor, such as "48-71"; "" where it is unknown
	MHz     string   // range of the cores' clocks
}

// heatOf summarizes the readings of a run.
func heatOf(looks []record.Thermal) (h Heat) {
	var celsius, mhz []float64
	for _, look := range looks {
		reasons := slices.Clone(look.Throttled)
		for _, why := range look.SinceBoot { // throttling that began and ended between two readings
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
			celsius = append(celsius, slices.MaxFunc(look.Zones, func(a, b record.ThermalZone) int { return cmp.Compare(a.Celsius, b.Celsius) }).Celsius)
		}
		for _, hz := range look.ClockHz {
			mhz = append(mhz, float64(hz)/1e6)
		}
	}
	h.Celsius, h.MHz = span(celsius), span(mhz)
	return h
}

// span prints the least and the greatest of some values; "" without any.
func span(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	from, to := fmt.Sprintf("%.0f", slices.Min(values)), fmt.Sprintf("%.0f", slices.Max(values))
	if from == to {
		return from
	}
	return from + "-" + to
}

// text says that the processor was slowed.
func (h Heat) text() string {
	words := []string{strings.Join(h.Why, ", ")}
	if h.Celsius != "" {
		words = append(words, h.Celsius+" °C")
	}
	if h.MHz != "" {
		words = append(words, h.MHz+" MHz")
	}
	return fmt.Sprintf("the processor was throttled in %d of %s: %s", h.Slowed, unit.Count(h.Looks, "look"), strings.Join(words, ", "))
}
