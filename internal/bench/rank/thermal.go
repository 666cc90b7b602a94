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
	Coolest      float64  // °C; the hottest sensor of each look
	Hottest      float64
	Slowest      float64 // Hz, of the slowest core; 0 unknown
	Fastest      float64
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
		h.degrees(look.Zones)
		h.clocks(look.ClockHz)
	}
	return h
}

func (h *Heat) degrees(zones []record.ThermalZone) {
	hottest := math.Inf(-1)
	for _, zone := range zones {
		hottest = max(hottest, zone.Celsius)
	}
	if len(zones) == 0 {
		return
	}
	if h.Coolest == 0 && h.Hottest == 0 {
		h.Coolest, h.Hottest = hottest, hottest
	}
	h.Coolest, h.Hottest = min(h.Coolest, hottest), max(h.Hottest, hottest)
}

func (h *Heat) clocks(cores []int64) {
	for _, hz := range cores {
		if h.Slowest == 0 {
			h.Slowest = float64(hz)
		}
		h.Slowest, h.Fastest = min(h.Slowest, float64(hz)), max(h.Fastest, float64(hz))
	}
}

// Temperature is the range in °C, such as "48-71"; "" where it is unknown.
func (h Heat) Temperature() string {
	if h.Coolest == 0 && h.Hottest == 0 {
		return ""
	}
	return fromTo(h.Coolest, h.Hottest)
}

// Clock is the range of the cores' clocks in MHz; "" where it is unknown.
func (h Heat) Clock() string {
	if h.Fastest == 0 {
		return ""
	}
	return fromTo(h.Slowest/1e6, h.Fastest/1e6)
}

func fromTo(a, b float64) string {
	from, to := fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b)
	if from == to {
		return from
	}
	return from + "-" + to
}

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
