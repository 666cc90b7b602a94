package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Table is a table with the same kind of cell in each column, and text around it.
type Table struct {
	Name    string // stable, for --only: "ranking", "kex", "cells", ...
	Part    string // of several tables of one Name, which: the direction
	Title   string
	Note    string // explanation of the columns; may be ""
	Columns []Column
	Rows    []Row
	Picked  bool // the user chose the columns

	// On a terminal, where a table without columns is text alone:
	Lines []string // below the rows
	Spare int      // rows that may go where all is too long
}

// called maps names of tables to short ones.
var called = map[string]string{
	"ranking": "ciphers and MACs", "kex": "key exchange", "copies": "copies", "failed": "failed", "controls": "controls",
	"overall": "overall", "ciphers": "ciphers", "macs": "MACs", "cells": "cells", "machines": "machines",
	"ceilings": "ceilings", "measurements": "measurements", "figures": "figures",
}

// Called returns a short name of the table; "" for none.
func (t Table) Called() string { return called[t.Name] }

// Telling returns the useful columns of the table: of the minor ones only those in which rows
// differ.
func (t Table) Telling() (columns []int) {
	for i, c := range t.Columns {
		alike := func(r Row) bool { return c.Shown(r.Cells[i]) == c.Shown(t.Rows[0].Cells[i]) }
		if !c.Minor || slices.ContainsFunc(t.Rows, func(r Row) bool { return !alike(r) }) {
			columns = append(columns, i)
		}
	}
	return columns
}

// Slim returns the columns that fit a column of a paper: those that identify rows, and the figures
// with intervals, or else the first ones. It returns all of them if the user chose them.
func (t Table) Slim() (columns []int) {
	figures := func(bare bool) (found []int) {
		for i, c := range t.Columns {
			if c.Kind == Quantity && c.Bare == bare && !c.Minor {
				found = append(found, i)
			}
		}
		return found
	}
	shown := figures(false)
	if len(shown) == 0 {
		shown = figures(true)
		shown = shown[:min(1, len(shown))]
	}
	for i, c := range t.Columns {
		brief := func(r Row) string { value, _ := c.Brief(r.Cells[i]); return value }
		differs := slices.ContainsFunc(t.Rows, func(r Row) bool { return brief(r) != brief(t.Rows[0]) })
		if t.Picked || slices.Contains(shown, i) || c.Kind != Quantity && !c.Minor && c.Key != "rank" && c.Key != "group" && (differs || len(t.Rows) == 1) {
			columns = append(columns, i)
		}
	}
	return columns
}

// Pick returns the document with some columns of its tables, by their keys, the beginnings of
// these, or their heads.
func (d *Document) Pick(columns []string) (*Document, error) {
	if len(columns) == 0 {
		return d, nil
	}
	out, have := *d, []string(nil)
	out.Tables = nil
	missing := slices.Clone(columns)
	for _, t := range d.Tables {
		var chosen []int
		for _, name := range columns {
			i := slices.IndexFunc(t.Columns, func(c Column) bool {
				return c.Key == name || strings.HasPrefix(c.Key, name+"_") || strings.EqualFold(c.Head, name)
			})
			if i >= 0 {
				chosen = append(chosen, i)
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
			}
		}
		for _, c := range t.Columns {
			have = appendNew(have, c.Key)
		}
		out.Tables = append(out.Tables, t.only(chosen))
	}
	if len(missing) > 0 {
		return nil, NoSuch("column", missing[0], have)
	}
	return &out, nil
}

