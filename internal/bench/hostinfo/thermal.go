//go:build linux

package hostinfo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/record"
)

// Thermometer reads temperatures, clock rates and throttling, and writes them as records. On
// machines that report none of it, it writes nothing.
type Thermometer struct {
	Root string // of sysfs: "/sys"
	// Firmware asks the firmware of a Raspberry Pi for the reasons of throttling, which sysfs does
	// not report: "throttled=0x50005". nil: there is none. It is for the start and the end of a
	// run, because it starts a program.
	Firmware func() (string, error)
	Sink     record.Sink
	Now      func() time.Time

	last time.Time
}

// thermalEvery is the interval of readings. One takes some hundred microseconds.
const thermalEvery = 10 * time.Second

// Begin takes a reading at the start of a run, or when it is resumed, and End at its end.
func (t *Thermometer) Begin() error { return t.look(t.Firmware) }

// End takes the last reading.
func (t *Thermometer) End() error { return t.look(t.Firmware) }

// Record passes a record on, and takes a reading if the last one is old: between two records
// nothing is being timed.
func (t *Thermometer) Record(r record.Record) error {
	if err := t.Sink(r); err != nil || t.Now().Sub(t.last) < thermalEvery {
		return err
	}
	return t.look(nil)
}

func (t *Thermometer) look(firmware func() (string, error)) error {
	t.last = t.Now()
	reading := readThermal(t.Root, firmware)
	if reading == nil {
		return nil
	}
	reading.At = t.last.UTC()
	return t.Sink(reading)
}

// readThermal reads below a root of sysfs (kernel: thermal/sysfs-api, cpu-freq/user-guide); nil
// where nothing is reported.
func readThermal(root string, firmware func() (string, error)) *record.Thermal {
	t := &record.Thermal{Zones: zones(root)}
	t.ClockHz, t.ClockMaxHz = clocks(root)
	flags, err := readText(filepath.Join(root, "devices/platform/soc/soc:firmware/get_throttled"))
	if err != nil && firmware != nil {
		flags, err = firmware()
	}
	if err == nil {
		t.Throttled, t.SinceBoot = throttling(flags)
	}
	t.Throttled = append(t.Throttled, cooling(root)...)
	if len(t.Zones)+len(t.ClockHz)+len(t.Throttled)+len(t.SinceBoot) == 0 {
		return nil
	}
	return t
}

func readText(path string) (string, error) {
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

func readNumber(path string) (int64, bool) {
	text, err := readText(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// zones reads the sensors: temp is in thousandths of a degree.
func zones(root string) (all []record.ThermalZone) {
	for _, dir := range numbered(filepath.Join(root, "class/thermal/thermal_zone*")) {
		milli, ok := readNumber(filepath.Join(dir, "temp"))
		name, err := readText(filepath.Join(dir, "type"))
		if ok && err == nil {
			all = append(all, record.ThermalZone{Name: name, Celsius: float64(milli) / 1000})
		}
	}
	return all
}

// maxClocks is the most cores whose clock rate is read: more take too long.
const maxClocks = 16

// clocks reads the clock rates of the cores, in Hz: now, and the highest possible one. The kernel
// reports kHz.
func clocks(root string) (now []int64, most int64) {
	dirs := numbered(filepath.Join(root, "devices/system/cpu/cpu[0-9]*"))
	for _, dir := range dirs[:min(len(dirs), maxClocks)] {
		if khz, ok := readNumber(filepath.Join(dir, "cpufreq/scaling_cur_freq")); ok {
			now = append(now, khz*1000)
		}
		if khz, ok := readNumber(filepath.Join(dir, "cpufreq/cpuinfo_max_freq")); ok {
			most = max(most, khz*1000)
		}
	}
	return now, most
}

// numbered returns the directories of a pattern in the order of their numbers.
func numbered(pattern string) []string {
	dirs, _ := filepath.Glob(pattern)
	number := func(dir string) int {
		n, _ := strconv.Atoi(strings.TrimLeft(filepath.Base(dir), "abcdefghijklmnopqrstuvwxyz_"))
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return number(a) - number(b) })
	return dirs
}

// cooling lists the means by which the kernel slows the processor at this moment. Fans are not
// among them.
func cooling(root string) (all []string) {
	for _, dir := range numbered(filepath.Join(root, "class/thermal/cooling_device*")) {
		kind, err := readText(filepath.Join(dir, "type"))
		if err != nil || !strings.Contains(kind, "cpufreq") && kind != "Processor" {
			continue
		}
		if step, ok := readNumber(filepath.Join(dir, "cur_state")); ok && step > 0 && len(all) == 0 {
			all = append(all, record.TooHot)
		}
	}
	return all
}

// throttling parses get_throttled: a hexadecimal number, after "throttled=0x" from the firmware's
// program. The reasons since boot are 16 bits higher.
func throttling(text string) (now, sinceBoot []string) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "throttled="), "0x")
	bits, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return nil, nil
	}
	for i, reason := range record.ThrottleReasons[:4] {
		if bits>>i&1 == 1 {
			now = append(now, reason)
		}
		if bits>>(i+16)&1 == 1 {
			sinceBoot = append(sinceBoot, reason)
		}
	}
	return now, sinceBoot
}

// Vcgencmd asks the firmware by its own program.
func Vcgencmd() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "vcgencmd", "get_throttled").Output()
	if err != nil {
		return "", fmt.Errorf("vcgencmd: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
