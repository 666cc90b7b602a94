package latency

import (
	"time"

	"sshpace/internal/base/stats"
)

// Summary is the latency of the bytes of a lane, idle or loaded.
type Summary struct {
	Lane   string `json:"lane"`
	Loaded bool   `json:"loaded"`
	Sent   int    `json:"sent"`
	Back   int    `json:"back"`
	// Median with its 95 % interval, or the range of fewer than stats.MinExact bytes, for which
	// there is none.
	Median stats.Interval `json:"median_ns"`
	Min    int64          `json:"min_ns"`
	Max    int64          `json:"max_ns"`
	// Quantiles of which at least one byte lies above: p90, p99 and p99.9.
	Quantiles map[string]int64 `json:"quantiles_ns"`
	// Timeline is the median of each tenth of the time; 0 where nothing was sent.
	Timeline []int64 `json:"timeline_ns"`
}

// Quantiles are those of a summary besides the median, in order.
var Quantiles = []struct {
	Name string
	At   float64
}{{"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

// summarize summarizes echoes, lane by lane, idle before loaded, in the order of lanes.
func summarize(lanes []string, echoes []Echo) (all []Summary) {
	for _, loaded := range []bool{false, true} {
		for _, lane := range lanes {
			s := Summary{Lane: lane, Loaded: loaded, Quantiles: map[string]int64{}}
			if s.fill(echoes); s.Sent > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}

// spans is the number of parts of the timeline.
const spans = 10

func (s *Summary) fill(echoes []Echo) {
	var took []float64
	var times [spans][]float64
	length := span(echoes)
	for _, e := range echoes {
		if e.Lane != s.Lane || e.Loaded != s.Loaded {
			continue
		}
		if s.Sent++; e.Latency != Lost {
			took = append(took, float64(e.Latency))
			i := int(e.At * spans / length)
			times[i] = append(times[i], float64(e.Latency))
		}
	}
	if s.Back = len(took); s.Back == 0 {
		return
	}
	s.Median = stats.MedianInterval(took)
	s.Min, s.Max = int64(stats.Quantile(took, 0)), int64(stats.Quantile(took, 1))
	for _, q := range Quantiles {
		if float64(s.Back)*(1-q.At) >= 1 {
			s.Quantiles[q.Name] = int64(stats.Quantile(took, q.At))
		}
	}
	for _, t := range times {
		s.Timeline = append(s.Timeline, int64(stats.Median(t)))
	}
}

// span is a little more than the time from the first byte to the last.
func span(echoes []Echo) time.Duration {
	var last time.Duration
	for _, e := range echoes {
		last = max(last, e.At)
	}
	return last + 1
}
