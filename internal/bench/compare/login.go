package compare

import (
	"slices"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
)

// LoginKind is the cost of a kind of login in a file.
type LoginKind struct {
	Factor, Level string
	Client        stats.Interval  // CPU time
	Server        *stats.Interval // of the server; nil: unknown
	Wall          stats.Interval
}

// CPU returns the CPU time of both sides together, or of the client alone.
func (k LoginKind) CPU(clientAlone bool) stats.Interval {
	if clientAlone {
		return k.Client
	}
	return k.Client.Plus(*k.Server)
}

// ClientAlone reports whether logins can be compared by the client's CPU time alone, because the
// server's is not known for all of them.
func ClientAlone(kinds []LoginKind) bool {
	return slices.ContainsFunc(kinds, func(k LoginKind) bool { return k.Server == nil })
}

// LoginComparison relates the kinds of logins of several files to those of the first.
type LoginComparison struct {
	Files []string      `json:"files"` // the others are compared with the first
	Kinds []LoginChange `json:"kinds"` // that all files have
	Only  []OnlyLogin   `json:"not_compared,omitempty"`
}

// LoginChange is the change of one kind of login in each file but the first.
type LoginChange struct {
	Factor string           `json:"factor,omitempty"`
	Level  string           `json:"level"`
	CPU    []stats.Interval `json:"cpu_ratio"` // of both sides together
	// ClientAlone: it is the client's, because the server's is not known in all files.
	ClientAlone bool             `json:"cpu_of_client_alone,omitempty"`
	Wall        []stats.Interval `json:"wall_ratio"`
	Verdicts    []string         `json:"verdicts"` // on CPU: more, less, equal or not enough data
}

// OnlyLogin is a kind of login without figures in some files.
type OnlyLogin struct {
	Factor string   `json:"factor,omitempty"`
	Level  string   `json:"level"`
	Files  []string `json:"in_files"` // that have it
}

// Logins relates the results of files to those of the first.
func Logins(files []string, results [][]LoginKind) *LoginComparison {
	c := &LoginComparison{Files: files}
	var lines [][]Ratio
	for _, base := range results[0] {
		change, same := LoginChange{Factor: base.Factor, Level: base.Level}, []LoginKind{base}
		for _, own := range results[1:] {
			if other, ok := likewise(own, base); ok {
				same = append(same, other)
			}
		}
		if base.Wall.N == 0 || len(same) < len(files) {
			continue
		}
		change.ClientAlone = ClientAlone(same)
		var ratios []Ratio
		for _, other := range same[1:] {
			ratios = append(ratios, Ratio{Speed: betweenLogins(other.CPU(change.ClientAlone), base.CPU(change.ClientAlone))})
			change.Wall = append(change.Wall, betweenLogins(other.Wall, base.Wall).Interval())
		}
		c.Kinds, lines = append(c.Kinds, change), append(lines, ratios)
	}
	for k := range files[1:] {
		judge(ofFile(lines, k))
	}
	for i := range c.Kinds {
		for _, r := range lines[i] {
			c.Kinds[i].CPU = append(c.Kinds[i].CPU, r.Speed.Interval())
			c.Kinds[i].Verdicts = append(c.Kinds[i].Verdicts, r.Verdict.Called("more", "less"))
		}
	}
	c.only(results)
	return c
}

// betweenLogins returns a relative to b, with the doubt about the level of both runs.
func betweenLogins(a, b stats.Interval) stats.Estimate {
	return betweenRuns(a.Estimate().Over(b.Estimate()), rank.SplitLoginLevel)
}

// LoginFloor is the smallest change, as a share, that any number of logins could show.
func LoginFloor() float64 { return floor(rank.SplitLoginLevel) }

// likewise returns the result of the same kind of login; false if there is none.
func likewise(results []LoginKind, kind LoginKind) (LoginKind, bool) {
	for _, other := range results {
		if other.Factor == kind.Factor && other.Level == kind.Level && other.Wall.N > 0 {
			return other, true
		}
	}
	return LoginKind{}, false
}

// only lists the kinds of login that some of the files lack.
func (c *LoginComparison) only(results [][]LoginKind) {
	for i, own := range results {
		for _, kind := range own {
			o := OnlyLogin{Factor: kind.Factor, Level: kind.Level}
			first := i
			for k, others := range results {
				if _, ok := likewise(others, kind); ok {
					o.Files, first = append(o.Files, c.Files[k]), min(first, k)
				}
			}
			if first == i && len(o.Files) > 0 && len(o.Files) < len(c.Files) {
				c.Only = append(c.Only, o)
			}
		}
	}
}
