package record

import "time"

// Thermal is the temperature and the clock rate of the processor at a moment of a run, as far as
// the system reports them: boards without a fan slow down when they are hot, or when their power
// supply is weak. A field that could not be read is empty.
type Thermal struct {
	At         time.Time     `json:"at"`
	Zones      []ThermalZone `json:"zones,omitempty"`
	ClockHz    []int64       `json:"clock_hz,omitempty"`     // of each core
	ClockMaxHz int64         `json:"clock_max_hz,omitempty"` // of the fastest core
	// Throttled lists the reasons for which the processor was slowed at that moment, SinceBoot
	// those at any earlier time.
	Throttled []string `json:"throttled,omitempty"`
	SinceBoot []string `json:"throttled_since_boot,omitempty"`
}

// ThrottleReasons lists the reasons that Thermal knows: the flags of a Raspberry Pi's firmware (its
// documentation, vcgencmd get_throttled) in the order of their bits, and that of Linux.
var ThrottleReasons = []string{"under-voltage", "frequency capped", "throttled", "soft temperature limit", TooHot}

// TooHot is the reason for which Linux itself slows a processor.
const TooHot = "too hot"

// ThermalZone is one sensor, by its name in the kernel.
type ThermalZone struct {
	Name    string  `json:"name"`
	Celsius float64 `json:"celsius"`
}
