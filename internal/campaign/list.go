//go:build linux

package campaign

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// planSchema names the layout that bench --list --json writes.
const planSchema = "sshpace.plan/1"

// planDocument is the plan of a run, for programs.
type planDocument struct {
	Schema       string           `json:"schema"`
	Target       string           `json:"target"`
	Client       string           `json:"client"`
	Server       string           `json:"server"`
	Combinations alg.Combinations `json:"combinations"`
	EstimatedNS  time.Duration    `json:"estimated_ns"`
	Bulk         []alg.Suite      `json:"bulk"`
	Kex          []plannedKex     `json:"kex"`
	Notes        []record.Finding `json:"notes"`
}

// plannedKex is a key exchange and the other names of its computation.
type plannedKex struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
}

// document collects the output of List.
func (j *Run) document() planDocument {
	space := alg.Fold(j.Campaign.Offer)
	d := planDocument{
		Schema: planSchema, Target: j.bed.Target, Client: j.bed.Environment.Client, Server: j.bed.Environment.Server,
		Combinations: space.Combinations(), EstimatedNS: j.plan.Estimate(), Bulk: space.Bulk,
		Notes: append(append([]record.Finding{}, j.bed.Findings...), j.bed.OneSided()...),
	}
	for _, name := range space.Kex {
		d.Kex = append(d.Kex, plannedKex{name, space.Alias[name]})
	}
	return d
}

// List prints the plan of the run.
func (j *Run) List() error {
	d, w := j.document(), j.Stdout
	if j.JSON {
		return termsafe.WriteJSON(w, d, "  ")
	}
	c := d.Combinations
	t := text.Table{Columns: make([]text.Column, 2), Rows: [][]string{
		{"target", fmt.Sprintf("%s (%s to %s)", d.Target, d.Client, d.Server)}, {"combinations", fmt.Sprint(c.Total)}, {"bulk cells", fmt.Sprint(c.Bulk)},
		{"key exchanges", fmt.Sprint(c.Kex)}, {"estimated time", wholeSeconds(d.EstimatedNS).String()},
	}}
	fmt.Fprintln(w, t.Text(0))
	for _, cell := range d.Bulk {
		fmt.Fprintf(w, "bulk  %s\n", cell)
	}
	for _, kex := range d.Kex {
		fmt.Fprintf(w, "kex   %s", kex.Name)
		for _, alias := range kex.Aliases {
			fmt.Fprintf(w, " = %s", alias)
		}
		fmt.Fprintln(w)
	}
	for _, finding := range d.Notes {
		fmt.Fprintf(w, "note  %s: %s\n", finding.What, finding.Why)
	}
	return nil
}

// Item is a line of a plan.
type Item struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
}

// List prints a plan.
func List(o Output, items []Item) error {
	if o.JSON {
		return termsafe.WriteJSON(o.Stdout, struct {
			Schema string `json:"schema"`
			Items  []Item `json:"items"`
		}{"sshpace.list/1", items}, "  ")
	}
	t := text.Table{Columns: make([]text.Column, 2)}
	for _, i := range items {
		t.Rows = append(t.Rows, text.NonEmpty(termsafe.OneLine(i.Name), termsafe.OneLine(i.About)))
	}
	_, err := io.WriteString(o.Stdout, t.Text(0))
	return err
}

// listed prints the methods and kinds of login that measure records before it measures anything,
// and the approximate time of the methods for the rounds.
func listed(o Output, rounds sched.Rounds, measure func(record.Sink) error) error {
	f := &record.File{}
	if err := measure(f.Sink()); err != nil {
		return err
	}
	for _, finding := range f.Findings {
		fmt.Fprintf(o.Stderr, "%s: %s\n", finding.What, termsafe.OneLine(finding.Why))
	}
	var items []Item
	for _, m := range f.Methods() {
		items = append(items, Item{Name: document.MethodLabel(*m.Method)})
	}
	if n := len(items); n > 0 && rounds.Budget == 0 {
		fmt.Fprintf(o.Stderr, "%s in %s: about %s\n", unit.Count(n, "method"), unit.Count(rounds.Count, "round"), sched.Roughly(transfer.Takes(n, rounds.Count)))
	}
	for _, k := range f.Logins() {
		items = append(items, Item{Name: strings.TrimSpace(k.Factor + " " + k.Level)})
	}
	return List(o, items)
}

// wholeSeconds rounds up: everything takes some time.
func wholeSeconds(d time.Duration) time.Duration {
	if rest := d % time.Second; rest > 0 && d < 1<<62 {
		return d - rest + time.Second
	}
	return d.Truncate(time.Second)
}
