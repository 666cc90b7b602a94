package legacy

import (
	"strconv"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// performance reads the logs of ssh-performance.sh, one combination a line.
// The script of 2014 times one copy with a clock of whole seconds:
//
//	cipher: C mac: M kex: K - N seconds
//
// The script of 2016 to 2020 divides the time of some copies by their number
// and cuts the fraction off:
//
//	I/COMBINATIONS cipher: C mac: M kex: K - N seconds avg.
//	I/COMBINATIONS cipher: C mac: M kex: K - n/a (REASON)
type performance struct {
	*document
	summary bool // in the script's own report, which repeats lines of the log
	had     map[string]bool
}

const maxSeconds = 1e7 // of a copy: more is not a time

func (p *performance) Take(line string) bool {
	line = strings.TrimSpace(strip(line))
	if strings.HasPrefix(line, "### ") && len(p.machines) == 0 || p.summary && strings.HasPrefix(line, "### ") {
		p.summary = strings.HasPrefix(line, "### Top-") || strings.HasPrefix(line, "### Fastest") || strings.HasPrefix(line, "### Cipher: ") ||
			strings.HasPrefix(line, "### MAC: ") || strings.HasPrefix(line, "### Kex: ")
		return p.summary
	}
	suite, result, ok := combination(line)
	if !ok {
		return false
	}
	r, ok := p.outcome(result)
	if !ok {
		return false
	}
	m := p.within("ssh-performance")
	if p.had[line] && (p.summary || line[0] != 'c') {
		m.Remark("a combination that the log repeats was taken once")
		return true
	}
	if p.had == nil {
		p.had = map[string]bool{}
	}
	p.had[line] = true
	if missing := missingName(suite); missing != "" {
		m.Remark("a line without the name of its " + missing + " was left out: pages that hide mail addresses swallow names with an @")
		return true
	}
	r.suite = suite
	m.runs = append(m.runs, r)
	return true
}

// strip removes the traces of the script's running counter in a log: "1\b2\b".
func strip(line string) string {
	for {
		i := strings.IndexByte(line, '\b')
		if i < 0 {
			return line
		}
		line = line[:max(0, i-1)] + line[i+1:]
	}
}

func combination(line string) (s alg.Suite, result string, ok bool) {
	counter, rest, ok := strings.Cut(line, "cipher:")
	if !ok || strings.Trim(counter, "0123456789/ ") != "" {
		return s, "", false
	}
	cipher, rest, ok1 := strings.Cut(rest, "mac:")
	mac, rest, ok2 := strings.Cut(rest, "kex:")
	at := strings.LastIndex(rest, "- ")
	if !ok1 || !ok2 || at < 0 {
		return s, "", false
	}
	if i := strings.Index(rest, "- n/a ("); i >= 0 { // the reason may hold a dash
		at = i
	}
	s = alg.Suite{Cipher: strings.TrimSpace(cipher), MAC: strings.TrimSpace(mac), Kex: strings.TrimSpace(rest[:at])}
	for _, name := range []string{s.Cipher, s.MAC, s.Kex} {
		if name != "" && !validName(name) {
			return s, "", false
		}
	}
	return s, strings.TrimSpace(rest[at+1:]), true
}

// missingName returns the kind of algorithm that a line does not name although it decides the
// result; "" if all are there.
func missingName(s alg.Suite) string {
	switch {
	case s.Cipher == "":
		return "cipher"
	case s.MAC == "" && !alg.IsAEAD(s.Cipher):
		return "MAC"
	case s.Kex == "":
		return "key exchange"
	}
	return ""
}

// outcome parses the text after the names.
func (p *performance) outcome(text string) (run, bool) {
	if reason, ok := strings.CutPrefix(text, "n/a"); ok {
		reason = strings.Trim(reason, " ()")
		r := run{outcome: record.Broken, detail: "n/a: " + reason}
		if outcome, ok := failureOf(reason); ok {
			r.outcome = outcome
		}
		return r, true
	}
	number, averaged := strings.CutSuffix(text, " seconds avg.")
	if !averaged {
		var ok bool
		if number, ok = strings.CutSuffix(text, " seconds"); !ok {
			return run{}, false
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
	if err != nil || n > maxSeconds {
		return run{}, false
	}
	return run{outcome: record.OK, elapsed: p.clock(float64(n), averaged)}, true
}

// clock returns the possible times of a count of seconds. The difference of two readings in whole
// seconds is off by less than one second either way; the average of R runs by less than 1/R,
// rounded down by up to one second.
func (p *performance) clock(n float64, averaged bool) bounds {
	if !averaged {
		return between(n-1, n+1)
	}
	runs := float64(max(1, p.options.Runs))
	return between(n-1/runs, n+1+1/runs)
}
