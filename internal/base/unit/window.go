package unit

import (
	"math"
	"time"
)

// ChannelWindow is the most that OpenSSH has in flight on one channel (channels.h:
// CHAN_SES_WINDOW_DEFAULT, 64 packets of 32 KiB).
const ChannelWindow Bytes = 2 << 20

// Ceiling is the most that such a window lets through over a round trip; infinite where the trip is
// unknown.
func Ceiling(trip time.Duration) Throughput {
	if trip <= 0 {
		return Throughput(math.Inf(1))
	}
	return Throughput(float64(ChannelWindow) / trip.Seconds())
}
