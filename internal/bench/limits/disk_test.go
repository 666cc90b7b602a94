//go:build linux

package limits_test

import (
	"math"
	"strings"
	"testing"

	"sshpace/internal/bench/limits"
	"sshpace/internal/record"
)

// A disk is the limit where a copy is as fast as its files without SSH: the slower end is named.
func TestJudgeDisk(t *testing.T) {
	for name, c := range map[string]struct {
		copied, read, written float64
		up                    bool
		want, says            string
	}{
		"slow sink":     {8e6, 2e9, 8.3e6, true, record.LimitSinkDisk, "the disk at the server's end is the limit: it takes 8.30 MB/s"},
		"slow sink, -":  {8e6, 2e9, 8.3e6, false, record.LimitSinkDisk, "the disk at this end is the limit"},
		"slow source":   {7e6, 7.2e6, 100e6, true, record.LimitSourceDisk, "the disk at this end is the limit: it gives 7.20 MB/s"},
		"slow source -": {7e6, 7.2e6, 100e6, false, record.LimitSourceDisk, "the disk at the server's end"},
		"in memory":     {300e6, 3e9, 2e9, true, "", ""},
		"slow link":     {8e6, 3e9, 120e6, true, "", ""},
		"too short":     {math.Inf(1), 3e9, 120e6, true, "", ""},
		"unknown":       {8e6, 0, 0, true, "", ""},
		"no figure":     {0, 3e9, 120e6, true, "", ""},
		"faster":        {8.4e12, 864e6, 2e9, true, "", ""},
	} {
		what, sentence, _, is := limits.JudgeDisk(record.Evidence{BytesPerSecond: c.copied, ReadBytesPerS: c.read, WriteBytesPerS: c.written}, false, c.up)
		if what != c.want || !strings.Contains(sentence, c.says) || is != (c.want != "") {
			t.Errorf("%s: %s: %s", name, what, sentence)
		}
	}
}
