// Command exhaustive compares the seconds that a ranking rebuilds for a copy
// with those that an exhaustive run measured for it.
//
//	sshpace bench --budget 60s --out model.jsonl
//	sshpace bench --exhaustive --size 64M --rounds 1 --cipher ... --out copies.jsonl
//	go run ./crosscheck/exhaustive model.jsonl copies.jsonl
package main

import (
	"cmp"
	"fmt"
	"log"
	"math"
	"os"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: exhaustive MODEL.jsonl COPIES.jsonl")
	}
	model, copies := load(os.Args[1]), load(os.Args[2])
	size := copies.Campaign.SizeBytes
	predicted := seconds(model, func() (*document.Matrix, error) { return document.MatrixOf(model, model.Bulk[0].Direction, size) })
	measured := seconds(copies, func() (*document.Matrix, error) {
		return &document.Matrix{Rows: rows(copies)}, nil
	})
	compare(predicted, measured)
}

func load(path string) *rank.Ranking {
	f, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	file, err := record.Load(f)
	if err != nil {
		log.Fatal(err)
	}
	r, err := rank.Of(file, rank.Auto)
	if err != nil {
		log.Fatal(err)
	}
	return r
}

func rows(r *rank.Ranking) []document.Combination {
	var list []document.Combination
	for _, c := range r.Copies {
		list = append(list, document.Combination{Suite: c.Suite, Seconds: c.Seconds})
	}
	return list
}

// seconds lists a matrix by what is really negotiated.
func seconds(r *rank.Ranking, matrix func() (*document.Matrix, error)) map[alg.Suite]rank.Quantity {
	m, err := matrix()
	if err != nil {
		log.Fatal(err)
	}
	list := map[alg.Suite]rank.Quantity{}
	for _, row := range m.Rows {
		list[alg.NewSuite(row.Suite.Cipher, row.Suite.MAC, row.Suite.Kex)] = row.Seconds
	}
	return list
}

func compare(predicted, measured map[alg.Suite]rank.Quantity) {
	var suites []alg.Suite
	for suite := range measured {
		if _, ok := predicted[suite]; ok {
			suites = append(suites, suite)
		}
	}
	slices.SortFunc(suites, func(a, b alg.Suite) int { return cmp.Compare(measured[a].Value, measured[b].Value) })
	var errors, x, y []float64
	for _, suite := range suites {
		p, m := predicted[suite], measured[suite]
		errors = append(errors, 100*math.Abs(p.Value/m.Value-1))
		x, y = append(x, p.Value), append(y, m.Value)
		fmt.Printf("%-70s copied %7.3f s   rebuilt %7.3f s  %+6.1f %%\n", suite, m.Value, p.Value, 100*(p.Value/m.Value-1))
	}
	apart, swapped := order(suites, predicted, measured)
	fmt.Printf("%d of %d pairs whose rebuilt intervals do not overlap were copied in the other order\n", swapped, apart)
	fmt.Printf("%d combinations; rebuilt seconds differ by %.1f %% (median); Kendall tau of the order %.3f\n", len(suites), stats.Median(errors), stats.KendallTau(x, y))
}

// order counts the pairs that the ranking tells apart, and those of them that
// the copies saw in the other order.
func order(suites []alg.Suite, predicted, measured map[alg.Suite]rank.Quantity) (apart, swapped int) {
	for i, a := range suites {
		for _, b := range suites[:i] {
			p, q := predicted[a], predicted[b]
			if p.Lo <= q.Hi && q.Lo <= p.Hi {
				continue
			}
			apart++
			if (p.Value < q.Value) != (measured[a].Value < measured[b].Value) {
				swapped++
			}
		}
	}
	return apart, swapped
}
