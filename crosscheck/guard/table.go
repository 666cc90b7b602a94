//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"sshpace/internal/base/stats"
)

// reading is a figure of one turn of one side. Less is better.
type reading struct {
	figure string
	unit   string
	value  float64
	exact  bool // counted, not measured
}

// row is a figure with what the turns of both sides have shown.
type row struct {
	subject, figure, unit string
	exact                 bool
	values                [2][]float64
}

// table collects rows in the order of its subjects.
type table struct {
	subjects []subject
	rows     []*row
	failures []failure
}

// failure is a subject that a side could not do.
type failure struct {
	subject string
	side    int
	err     error
}

// turn measures a subject on both sides, in the order that is given.
func (t *table) turn(ctx context.Context, s subject, sides [2]side, order []int) {
	var readings [2][]reading
	for _, i := range order {
		var err error
		if readings[i], err = s.measure(ctx, sides[i]); err != nil && ctx.Err() == nil {
			t.failures = append(t.failures, failure{s.name, i, err})
			return
		}
	}
	for _, before := range readings[0] {
		for _, now := range readings[1] {
			if now.figure == before.figure {
				t.add(s.name, before, now)
			}
		}
	}
}

// hasFailed reports whether a subject could not be measured.
func (t *table) hasFailed(s subject) bool {
	return slices.ContainsFunc(t.failures, func(f failure) bool { return f.subject == s.name })
}

// add takes a figure that both sides have.
func (t *table) add(subject string, before, now reading) {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.subject == subject && r.figure == before.figure })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &row{subject: subject, figure: before.figure, unit: before.unit, exact: before.exact})
	}
	r := t.rows[i]
	r.values[0], r.values[1] = append(r.values[0], before.value), append(r.values[1], now.value)
}

// ratio is before/now of all turns: more than 1 is better. Nothing is known of figures that were 0.
func (r *row) ratio() stats.Estimate {
	logs := make([]float64, len(r.values[0]))
	for i, before := range r.values[0] {
		if before <= 0 || r.values[1][i] <= 0 {
			return stats.Estimate{}
		}
		logs[i] = math.Log(before / r.values[1][i])
	}
	n := float64(len(logs))
	e := stats.Estimate{Log: stats.Mean(logs), N: len(logs)}
	if !r.exact && n > 1 {
		e.Err, e.DF = math.Sqrt(stats.Variance(logs)/n), n-1
	}
	return e
}

// counted judges figures that are known exactly. From 0, or to 0, each one counts.
func (r *row) counted() stats.Verdict {
	if e := r.ratio(); e.Known() {
		return e.Interval().Verdict()
	}
	before, now := stats.Mean(r.values[0]), stats.Mean(r.values[1])
	switch {
	case now < before:
		return stats.Better
	case now > before:
		return stats.Worse
	}
	return stats.Equal
}

// verdicts judges all rows together.
func (t *table) verdicts() []stats.Verdict {
	ratios := make([]stats.Estimate, len(t.rows))
	for i, r := range t.rows {
		if !r.exact {
			ratios[i] = r.ratio()
		}
	}
	verdicts := make([]stats.Verdict, len(t.rows))
	for i, judged := range stats.Judge(ratios) {
		verdicts[i] = judged.Verdict
		if t.rows[i].exact {
			verdicts[i] = t.rows[i].counted()
		}
	}
	return verdicts
}

// place of a row's subject.
func (t *table) place(r *row) int {
	return slices.IndexFunc(t.subjects, func(s subject) bool { return s.name == r.subject })
}

// print writes the table, and returns errWorse if a figure is worse or can be measured no longer.
func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "subject\tfigure\tbefore\tnow\tunit\tbefore/now\tverdict")
	worse := false
	slices.SortStableFunc(t.rows, func(a, b *row) int { return t.place(a) - t.place(b) })
	for i, verdict := range t.verdicts() {
		r, ratio := t.rows[i], ""
		if e := t.rows[i].ratio(); e.Known() {
			ratio = e.Interval().Times()
		}
		worse = worse || verdict == stats.Worse
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.subject, r.figure, figure(stats.Median(r.values[0])), figure(stats.Median(r.values[1])), r.unit, ratio, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range t.failures {
		fmt.Fprintf(out, "not measured: %s, %s: %v\n", f.subject, []string{"before", "now"}[f.side], f.err)
		worse = worse || f.side == 1
	}
	if worse {
		return errWorse
	}
	return nil
}

// figure has four digits.
func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
