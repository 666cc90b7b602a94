//go:build linux

package limits

import (
	"fmt"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// JudgeDisk reports whether a copy is as fast as its files can be read, or written, without SSH,
// and at which end. A rate of 0 is unknown, and gives no answer. private is a server on this
// machine, up a copy to the server.
func JudgeDisk(e record.Evidence, private, up bool) (what, sentence, help string, is bool) {
	slower, what, verb := e.WriteBytesPerS, record.LimitSinkDisk, "takes"
	if e.ReadBytesPerS < slower {
		slower, what, verb = e.ReadBytesPerS, record.LimitSourceDisk, "gives"
	}
	if slower <= 0 || e.BytesPerSecond < ofLink*slower || slower < ofLink*e.BytesPerSecond { // what is faster than its files was held up less
		return "", "", "", false
	}
	where := "this end"
	if (what == record.LimitSinkDisk) == up {
		where = "the server's end"
	}
	if private {
		where += " (both are this machine's)"
	}
	sentence = fmt.Sprintf("the disk at %s is the limit: it %s %s without SSH, and the copy reaches %s", where, verb, unit.Throughput(slower), rate(e))
	return what, sentence, "a faster disk or file system there; no cipher or other setting of ssh", true
}
