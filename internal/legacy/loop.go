package legacy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// loop reads the output of the cipher loop of 2015: for each cipher some tries of `dd | pv | time
// -p ssh`, of which `time` prints real, user and sys, and dd the bytes that it wrote. If ssh
// failed, its message stands before the times, which are then those of the failure. The MAC and the
// key exchange were those of the configuration, which the log does not hold.
type loop struct {
	*document
	pending bool
	timed   bool // the time of the run was read
	failed  bool // ssh gave the reason for the missing copy
	at      int  // index of the run that the lines belong to, in machine m
	m       *machine
}

// unstated replaces an algorithm that a log does not name.
const unstated = "default"

// add adds a copy of which the log names the cipher alone.
func (m *machine) add(cipher string) *run {
	if len(m.runs) == 0 {
		m.Remark(`the log does not say which MAC and key exchange were negotiated: they are called "default"`)
	}
	suite := alg.Suite{Cipher: cipher, MAC: unstated, Kex: unstated}
	if alg.IsAEAD(cipher) {
		suite.MAC = ""
	}
	m.runs = append(m.runs, run{suite: suite})
	return &m.runs[len(m.runs)-1]
}

var (
	loopLine = wildcard.Regexp(`^Cipher: (\S+) \(try ([0-9]+)\)$`)
	timeLine = wildcard.Regexp(`^(real|user|sys) ([0-9]+\.[0-9]+)$`)
	ddLine   = wildcard.Regexp(`^([0-9]+) bytes .*copied, ([0-9.e+-]+) s(?:econds)?, (?:[0-9.]+ ?[kKMGT]?B/s|Infinity B/s)$`)
	pvLine   = wildcard.Regexp(`[0-9.,]+ ?[kKMGT]?i?B .*\[[ ,.<=>0-9kKMGTiB/s]*\]`)
)

func (l *loop) Take(line string) bool {
	line = strings.TrimSpace(line[strings.LastIndexByte(line, '\r')+1:]) // pv draws over its line
	if match := loopLine().FindStringSubmatch(line); match != nil && validName(match[1]) {
		l.start(match[1])
		return true
	}
	if !l.pending {
		return false
	}
	if match := timeLine().FindStringSubmatch(line); match != nil {
		return l.clock(match[1], match[2])
	}
	if match := ddLine().FindStringSubmatch(line); match != nil {
		n, err := strconv.ParseInt(match[1], 10, 64)
		if err != nil || n <= 0 {
			return false
		}
		l.run().bytes = unit.Bytes(n)
		return true
	}
	return l.complaint(line) || pvLine().MatchString(line)
}

// complaint takes ssh's message as the failure of a copy, and reports whether it has done so. After
// the times a message would be about something else.
func (l *loop) complaint(line string) bool {
	outcome, ok := failureOf(line)
	if !ok || l.timed {
		return false
	}
	if !l.failed {
		r := l.run()
		l.failed, r.outcome, r.detail = true, outcome, line
	}
	return true
}

func (l *loop) run() *run { return &l.m.runs[l.at] }

// start begins a run. It counts as failed until a time is read.
func (l *loop) start(cipher string) {
	l.m = l.within("cipher-loop")
	r := l.m.add(cipher)
	r.dd, r.outcome, r.detail = true, record.Broken, "the log holds no time for it"
	l.pending, l.timed, l.failed, l.at = true, false, false, len(l.m.runs)-1
}

// clock takes a line of time -p, which counts hundredths of seconds.
func (l *loop) clock(which, text string) bool {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds > maxSeconds {
		return false
	}
	r := l.run()
	if which != "real" {
		r.client += time.Duration(seconds * 1e9)
		return true
	}
	l.timed = true
	switch {
	case l.failed:
	case seconds == 0:
		r.detail = "the log says that it took no time"
	default:
		r.elapsed = around(seconds, 0.01)
		r.outcome, r.detail = record.OK, ""
	}
	return true
}

// settle judges the copies of the loop by the bytes that dd counted: all copies of a loop have the
// same size, so one without a count, or with less than most, was cut off, and its time is not that
// of a copy.
func (m *machine) settle() {
	counts := map[unit.Bytes]int{}
	counted := 0
	for _, r := range m.runs {
		if r.dd && r.outcome == record.OK && r.bytes > 0 {
			counts[r.bytes]++
			counted++
		}
	}
	usual := unit.Bytes(0) // that more than half have; 0 for none
	for bytes, n := range counts {
		if 2*n > counted {
			usual = bytes
		}
	}
	for i := range m.runs {
		r := &m.runs[i]
		switch {
		case !r.dd || r.outcome != record.OK || counted == 0:
		case r.bytes == 0:
			r.outcome, r.detail = record.Broken, "dd counted no bytes for it"
			m.Remark("a copy of which dd counted no bytes, as it did for others, is taken for broken")
		case r.bytes < usual:
			r.outcome, r.detail = record.Broken, fmt.Sprintf("dd counted %d bytes, for most copies %d", r.bytes, usual)
			m.Remark("a copy of fewer bytes than most is taken for broken")
		case r.bytes != usual:
			m.Remark("the number of bytes of a copy differs from that of others")
		}
	}
}
