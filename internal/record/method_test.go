package record_test

import (
	"slices"
	"testing"
	"time"

	"sshpace/internal/record"
)

// A long run tells by what it took beyond the median of the short ones, if that is more than a
// twentieth of it; a single short run that was held up takes no figure away.
func TestMoving(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what              string
		long, short, want []time.Duration
	}{
		{"the median of an odd number", []time.Duration{500 * ms}, []time.Duration{900 * ms, 100 * ms, 120 * ms}, []time.Duration{380 * ms}},
		{"of an even one", []time.Duration{500 * ms}, []time.Duration{140 * ms, 100 * ms}, []time.Duration{380 * ms}},
		{"hardly longer", []time.Duration{105 * ms, 106 * ms, 90 * ms}, []time.Duration{100 * ms}, []time.Duration{0, 6 * ms, 0}},
		{"no short ones", []time.Duration{500 * ms}, nil, []time.Duration{0}},
		{"no long ones", nil, []time.Duration{100 * ms}, nil},
	} {
		if got := record.Moving(c.long, c.short); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
