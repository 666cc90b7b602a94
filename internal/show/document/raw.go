package document

import (
	"iter"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// RawColumns name the values that Raw yields, in base units.
var RawColumns = []string{
	"trial", "started", "workload", "role", "direction", "cipher", "mac", "kex", "outcome", "detail", "segment",
	"wall_ns", "bytes", "client_bytes", "server_bytes", "client_cpu_ns", "server_cpu_ns", "client_wait_ns", "server_wait_ns", "harness_cpu_ns", "login_ns",
}

// Raw yields what was measured: a row for each segment, and one for a sample
// without any. Values are strings, int64, or nil where unknown.
func Raw(f *record.File) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for t, s := range f.Results() {
			rows := s.Segments
			if len(rows) == 0 {
				rows = []record.Segment{{}}
			}
			for i, seg := range rows {
				if !yield(rawRow(t, s, i, seg)) {
					return
				}
			}
		}
	}
}

func rawRow(t record.Trial, s record.Sample, i int, seg record.Segment) []any {
	suite := s.Got
	if suite.Cipher == "" {
		suite = t.Want
	}
	row := []any{
		int64(s.Trial), s.Start.UTC().Format(time.RFC3339Nano), text(string(t.Workload)), text(string(t.Role)), text(string(t.Direction)),
		text(suite.Cipher), text(suite.MAC), text(suite.Kex), text(string(s.Outcome)), text(s.Detail), nil,
		int64(s.ElapsedNS), int64(s.Bytes), nil, nil, nil, nil, nil, nil, nil, nil,
	}
	if len(s.Segments) > 0 {
		row[10], row[11], row[12] = int64(i+1), int64(seg.WallNS), int64(seg.Bytes)
		row[13], row[14] = bytesOrNil(seg.ClientBytes), bytesOrNil(seg.ServerBytes)
		row[15], row[16] = nanoseconds(seg.ClientCPUNS), nanoseconds(seg.ServerCPUNS)
		row[17], row[18], row[19] = nanoseconds(seg.ClientWaitNS), nanoseconds(seg.ServerWaitNS), int64(seg.HarnessCPUNS)
	}
	if p := s.Phases; p != nil {
		row[15], row[16], row[20] = nanoseconds(p.ClientCPUNS), nanoseconds(p.ServerCPUNS), int64(p.LoginNS)
	}
	return row
}

func bytesOrNil(b unit.Bytes) any {
	if b == 0 {
		return nil
	}
	return int64(b)
}

func nanoseconds(d *time.Duration) any {
	if d == nil {
		return nil
	}
	return int64(*d)
}
