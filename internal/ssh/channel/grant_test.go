package channel

import (
	"testing"
	"testing/synctest"
	"time"
)

// received returns the window and the rate in bytes per second after a server has sent size bytes
// over a round trip, at most rate bytes per second and no more than it is granted.
func received(roundTrip time.Duration, rate float64, size int) (g grant, reached float64) {
	g = grant{size: window, allowed: window}
	type news struct {
		at   time.Time
		more int
	}
	may, began := window, time.Now()
	var raises []news
	for left := size; left > 0; {
		for len(raises) > 0 && !raises[0].at.After(time.Now()) {
			may, raises = may+raises[0].more, raises[1:]
		}
		n := min(may, maxPacket, left)
		if n == 0 {
			time.Sleep(time.Until(raises[0].at))
			continue
		}
		time.Sleep(time.Duration(float64(n) / rate * 1e9))
		may, left = may-n, left-n
		if !g.arrive(n) {
			panic("more than was granted")
		}
		if more := g.take(n); more > 0 {
			raises = append(raises, news{time.Now().Add(roundTrip), int(more)})
		}
	}
	return g, float64(size) / time.Since(began).Seconds()
}

// TestGrant: a window grows as far as the path needs it and no further, so that it never is the
// limit for long.
func TestGrant(t *testing.T) {
	for _, c := range []struct {
		roundTrip time.Duration
		rate      float64
	}{{200 * time.Microsecond, 500e6}, {10 * time.Millisecond, 100e6}, {50 * time.Millisecond, 150e6}, {200 * time.Millisecond, 100e6}, {50 * time.Millisecond, 2e6}} {
		synctest.Test(t, func(t *testing.T) {
			g, reached := received(c.roundTrip, c.rate, int(4*c.rate))
			if holds := c.rate * c.roundTrip.Seconds(); float64(g.size) > max(4*window, 6*holds) {
				t.Errorf("%v at %.0f MB/s: a window of %d bytes, where the path holds %.0f", c.roundTrip, c.rate/1e6, g.size, holds)
			}
			if reached < 0.8*c.rate {
				t.Errorf("%v: %.0f of %.0f MB/s", c.roundTrip, reached/1e6, c.rate/1e6)
			}
		})
	}
}

// TestGrantExpects: over a long path the window does not wait for its growth, within a bound.
func TestGrantExpects(t *testing.T) {
	for trip, want := range map[time.Duration]uint32{0: window, time.Millisecond: window, 50 * time.Millisecond: 12_800_000, time.Second: mostExpected} {
		g := grant{size: window, allowed: window}
		g.expect(trip)
		if more := g.take(0); g.size != want || g.allowed != want || more != want-window {
			t.Errorf("%v: a window of %d, of which %d are granted, want %d", trip, g.size, g.allowed, want)
		}
	}
}
