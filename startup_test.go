package main

import (
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// What packages may allocate before main begins. Every command pays for it: a
// library with tables to fill took a third of the CPU time of a login once. The
// one that draws the view of a run takes 90 allocations and 25 kB. Go's own
// table of types and their interfaces takes 18 kB of it, from 768 pairs on.
const (
	startAllocations = 1790
	startBytes       = 295_000
)

// TestTwoBinaries: sshpace itself links nothing of a hub, which would cost each start a third of
// its CPU time; sshpace-hub has all. Neither is too large to be copied to many machines.
func TestTwoBinaries(t *testing.T) {
	const most = 45_000_000                                                        // bytes
	if out, err := exec.Command("./try", "version").CombinedOutput(); err != nil { // which builds them
		t.Fatalf("%v: %s", err, out)
	}
	for name, hubs := range map[string]bool{"sshpace": false, "sshpace-hub": true} {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return strings.Contains(m.Path, "nats") })
		if has != hubs {
			t.Errorf("%s links NATS: %t", name, has)
		}
		if file, err := os.Stat(name); err != nil || file.Size() > most {
			t.Errorf("%s: %v, %d bytes, want at most %d", name, err, file.Size(), most)
		}
	}
}

// TestStart counts allocations, which do not depend on the machine's speed. What
// makes it fail belongs behind a sync.OnceValue (of ours: pattern.Lazy), or the
// library that it is in is one too many.
func TestStart(t *testing.T) {
	if out, err := exec.Command("./try", "version").CombinedOutput(); err != nil { // which builds it
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("./sshpace", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &trace)
	}
	var bytes, allocations int
	costs := map[int]string{} // of packages, by their allocations
	for line := range strings.Lines(trace.String()) {
		var name, at, clock string
		var size, count int
		if n, _ := fmt.Sscanf(line, "init %s @%s ms, %s ms clock, %d bytes, %d allocs", &name, &at, &clock, &size, &count); n == 5 {
			bytes, allocations = bytes+size, allocations+count
			costs[count] += name + " "
		}
	}
	if allocations == 0 {
		t.Fatalf("no trace of the start: %s", &trace)
	}
	if allocations > startAllocations || bytes > startBytes {
		t.Errorf("%d allocations and %d bytes before main, want at most %d and %d", allocations, bytes, startAllocations, startBytes)
		for _, count := range slices.Backward(slices.Sorted(maps.Keys(costs))) {
			t.Logf("%6d %s", count, costs[count])
		}
	}
}
