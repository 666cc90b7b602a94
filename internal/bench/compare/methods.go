package compare

import (
	"slices"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// MethodResult is a method with the result of its runs: medians with their 95 % intervals, or their
// range where there are fewer than six. N of a figure is 0 where there is none.
type MethodResult struct {
	ID int `json:"id"` // of its record
	record.Method
	Login      stats.Interval `json:"login_s,omitzero"`                // of a run that does nothing but log in
	Start      stats.Interval `json:"start_s,omitzero"`                // time of a run besides its bytes: starting programs and logging in
	Rate       stats.Interval `json:"throughput_bytes_per_s,omitzero"` // after that
	ClientCost stats.Interval `json:"client_ns_per_byte,omitzero"`     // CPU time, without that of the start
	ServerCost stats.Interval `json:"server_ns_per_byte,omitzero"`     // the same at the server
	Failed     []string       `json:"failed,omitempty"`                // runs that failed to do their work

	measured
	ran bool
}

// Against judges the speed of a method relative to another one of its run.
func (r MethodResult) Against(other MethodResult) stats.Verdict {
	if !r.speed.Known() || !other.speed.Known() {
		return stats.NotEnough
	}
	return r.speed.over(other.speed, r.within(&other.measured)).Interval().Verdict()
}

// Ran reports whether there were enough runs for a figure.
func (r MethodResult) Ran() bool { return r.ran }

// MethodResults returns the results of a file, in the order of its methods.
func MethodResults(f *record.File) []MethodResult {
	var results []MethodResult
	all := f.Methods()
	for i, method := range all {
		again := func(later record.Subject) bool { return later.Same(method) }
		if method.Why != "" && slices.ContainsFunc(all[i+1:], again) {
			continue
		}
		runs := map[record.RunKind][]record.Reading{}
		r := MethodResult{ID: method.ID, Method: *method.Method, measured: measured{run: max(0, f.Campaign.Started.UnixNano()), id: method.ID}}
		for _, run := range f.Readings {
			switch {
			case run.Subject != method.ID:
			case run.Failure != "":
				r.Failed = append(r.Failed, run.Failure)
			default:
				runs[run.Kind] = append(runs[run.Kind], run)
			}
		}
		r.figure(runs)
		results = append(results, r)
	}
	return results
}

// wall, client and server return the columns of a run; false where it has none.
func wall(r record.Reading) (float64, bool)   { return r.WallNS.Seconds(), true }
func client(r record.Reading) (float64, bool) { return seconds(r.ClientCPUNS) }
func server(r record.Reading) (float64, bool) { return seconds(r.ServerCPUNS) }

// both returns the CPU time of both sides together; false if one of them is unknown.
func both(r record.Reading) (float64, bool) {
	c, seen := client(r)
	s, too := server(r)
	return c + s, seen && too
}

func seconds(d *time.Duration) (float64, bool) {
	if d == nil {
		return 0, false
	}
	return d.Seconds(), true
}

func column(runs []record.Reading, of func(record.Reading) (float64, bool)) []float64 {
	var values []float64
	for _, r := range runs {
		if v, ok := of(r); ok {
			values = append(values, v)
		}
	}
	return values
}

func walls(runs []record.Reading) (out []time.Duration) {
	for _, r := range runs {
		out = append(out, r.WallNS)
	}
	return out
}

func (r *MethodResult) figure(runs map[record.RunKind][]record.Reading) {
	r.Login = stats.MedianInterval(column(runs[record.LoginRun], wall))
	r.Start = stats.MedianInterval(column(runs[record.ShortRun], wall))
	// The rest of a long run without the median of the short ones, per byte.
	perByte := func(of func(record.Reading) (float64, bool)) []float64 {
		short := column(runs[record.ShortRun], of)
		if len(short) == 0 || r.SizeBytes <= 0 {
			return nil
		}
		var rest []float64
		for _, long := range column(runs[record.LongRun], of) {
			rest = append(rest, max(0, long-stats.Median(short))/float64(r.SizeBytes))
		}
		return rest
	}
	var rates, each []float64
	for _, moving := range record.Moving(walls(runs[record.LongRun]), walls(runs[record.ShortRun])) {
		rate := 0.0
		if moving > 0 && r.SizeBytes > 0 {
			rate = float64(r.SizeBytes) / moving.Seconds()
			rates = append(rates, rate)
		}
		each = append(each, rate)
	}
	r.Rate, r.speed = stats.MedianInterval(rates), figures{estimate(rates), each}
	r.ran = len(runs[record.ShortRun]) > 0 && len(runs[record.LongRun]) > 0
	r.ClientCost = stats.MedianInterval(perByte(client)).Scaled(1e9)
	r.ServerCost = stats.MedianInterval(perByte(server)).Scaled(1e9)
	for of, to := range map[*figures]func(record.Reading) (float64, bool){&r.both: both, &r.alone: client} {
		costs := perByte(to)
		*of = figures{estimate(costs), costs}
	}
}
