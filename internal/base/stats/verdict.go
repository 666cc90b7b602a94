package stats

import "math"

// Verdict is the meaning of a ratio's interval. It is the one rule by which all commands call two
// things better, equal or unknown.
type Verdict string

// The verdicts. Ignorance is not equality: an interval that holds both 1 and more than the margin
// means not enough data.
const (
	NotEnough Verdict = "not enough data"
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Equal     Verdict = "equal"
)

// Called returns the verdict in words, with names for better and worse.
func (v Verdict) Called(better, worse string) string {
	switch v {
	case Better:
		return better
	case Worse:
		return worse
	}
	return string(v)
}

// Margin is the largest difference of a ratio from 1 that makes no difference to anybody.
const Margin = 0.05

// MarginWords is Margin for people.
const MarginWords = "5 %"

// Verdict judges a ratio of which more than 1 is good (an equivalence test together with one of
// superiority: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
func (i Interval) Verdict() Verdict {
	switch {
	case i.Lo <= 0:
		return NotEnough
	case 1/(1+Margin) <= i.Lo && i.Hi <= 1+Margin:
		return Equal
	case i.Lo > 1:
		return Better
	case i.Hi < 1:
		return Worse
	}
	return NotEnough
}

// Among judges one ratio of many. Its own interval must show equality; a difference must be shown
// by together, which holds for all of them (Estimate.Adjusted).
func (i Interval) Among(together Interval) Verdict {
	if i.Verdict() == Equal {
		return Equal
	}
	if v := together.Verdict(); v != Equal {
		return v
	}
	return NotEnough
}

// Judged is the verdict on a ratio among others.
type Judged struct {
	Verdict  Verdict
	Together Interval // interval that a difference must be shown by; it holds for all of them together
	Least    float64  // the least loss that it could show, as a share
	P        float64  // with Holm's correction
	ByRest   bool     // the verdict rests on the ratio to the rest
}

// Judge judges ratios together, with Holm's correction. A ratio without an error is not judged.
func Judge(ratios []Estimate) []Judged { return JudgeBeside(ratios, make([]Estimate, len(ratios))) }

// JudgeBeside is Judge with the ratio of each to the rest of them, if known: that ratio is free of
// whatever all have in common.
func JudgeBeside(ratios, rests []Estimate) []Judged {
	ps, byRest := make([]float64, len(ratios)), make([]bool, len(ratios))
	for i, e := range ratios {
		ps[i], byRest[i] = e.beside(rests[i])
	}
	out := make([]Judged, len(ratios))
	for i, p := range Holm(ps) {
		e, decides, tests := ratios[i], ratios[i], len(ratios)
		if byRest[i] {
			decides = rests[i]
		}
		if rests[i].Known() {
			tests *= 2
		}
		out[i] = Judged{Verdict: NotEnough, P: p}
		if e.Err > 0 {
			together := decides.Adjusted(p)
			out[i].Verdict, out[i].Together = e.Interval().Among(together), together
			out[i].Least = math.Expm1(e.ArmAt(1 - (1-Confidence)/float64(tests)))
		}
		out[i].ByRest = byRest[i] && out[i].Verdict.Differs()
	}
	return out
}

// beside returns the unadjusted p value of a ratio, and whether it comes from the ratio to the
// rest. A ratio that differs from the rest, in the same direction, differs at any level; of two
// tests the better one counts twice (Bonferroni).
func (e Estimate) beside(rest Estimate) (p float64, byRest bool) {
	if p = e.pValue(); !rest.Known() {
		return p, false
	}
	other := 1.0
	if (rest.Log > 0) == (e.Log > 0) {
		other = rest.pValue()
	}
	return math.Min(1, 2*math.Min(p, other)), other < p
}

// pValue is P; 1 for a ratio without an error.
func (e Estimate) pValue() float64 {
	if e.Err == 0 {
		return 1
	}
	return e.P()
}

// Differs reports whether a ratio is shown not to be 1.
func (v Verdict) Differs() bool { return v == Better || v == Worse }

// Gainless reports whether a ratio excludes a gain that matters.
func (i Interval) Gainless() bool { return i.Hi <= 1+Margin }

// Chance is the probability that a quantity is above 1, by its estimate alone.
func (e Estimate) Chance() float64 {
	if e.Log < 0 {
		return e.P() / 2
	}
	return 1 - e.P()/2
}
