package hostinfo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/record"
)

// plant writes files below a new root of sysfs.
func plant(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// pi is what sysfs looks like on a Raspberry Pi that is hot and badly powered.
var pi = map[string]string{
	"class/thermal/thermal_zone0/type":                         "cpu-thermal",
	"class/thermal/thermal_zone0/temp":                         "82764",
	"class/thermal/cooling_device0/type":                       "pwm-fan",
	"class/thermal/cooling_device0/cur_state":                  "4",
	"devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":         "600000",
	"devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":         "1800000",
	"devices/system/cpu/cpu1/cpufreq/scaling_cur_freq":         "1800000",
	"devices/system/cpu/cpu10/cpufreq/scaling_cur_freq":        "1500000",
	"devices/platform/soc/soc:firmware/get_throttled":          "50005",
	"devices/system/cpu/cpufreq/policy0/scaling_available_foo": "1",
}

func TestThermal(t *testing.T) {
	with := func(changes map[string]string) map[string]string {
		files := map[string]string{}
		for name, text := range pi {
			files[name] = text
		}
		for name, text := range changes {
			if files[name] = text; text == "" {
				delete(files, name)
			}
		}
		return files
	}
	clocks := []int64{600e6, 1800e6, 1500e6}
	zones := []record.ThermalZone{{Name: "cpu-thermal", Celsius: 82.764}}
	const flags = "devices/platform/soc/soc:firmware/get_throttled"
	for name, tt := range map[string]struct {
		files    map[string]string
		firmware string
		want     *record.Thermal
	}{
		"hot and badly powered": {pi, "", &record.Thermal{Zones: zones, ClockHz: clocks, ClockMaxHz: 1800e6,
			Throttled: []string{"under-voltage", "throttled"}, SinceBoot: []string{"under-voltage", "throttled"}}},
		"fine": {with(map[string]string{flags: "0"}), "", &record.Thermal{Zones: zones, ClockHz: clocks, ClockMaxHz: 1800e6}},
		"by the firmware's program": {with(map[string]string{flags: ""}), "throttled=0x80002",
			&record.Thermal{Zones: zones, ClockHz: clocks, ClockMaxHz: 1800e6, Throttled: []string{"frequency capped"}, SinceBoot: []string{"soft temperature limit"}}},
		"slowed by the kernel": {with(map[string]string{flags: "", "class/thermal/cooling_device1/type": "thermal-cpufreq-0", "class/thermal/cooling_device1/cur_state": "3"}), "",
			&record.Thermal{Zones: zones, ClockHz: clocks, ClockMaxHz: 1800e6, Throttled: []string{"too hot"}}},
		"no number": {map[string]string{"class/thermal/thermal_zone0/type": "x", "class/thermal/thermal_zone0/temp": "?", flags: "zz"}, "", nil},
		"nothing":   {nil, "", nil},
	} {
		firmware := func() (string, error) { return tt.firmware, nil }
		if tt.firmware == "" {
			firmware = func() (string, error) { return "", errors.New("no such program") }
		}
		if diff := cmp.Diff(tt.want, readThermal(plant(t, tt.files), firmware)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A run looks at its start, at its end and every ten seconds, between records.
func TestThermometer(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var looks []int
	asked := 0
	meter := &Thermometer{
		Root:     plant(t, map[string]string{"class/thermal/thermal_zone0/type": "soc", "class/thermal/thermal_zone0/temp": "50000"}),
		Firmware: func() (string, error) { asked++; return "throttled=0x0", nil },
		Now:      func() time.Time { return now },
		Sink: func(r record.Record) error {
			if x, is := r.(*record.Thermal); is {
				looks = append(looks, x.At.Second())
			}
			return nil
		},
	}
	if err := meter.Begin(); err != nil {
		t.Fatal(err)
	}
	for range 25 {
		now = now.Add(time.Second)
		if err := meter.Record(&record.Slices{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := meter.End(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 10, 20, 25}, looks); diff != "" || asked != 2 {
		t.Errorf("looks at (-want +got):\n%s, the firmware was asked %d times", diff, asked)
	}
}
