//go:build linux

// Package hostinfo describes the computer that a measurement runs on, as far as that matters for
// the speed of SSH.
package hostinfo

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/unix"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// features are used by SSH's ciphers and MACs where they exist.
var features = []cpuid.FeatureID{
	cpuid.AESNI, cpuid.VAES, cpuid.CLMUL, cpuid.VPCLMULQDQ, cpuid.SHA, cpuid.SSSE3, cpuid.AVX, cpuid.AVX2, cpuid.AVX512F, cpuid.BMI2, cpuid.ADX,
	cpuid.AESARM, cpuid.PMULL, cpuid.SHA1, cpuid.SHA2, cpuid.SHA3, cpuid.SHA512, cpuid.ASIMD, cpuid.SVE,
}

// Describe fills the fields of an Environment that concern this machine. It watches the load for
// wait, in order to see the work of others.
func Describe(wait time.Duration) record.Environment {
	e := record.Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), CPU: cpuName()}
	for _, feature := range features {
		if cpuid.CPU.Supports(feature) {
			e.CPUFeatures = append(e.CPUFeatures, strings.ToLower(feature.String()))
		}
	}
	if cpuid.CPU.VM() {
		e.Hypervisor = hypervisor()
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		e.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		e.MemoryBytes = unit.Bytes(uint64(info.Totalram) * uint64(info.Unit))
	}
	e.LoadAverage = max(0, Load())
	e.Governor = governor("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	e.CPUQuota = quota("/sys/fs/cgroup")
	e.StealPct = steal(wait, &e)
	e.CPUClock, e.TickNS = clock(&e)
	return e
}

// Load returns how many processes ran or waited for a CPU during the last minute, as uptime(1)
// shows it; -1 if unknown.
func Load() float64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return -1
	}
	return float64(info.Loads[0]) / (1 << 16)
}

func cpuName() string {
	if name := strings.TrimSpace(cpuid.CPU.BrandName); name != "" {
		return name
	}
	text, _ := os.ReadFile("/proc/device-tree/model") // boards
	return strings.TrimRight(string(text), "\x00\n")
}

func hypervisor() string {
	if vendor := cpuid.CPU.HypervisorVendorString; vendor != "" {
		return vendor
	}
	return "virtual machine"
}

func governor(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// quota reads how many cores a cgroup lets us use; 0 where it does not limit.
func quota(root string) float64 {
	if text, err := os.ReadFile(filepath.Join(root, "cpu.max")); err == nil { // cgroup v2
		fields := strings.Fields(string(text))
		if len(fields) == 2 {
			return share(fields[0], fields[1])
		}
	}
	limit, err := os.ReadFile(filepath.Join(root, "cpu", "cpu.cfs_quota_us")) // cgroup v1
	period, err2 := os.ReadFile(filepath.Join(root, "cpu", "cpu.cfs_period_us"))
	if err != nil || err2 != nil {
		return 0
	}
	return share(strings.TrimSpace(string(limit)), strings.TrimSpace(string(period)))
}

func share(limit, period string) float64 {
	l, err := strconv.ParseFloat(limit, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || l <= 0 || p <= 0 {
		return 0
	}
	return l / p
}

// steal measures the CPU time that the hypervisor takes, in percent of all cores.
func steal(wait time.Duration, e *record.Environment) float64 {
	before, ok := proc.ReadLoad()
	start := time.Now()
	time.Sleep(wait)
	after, ok2 := proc.ReadLoad()
	if !ok || !ok2 {
		e.Limits = append(e.Limits, "no /proc/stat: foreign load and steal are not seen")
		return 0
	}
	return 100 * float64(after.Steal-before.Steal) / float64(time.Since(start)) / float64(e.Cores)
}

// clock finds out how exactly CPU times can be read here.
func clock(e *record.Environment) (kind string, resolution time.Duration) {
	own, err := proc.OpenSelf()
	if err != nil {
		e.Limits = append(e.Limits, "no CPU clock of other processes: costs are not measured")
		return "none", 0
	}
	defer own.Close()
	if own.Exact() {
		return own.Kind(), time.Microsecond
	}
	e.Limits = append(e.Limits, "perf events are not permitted: CPU times come in steps of a timer tick")
	return own.Kind(), 4 * time.Millisecond
}
