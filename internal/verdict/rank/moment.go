package rank

import (
	"time"

	"sshpace/internal/record"
)

// Moment is one transfer of a run against the estimate of its cell: 1 is as
// estimated, 0 unknown.
type Moment struct {
	At         time.Duration // since the first sample
	Throughput float64
	Client     float64 // cost
}

// Moments are the transfers of the file that the ranking is of, in the order of
// the file and evenly thinned out to at most so many.
func (r *Ranking) Moments(f *record.File, most int) []Moment {
	cells := map[record.Cell]Cell{}
	for _, c := range r.Bulk {
		cells[record.CellOf(c.Suite, c.Direction)] = c
	}
	var out []Moment
	every, n := len(f.Samples)/most+1, -1
	for t, s := range f.Results() {
		if n++; n%every != 0 {
			continue
		}
		c, ok := cells[record.CellOf(s.Got, t.Direction)]
		if t.Workload != record.Transfer || s.Outcome != record.OK || !ok { // a copy's time is not that of its bytes alone
			continue
		}
		throughput, client := totals(s)
		out = append(out, Moment{s.Start.Sub(f.Samples[0].Start), against(throughput, c.Throughput), against(client, c.Client)})
	}
	return out
}

// totals are bytes per second and the client's ns per byte over all segments;
// 0 if unknown. The client's bytes are those that it sent or received: on their
// way to the sink megabytes wait in buffers.
func totals(s record.Sample) (throughput, client float64) {
	var bytes, wall, worked, used float64
	for _, seg := range s.Segments {
		bytes, wall = bytes+float64(seg.Bytes), wall+float64(seg.WallNS)
		if seg.ClientBytes > 0 {
			worked += float64(seg.ClientBytes)
		} else {
			worked += float64(seg.Bytes)
		}
		used += cpu(seg.ClientCPUNS)
	}
	if bytes <= 0 || wall <= 0 || worked <= 0 {
		return 0, 0
	}
	return bytes / wall * 1e9, used / worked
}

func against(v float64, estimate *Quantity) float64 {
	if v <= 0 || estimate == nil || estimate.Value <= 0 {
		return 0
	}
	return v / estimate.Value
}
