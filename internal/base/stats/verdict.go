package stats

import "math"

// Verdict is what the interval of a ratio says. It is the one rule by which all
// commands call two things better, equal or unknown.
type Verdict string

// The verdicts. Ignorance is none of equality: an interval that holds both 1 and
// more than the margin says nothing yet.
const (
	NotEnough Verdict = "not enough data"
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Equal     Verdict = "equal"
)

// Called is the verdict in words: what is better or worse by it has a name.
func (v Verdict) Called(better, worse string) string {
	switch v {
	case Better:
		return better
	case Worse:
		return worse
	}
	return string(v)
}

// Margin is how far from 1 a ratio may be to make no difference to anybody.
const Margin = 0.05

// Verdict judges a ratio of which more than 1 is good (an equivalence test beside
// one of superiority: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
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

// Among judges a ratio that is one of many. That it makes no difference is claimed of
// it alone; that it makes one must hold for all of them together (Estimate.Adjusted).
func (i Interval) Among(together Interval) Verdict {
	if i.Verdict() == Equal {
		return Equal
	}
	if v := together.Verdict(); v != Equal {
		return v
	}
	return NotEnough
}

// Judged is a ratio among others: what all of them together let say of it.
type Judged struct {
	Verdict  Verdict
	Together Interval // by which it is called other than 1; it holds for all of them together
	Least    float64  // the least loss that it could show, as a part
}

// Judge judges ratios that are looked at together, with Holm's correction. Without an error
// nothing is known of one.
func Judge(ratios []Estimate) []Judged {
	ps := make([]float64, len(ratios))
	for i, e := range ratios {
		if ps[i] = 1; e.Err > 0 {
			ps[i] = e.P()
		}
	}
	out := make([]Judged, len(ratios))
	for i, p := range Holm(ps) {
		if e := ratios[i]; e.Err > 0 {
			together := e.Adjusted(p)
			out[i] = Judged{e.Interval().Among(together), together, math.Expm1(e.ArmAt(1 - (1-Confidence)/float64(len(ratios))))}
		} else {
			out[i].Verdict = NotEnough
		}
	}
	return out
}

// Differs reports whether a ratio is shown not to be 1.
func (v Verdict) Differs() bool { return v == Better || v == Worse }

// Gainless reports whether a ratio can be no gain that matters.
func (i Interval) Gainless() bool { return i.Hi <= 1+Margin }

// Chance is the probability that a quantity is above 1, by its estimate alone.
func (e Estimate) Chance() float64 {
	if e.Log < 0 {
		return e.P() / 2
	}
	return 1 - e.P()/2
}
