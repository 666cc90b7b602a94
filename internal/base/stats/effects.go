package stats

import "math"

// RandomEffects shrinks the means of groups, whose variances are known, towards what all groups
// have in common, as far as chance explains what they differ by: an empirical Bayes estimate
// (Efron and Morris, JASA 70, 1975), the variance between groups by the moments of DerSimonian and
// Laird (Controlled Clinical Trials 7, 1986). errs are standard errors. A group of infinite
// variance, of which nothing is known, has what all have in common.
func RandomEffects(means, variances []float64) (effects, errs []float64) {
	common, _ := weighted(means, variances, 0)
	q, sum, squares, known := 0.0, 0.0, 0.0, -1.0
	for k, v := range variances {
		if !math.IsInf(v, 1) {
			off := means[k] - common
			q, sum, squares, known = q+off*off/v, sum+1/v, squares+1/(v*v), known+1
		}
	}
	between := 0.0
	if known > 0 {
		between = math.Max(0, (q-known)/(sum-squares/sum))
	}
	common, variance := weighted(means, variances, between)
	effects, errs = make([]float64, len(means)), make([]float64, len(means))
	for k, v := range variances {
		own := 0.0 // share of the group's own mean
		if !math.IsInf(v, 1) {
			own = between / (between + v)
		}
		effects[k] = common + own*(means[k]-common)
		errs[k] = math.Sqrt((1-own)*between + (1-own)*(1-own)*variance)
	}
	return effects, errs
}

// weighted is the mean of groups that differ by chance and by a variance between them, and its
// own variance; both are 0 where nothing is known of any.
func weighted(means, variances []float64, between float64) (mean, variance float64) {
	sum := 0.0
	for k, v := range variances {
		if !math.IsInf(v, 1) {
			mean, sum = mean+means[k]/(v+between), sum+1/(v+between)
		}
	}
	if sum == 0 {
		return 0, 0
	}
	return mean / sum, 1 / sum
}
