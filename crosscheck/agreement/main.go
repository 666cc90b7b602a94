// Command agreement says how well runs of one machine agree with each other:
// what a ranking promises, and what the next one then shows.
//
//	sshpace bench --budget 60s --out 1.jsonl # several times
//	go run ./crosscheck/agreement 1.jsonl 2.jsonl ...
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

func main() {
	log.SetFlags(0)
	flag.Usage = func() { log.Fatal("usage: agreement RESULT.jsonl RESULT.jsonl...") }
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
	}
	var files []*record.File
	for _, path := range flag.Args() {
		f, err := load(path)
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		files = append(files, f)
	}
	for _, q := range quantities {
		var runs []run
		for i, f := range files {
			r, err := rank.Of(f, q.by)
			if err != nil {
				log.Fatalf("%s: %v", flag.Arg(i), err)
			}
			runs = append(runs, runOf(filepath.Base(flag.Arg(i)), r, q))
		}
		show(q, runs)
	}
}

func load(path string) (*record.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return record.Load(f)
}

func show(q quantity, runs []run) {
	fmt.Printf("%s\n%-16s %17s %12s %9s\n", q.name, "run", "hold-out med/p95", "noise floor", "slowed")
	for _, r := range runs {
		fmt.Printf("%-16s %6.2f / %5.2f %%  %9.2f %% %8.1f %%\n", r.name, r.holdout[0], r.holdout[1], r.floor, r.slowed)
	}
	var all summary
	for i := range runs {
		for k := range i {
			all.add(compare(runs[k], runs[i]))
		}
	}
	if len(runs) > 1 {
		all.show()
	}
}

// summary collects what pairs of runs show.
type summary struct {
	shift, measured, median, p95, tau, covered, wider []float64
	opposite                                          int
}

func (s *summary) add(p pair) {
	s.shift = append(s.shift, math.Abs(p.shift))
	s.measured = append(s.measured, math.Abs(p.measured))
	s.median = append(s.median, p.median)
	s.p95 = append(s.p95, p.p95)
	s.tau = append(s.tau, p.tau)
	s.covered, s.wider = append(s.covered, p.covered), append(s.wider, p.wider)
	s.opposite += p.opposite
}

func (s *summary) show() {
	line := func(name, unit string, values []float64) {
		fmt.Printf("  %-46s %7.3f %7.3f %7.3f %7.3f%s\n", name, stats.Quantile(values, 0), stats.Median(values), stats.Mean(values), stats.Quantile(values, 1), unit)
	}
	fmt.Printf("%d pairs of runs                                   least  median    mean    most\n", len(s.tau))
	line("difference of a cell after shift, median", " %", s.median)
	line("difference of a cell after shift, p95", " %", s.p95)
	line("common shift", " %", s.shift)
	line("the same with what other guests changed", " %", s.measured)
	line("Kendall tau", "", s.tau)
	line("95 % intervals that hold the other run's value", " %", s.covered)
	line("the same of the run whose are wider", " %", s.wider)
	fmt.Printf("  %-46s %d\n\n", "pairs of cells with opposite letters", s.opposite)
}
