package index

import (
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// BenchmarkPlain10000 is 10,000 look-ups in a plain file of 10,000 lines, reading and indexing it
// included.
func BenchmarkPlain10000(b *testing.B) {
	file := sshtest.KnownHostsFile(b, sshtest.FleetFile(10_000, false))
	b.ReportAllocs()
	for b.Loop() {
		lookUpFleet(b, Open(file), 10_000)
	}
}

// BenchmarkHashed1400 is 1,400 look-ups in a hashed file of as many lines: one pass per name.
func BenchmarkHashed1400(b *testing.B) {
	file := sshtest.KnownHostsFile(b, sshtest.FleetFile(1400, true))
	b.ReportAllocs()
	for b.Loop() {
		lookUpFleet(b, Open(file), 1400)
	}
}

// BenchmarkHashed1400Warm is the same with the names told beforehand.
func BenchmarkHashed1400Warm(b *testing.B) {
	file := sshtest.KnownHostsFile(b, sshtest.FleetFile(1400, true))
	names := make([]string, 1400)
	for i := range names {
		names[i] = sshtest.FleetHost(i)
	}
	for b.Loop() {
		x := Open(file)
		x.Warm(b.Context(), names)
		lookUpFleet(b, x, 1400)
	}
}

// BenchmarkHashedAgain is a look-up of a name whose lines are known by now.
func BenchmarkHashedAgain(b *testing.B) {
	x := Open(sshtest.KnownHostsFile(b, sshtest.FleetFile(10_000, true)))
	for b.Loop() {
		if len(x.Lookup(sshtest.FleetHost(7), 22)) != 1 {
			b.Fatal("not found")
		}
	}
}

func lookUpFleet(b *testing.B, x *Index, n int) {
	for i := range n {
		if len(x.Lookup(sshtest.FleetHost(i), 22)) != 1 {
			b.Fatal("not found")
		}
	}
}
