package knownhosts

import (
	"fmt"
	"strings"
	"testing"

	"sshpace/internal/base/host"
)

// BenchmarkPlain10000 is 10,000 look-ups in a plain file of 10,000 lines,
// reading and indexing it included.
func BenchmarkPlain10000(b *testing.B) {
	file := writeFile(b, fleetFile(10_000, false))
	b.ReportAllocs()
	for b.Loop() {
		lookUpFleet(b, Open(file), 10_000)
	}
}

// BenchmarkHashed1400 is 1,400 look-ups in a hashed file of as many lines: one
// pass per name.
func BenchmarkHashed1400(b *testing.B) {
	file := writeFile(b, fleetFile(1400, true))
	b.ReportAllocs()
	for b.Loop() {
		lookUpFleet(b, Open(file), 1400)
	}
}

// BenchmarkHashed1400Warm is the same with the names told beforehand.
func BenchmarkHashed1400Warm(b *testing.B) {
	file := writeFile(b, fleetFile(1400, true))
	names := make([]string, 1400)
	for i := range names {
		names[i] = fleetHost(i)
	}
	for b.Loop() {
		x := Open(file)
		x.Warm(b.Context(), names)
		lookUpFleet(b, x, 1400)
	}
}

// BenchmarkHashedAgain is a look-up of a name whose lines are known by now.
func BenchmarkHashedAgain(b *testing.B) {
	x := Open(writeFile(b, fleetFile(10_000, true)))
	for b.Loop() {
		if len(x.Lookup(fleetHost(7), 22)) != 1 {
			b.Fatal("not found")
		}
	}
}

func lookUpFleet(b *testing.B, x *Index, n int) {
	for i := range n {
		if len(x.Lookup(fleetHost(i), 22)) != 1 {
			b.Fatal("not found")
		}
	}
}

// BenchmarkSplit1400 splits 1,400 hosts out of a plain file of 2.1 MB.
func BenchmarkSplit1400(b *testing.B) {
	file := writeFile(b, twoMegabytes())
	hosts := make([]host.Host, 1400)
	for i := range hosts {
		hosts[i].Name = fleetHost(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := Split(b.Context(), Open(file), b.TempDir(), SplitOptions{Hosts: hosts}); err != nil || r.Written != 1401 {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkKeygenFind is what Split replaces: one ssh-keygen -F in that file.
func BenchmarkKeygenFind(b *testing.B) {
	file := writeFile(b, twoMegabytes())
	for b.Loop() {
		if out, err := keygen("-F", fleetHost(700), "-f", file); err != nil {
			b.Fatal(err, out)
		}
	}
}

// twoMegabytes is the shape of a real fleet's file: 1,400 hosts under their name
// and address, with three types of keys, and as many lines of other hosts.
func twoMegabytes() string {
	var text strings.Builder
	rsa, ec := marshalKey(rsaKey().PublicKey()), marshalKey(ecKey().PublicKey())
	for i := 0; text.Len() < 2_100_000; i++ {
		names := fmt.Sprintf("%s,10.%d.%d.%d ", fleetHost(i), i>>16, i>>8&255, i&255)
		fmt.Fprintf(&text, "%s%s\n%s%s\n%s%s\n", names, edLine(i), names, ec, names, rsa)
	}
	return text.String()
}