// only returns the table with some of its columns.
func (t Table) only(chosen []int) Table {
	columns, rows := t.Columns, t.Rows
	t.Columns, t.Rows, t.Picked = nil, nil, true
	for _, i := range chosen {
		c := columns[i]
		c.Minor = false
		t.Columns = append(t.Columns, c)
	}
	for _, r := range rows {
		cells := r.Cells
		r.Cells = nil
		for _, i := range chosen {
			r.Cells = append(r.Cells, cells[i])
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func rankingTables(r *rank.Ranking, c *compare.Ceilings) []Table {
	var out []Table
	for _, d := range r.Directions() {
		out = append(out, bulkTable(r, d))
	}
	for _, t := range []Table{kexTable(r), copyTable(r), failedTable(r), controlTable(r)} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	if c != nil {
		out = append(out, ceilingTable(c))
	}
	if len(r.Measurements) > 0 {
		out = append(out, measurementTable(r.Measurements))
	}
	return out
}

func title(s string) string {
	if s == "" {
		return "Transfer"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

var bulkColumns = []Column{
	{Key: "rank", Head: "rank", Terse: "#", Kind: Count},
	{Key: "group", Head: "group", Terse: " "},
	{Key: "cipher", Head: "cipher", Kind: Name, Of: alg.Cipher, Fit: text.Cut},
	{Key: "mac", Head: "MAC", Kind: Name, Of: alg.MAC, Fit: text.Cut},
	{Key: "direction", Head: "direction", Minor: true},
	{Key: "throughput_bytes_per_s", Head: "throughput", Terse: "MB/s", Unit: "MB/s", Scale: 1e6, Kind: Quantity},
	{Key: "client_ns_per_byte", Head: "client CPU", Terse: "client|s/GB", Unit: "s/GB", Scale: 1, Kind: Quantity},
	{Key: "server_ns_per_byte", Head: "server CPU", Terse: "server|s/GB", Unit: "s/GB", Scale: 1, Kind: Quantity},
	{Key: "basis", Head: "basis", Terse: " ", Usual: []string{string(rank.Measured)}},
	{Key: "same_as", Head: "same figures as", Minor: true},
	{Key: "status", Head: "status", Terse: " ", Usual: usualStatus},
}

var usualStatus = []string{string(alg.Strong), string(alg.Acceptable)}

func bulkTable(r *rank.Ranking, d record.Direction) Table {
	t := Table{
		Name: "ranking", Part: clean(string(d)), Title: title(string(d)) + ": ciphers and MACs by " + bulkOrder(r), Columns: slices.Clone(bulkColumns),
		Note: "Rows with the same group letter do not differ significantly. A cipher without a MAC carries its own authentication tag. Rows of one computation, such as hmac-sha1 and hmac-sha1-96, share their figures.",
	}
	twins := Twins(r)
	decides := map[bool]string{true: "client CPU", false: "throughput"}[r.By == rank.Cost] // it alone has an interval
	for i, c := range t.Columns {
		t.Columns[i].Bare = c.Head != decides
	}
	for _, c := range r.In(d) {
		t.Rows = append(t.Rows, Row{Suite: safe(c.Suite), Cells: []Cell{
			{Text: fmt.Sprint(c.Rank)}, {Text: c.Group}, {Text: clean(c.Suite.Cipher)}, {Text: clean(c.Suite.MAC)}, {Text: clean(string(d))},
			{Quantity: c.Throughput.Shown}, {Quantity: c.Client.Shown}, {Quantity: c.Server.Shown}, {Text: basisOf(c)},
			{Text: label(twins[record.Cell{Suite: c.Suite, Direction: d}])}, {Text: Standing(c.Status)},
		}})
	}
	return t
}

// basisOf names the basis of a cell's figures.
func basisOf(c rank.Cell) string {
	if c.Basis == rank.Measured && c.Timed == rank.Predicted {
		return "speed " + string(rank.Predicted)
	}
	return string(c.Basis)
}

// connectionsOf returns the number of connections of a cell.
func connectionsOf(c rank.Cell) int {
	if c.Basis != rank.Measured {
		return 0
	}
	return max(c.Throughput.N, c.Client.N)
}

var kexColumns = []Column{
	{Key: "rank", Head: "rank", Terse: "#", Kind: Count},
	{Key: "group", Head: "group", Terse: " "},
	{Key: "kex", Head: "key exchange", Kind: Name, Of: alg.Kex, Fit: text.Above},
	{Key: "aliases", Head: "also called", Minor: true},
	{Key: "login_ns", Head: "login", Terse: "login|ms", Unit: "ms", Scale: 1e6, Kind: Quantity},
	{Key: "client_cpu_ns", Head: "client CPU", Terse: "client|CPU ms", Bare: true, Unit: "ms", Scale: 1e6, Kind: Quantity},
	{Key: "server_cpu_ns", Head: "server CPU", Terse: "server|CPU ms", Bare: true, Unit: "ms", Scale: 1e6, Kind: Quantity},
	{Key: "post_quantum", Head: "post-quantum", Terse: "post-|quantum", Usual: []string{"no"}},
	{Key: "status", Head: "status", Terse: " ", Usual: usualStatus},
}

func kexTable(r *rank.Ranking) Table {
	t := Table{
		Name: "kex", Title: "Key exchanges by " + kexOrder(r), Columns: kexColumns,
		Note: "A login is the time from the start of the client to the start of the remote command.",
	}
	for _, k := range r.Kex {
		t.Rows = append(t.Rows, Row{Suite: safe(alg.Suite{Kex: k.Name}), Cells: []Cell{
			{Text: fmt.Sprint(k.Rank)}, {Text: k.Group}, {Text: clean(k.Name)}, {Text: clean(strings.Join(k.Aliases, " "))},
			{Quantity: k.Login.Shown}, {Quantity: k.Client.Shown}, {Quantity: k.Server.Shown}, {Text: yesNo(k.PostQuantum)}, {Text: Standing(k.Status)},
		}})
	}
	return t
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func copyTable(r *rank.Ranking) Table {
	t := Table{Name: "copies", Title: "Whole processes, each a copy of " + r.Campaign.SizeBytes.String(), Columns: []Column{
		{Key: "cipher", Head: "cipher", Kind: Name, Of: alg.Cipher}, {Key: "mac", Head: "MAC", Kind: Name, Of: alg.MAC},
		{Key: "kex", Head: "key exchange", Kind: Name, Of: alg.Kex}, {Key: "direction", Head: "direction", Minor: true},
		{Key: "seconds", Head: "time", Unit: "s", Scale: 1, Kind: Quantity},
	}}
	for _, c := range r.Copies {
		seconds := c.Seconds
		t.Rows = append(t.Rows, Row{Suite: safe(c.Suite), Cells: []Cell{
			{Text: clean(c.Suite.Cipher)}, {Text: clean(c.Suite.MAC)}, {Text: clean(c.Suite.Kex)}, {Text: clean(string(c.Direction))}, {Quantity: &seconds},
		}})
	}
	return t
}

func failedTable(r *rank.Ranking) Table {
	t := Table{Name: "failed", Title: "Tried without success", Columns: []Column{
		{Key: "what", Head: "what", Fit: text.Cut}, {Key: "workload", Head: "workload"}, {Key: "outcome", Head: "outcome"},
		{Key: "detail", Head: "detail", Fit: text.Cut}, {Key: "attempts", Head: "attempts", Kind: Count},
	}}
	for _, f := range r.Failed {
		t.Rows = append(t.Rows, Row{Suite: safe(f.Suite), Cells: []Cell{
			{Text: clean(f.Suite.String())}, {Text: clean(string(f.Workload))}, {Text: clean(string(f.Outcome))}, {Text: clean(f.Detail)}, {Text: fmt.Sprint(f.Attempts)},
		}})
	}
	return t
}

func controlTable(r *rank.Ranking) Table {
	t := Table{
		Name: "controls", Title: "Hidden A/A controls: the same key exchange under two names",
		Note: "A ratio near 1 shows that the run does not see differences where there are none.",
		Columns: []Column{
			{Key: "a", Head: "A", Fit: text.Cut}, {Key: "b", Head: "B", Fit: text.Cut}, {Key: "ratio", Head: "B against A", Unit: ratio, Scale: 1, Kind: Quantity},
			{Key: "separated", Head: "taken for different", Terse: "taken for|different"},
		},
	}
	for _, c := range r.Controls {
		ratio := c.Ratio
		t.Rows = append(t.Rows, Row{Suite: safe(c.A), Cells: []Cell{{Text: clean(c.A.String())}, {Text: clean(c.B.String())}, {Quantity: &ratio}, {Text: yesNo(c.Separated)}}})
	}
	return t
}
