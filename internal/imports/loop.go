package imports

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/unit"
)

// loop reads the output of the cipher loop of 2015: for each cipher some tries
// of `dd | pv | time -p ssh`, of which `time` prints real, user and sys, and dd
// what it wrote. The MAC and the key exchange were those of the configuration,
// which the log does not hold.
type loop struct {
	*document
	pending bool
	at      int // index of the run that the lines belong to, in machine m
	m       *machine
}

// unstated stands for an algorithm that a log does not name.
const unstated = "default"

const unstatedRemark = `the log does not say which MAC and key exchange were negotiated: they are called "default"`

var (
	loopLine = regexp.MustCompile(`^Cipher: (\S+) \(try ([0-9]+)\)$`)
	timeLine = regexp.MustCompile(`^(real|user|sys) ([0-9]+\.[0-9]+)$`)
	ddLine   = regexp.MustCompile(`^([0-9]+) bytes .*copied, ([0-9.e+-]+) s(?:econds)?, (?:[0-9.]+ ?[kKMGT]?B/s|Infinity B/s)$`)
	pvLine   = regexp.MustCompile(`[0-9.,]+ ?[kKMGT]?i?B .*\[[ ,.<=>0-9kKMGTiB/s]*\]`)
)

func (l *loop) take(line string) bool {
	line = strings.TrimSpace(line)
	if match := loopLine.FindStringSubmatch(line); match != nil && validName(match[1]) {
		l.start(match[1])
		return true
	}
	if !l.pending {
		return false
	}
	if match := timeLine.FindStringSubmatch(line); match != nil {
		return l.clock(match[1], match[2])
	}
	if match := ddLine.FindStringSubmatch(line); match != nil {
		n, err := strconv.ParseInt(match[1], 10, 64)
		if err != nil || n <= 0 {
			return false
		}
		l.run().bytes = unit.Bytes(n)
		return true
	}
	return pvLine.MatchString(line)
}

func (l *loop) run() *run { return &l.m.runs[l.at] }

// start begins a run. It counts as failed until a time is read.
func (l *loop) start(cipher string) {
	l.m = l.within("cipher-loop")
	mac := unstated
	if alg.IsAEAD(cipher) {
		mac = ""
	}
	if len(l.m.runs) == 0 {
		l.m.remark(unstatedRemark)
	}
	l.m.runs = append(l.m.runs, run{
		suite: alg.Suite{Cipher: cipher, MAC: mac, Kex: unstated}, workload: bench.Copy,
		outcome: bench.Broken, detail: "the log holds no time for it",
	})
	l.pending, l.at = true, len(l.m.runs)-1
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
	if seconds > 0 {
		r.elapsed = around(seconds, 0.01)
		r.outcome, r.detail = bench.OK, ""
	}
	return true
}
