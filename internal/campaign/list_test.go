package campaign

import (
	"math"
	"testing"
	"time"
)

func TestWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Nanosecond: "1s", 90 * time.Second: "1m30s", 1500 * time.Millisecond: "2s", math.MaxInt64: "2562047h47m16s"} {
		if got := wholeSeconds(d).String(); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
