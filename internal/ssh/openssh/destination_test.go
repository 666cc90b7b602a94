package openssh

import (
	"slices"
	"strings"
	"testing"

	"sshpace/internal/ssh/conf"
)

// TestDestination: what leads through jump hosts stands in the place of -J, and what the user types
// stays what it was.
func TestDestination(t *testing.T) {
	d := Destination{Host: "web1", Flags: conf.Flags{Config: "c", Port: 23, User: "ann", Jump: "gate", Settings: []string{"A=1"}, Identities: []string{"k"}, IPv6: true}}
	typed := "-F c -l ann -p 23 -J gate -o A=1 -i k -6 web1"
	through := d.Verbose().With("B=2")
	through.Way = "ssh -W"
	for _, row := range []struct{ got, want []string }{
		{d.Typed(), strings.Fields(typed)},
		{append(d.Options(), "web1"), strings.Fields(typed)},
		{through.Options(), []string{"-v", "-F", "c", "-l", "ann", "-p", "23", "-o", "ProxyCommand=ssh -W", "-o", "B=2", "-o", "A=1", "-i", "k", "-6"}},
		{d.Options(), strings.Fields(strings.TrimSuffix(typed, " web1"))}, // as before
	} {
		if !slices.Equal(row.got, row.want) {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
	more := d.Replacing("Compression", "yes")
	if again := more.Replacing("SessionType", ""); len(d.Instead) != 0 || len(more.Instead) != 1 || len(again.Instead) != 2 {
		t.Errorf("%v, %v, %v", d.Instead, more.Instead, again.Instead)
	}
}
