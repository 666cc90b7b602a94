package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// inOrderByDefinition looks at every pair across every cut.
func inOrderByDefinition(xs []Estimate, n int) []bool {
	holds := make([]bool, n)
	for cut := range holds {
		holds[cut] = true
		for i := range xs[:min(cut, len(xs))] {
			for k := cut; k < len(xs); k++ {
				holds[cut] = holds[cut] && !exceeds(xs[i], xs[k])
			}
		}
	}
	return holds
}

func randomEstimates(r *rand.Rand, n int) []Estimate {
	xs := make([]Estimate, n)
	for i := range xs {
		xs[i] = Estimate{Log: float64(i)*r.Float64() + 3*r.NormFloat64(), Err: r.ExpFloat64()}
	}
	return xs
}

func TestInOrderIsWhatItsDefinitionSays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2026))
	for range 2000 {
		n := r.IntN(14)
		xs := randomEstimates(r, n)
		if r.IntN(4) == 0 {
			xs = nil
		}
		if got, want := inOrder(xs, n, exceeds), inOrderByDefinition(xs, n); !slices.Equal(got, want) {
			t.Fatalf("%v: cuts %v, want %v", xs, got, want)
		}
	}
}

// A report of thousands of cells must not take minutes: no pair is compared twice.
func TestInOrderComparesEachPairOnce(t *testing.T) {
	const n = 400
	for name, xs := range map[string][]Estimate{"random": randomEstimates(rand.New(rand.NewPCG(5, 2026)), n), "equal": make([]Estimate, n)} {
		compared := 0
		inOrder(xs, n, func(a, b Estimate) bool {
			compared++
			return exceeds(a, b)
		})
		if compared > n*(n-1)/2 {
			t.Errorf("%s: %d comparisons of %d estimates", name, compared, n)
		}
	}
}
