package document

import (
	"iter"
	"time"

	"sshpace/internal/record"
)

// RawColumns names the values that Raw yields, in base units.
var RawColumns = []string{
	"trial", "started", "workload", "role", "direction", "cipher", "mac", "kex", "outcome", "detail",
	"wall_ns", "bytes", "client_cpu_ns", "server_cpu_ns", "login_ns",
}

// Raw yields the measured data, a row for each sample. Values are strings, int64, or nil where
// unknown.
func Raw(f *record.File) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for t, s := range f.Results() {
			if !yield(rawRow(t, s)) {
				return
			}
		}
	}
}

func rawRow(t record.Trial, s record.Sample) []any {
	suite := s.Got
	if suite.Cipher == "" {
		suite = t.Want
	}
	row := []any{
		int64(s.Trial), s.Start.UTC().Format(time.RFC3339Nano), clean(string(t.Workload)), clean(string(t.Role)), clean(string(t.Direction)),
		clean(suite.Cipher), clean(suite.MAC), clean(suite.Kex), clean(string(s.Outcome)), clean(s.Detail),
		int64(s.ElapsedNS), int64(s.Bytes), nanoseconds(s.ClientCPUNS), nanoseconds(s.ServerCPUNS), nil,
	}
	if p := s.Phases; p != nil {
		row[12], row[13], row[14] = nanoseconds(p.ClientCPUNS), nanoseconds(p.ServerCPUNS), int64(p.LoginNS)
	}
	return row
}

func nanoseconds(d *time.Duration) any {
	if d == nil {
		return nil
	}
	return int64(*d)
}
