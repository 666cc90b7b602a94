package stats

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

// Chance is the probability that a quantity is above 1, by its estimate alone.
func (e Estimate) Chance() float64 {
	if e.Log < 0 {
		return e.P() / 2
	}
	return 1 - e.P()/2
}
