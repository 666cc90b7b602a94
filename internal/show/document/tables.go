package document

import (
	"fmt"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Table is a table with the same kind of cell in each column.
type Table struct {
	Name    string // stable, for --table: "bulk", "kex", "cells", ...
	Part    string // of several tables of one Name, which: the direction
	Title   string
	Note    string // what the columns mean; may be ""
	Columns []Column
	Rows    []Row
}

func rankingTables(r *rank.Ranking) []Table {
	var out []Table
	for _, d := range r.Directions() {
		out = append(out, bulkTable(r, d))
	}
	if len(r.Kex) > 0 {
		out = append(out, kexTable(r))
	}
	if len(r.Copies) > 0 {
		out = append(out, copyTable(r))
	}
	if len(r.Failed) > 0 {
		out = append(out, failedTable(r))
	}
	if len(r.Controls) > 0 {
		out = append(out, controlTable(r))
	}
	return append(out, machineTables(r)...)
}

func title(s string) string {
	if s == "" {
		return "Transfer"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

var bulkColumns = []Column{
	{Key: "rank", Head: "rank", Kind: Count},
	{Key: "group", Head: "group"},
	{Key: "cipher", Head: "cipher", Kind: Name, Of: alg.Cipher},
	{Key: "mac", Head: "MAC", Kind: Name, Of: alg.MAC},
	{Key: "direction", Head: "direction", Minor: true},
	{Key: "throughput_bytes_per_s", Head: "throughput", Unit: "MB/s", Scale: 1e6, Kind: Quantity},
	{Key: "client_ns_per_byte", Head: "client CPU", Unit: "s/GB", Scale: 1, Kind: Quantity},
	{Key: "server_ns_per_byte", Head: "server CPU", Unit: "s/GB", Scale: 1, Kind: Quantity},
	{Key: "basis", Head: "basis"},
	{Key: "status", Head: "status"},
}

func bulkTable(r *rank.Ranking, d record.Direction) Table {
	t := Table{
		Name: "bulk", Part: text(string(d)), Title: title(string(d)) + ": ciphers and MACs by " + r.BulkOrder(), Columns: bulkColumns,
		Note: "Rows with the same group letter cannot be told apart. A cipher without a MAC carries its own authentication tag.",
	}
	for _, c := range r.Bulk {
		if c.Direction == d {
			t.Rows = append(t.Rows, Row{safe(c.Suite), []Cell{
				{Text: fmt.Sprint(c.Rank)}, {Text: c.Group}, {Text: text(c.Suite.Cipher)}, {Text: text(c.Suite.MAC)}, {Text: text(string(d))},
				{Quantity: c.Throughput}, {Quantity: c.Client}, {Quantity: c.Server}, {Text: string(c.Basis)}, {Text: Standing(c.Status)},
			}})
		}
	}
	return t
}

var kexColumns = []Column{
	{Key: "rank", Head: "rank", Kind: Count},
	{Key: "group", Head: "group"},
	{Key: "kex", Head: "key exchange", Kind: Name, Of: alg.Kex},
	{Key: "aliases", Head: "also called"},
	{Key: "login_ns", Head: "login", Unit: "ms", Scale: 1e6, Kind: Quantity},
	{Key: "client_cpu_ns", Head: "client CPU", Unit: "ms", Scale: 1e6, Kind: Quantity},
	{Key: "server_cpu_ns", Head: "server CPU", Unit: "ms", Scale: 1e6, Kind: Quantity},
	{Key: "post_quantum", Head: "post-quantum"},
	{Key: "status", Head: "status"},
}

func kexTable(r *rank.Ranking) Table {
	t := Table{
		Name: "kex", Title: "Key exchanges by " + r.KexOrder(), Columns: kexColumns,
		Note: "A login is the time from the start of the client to the start of the remote command.",
	}
	for _, k := range r.Kex {
		t.Rows = append(t.Rows, Row{safe(alg.Suite{Kex: k.Name}), []Cell{
			{Text: fmt.Sprint(k.Rank)}, {Text: k.Group}, {Text: text(k.Name)}, {Text: text(strings.Join(k.Aliases, " "))},
			{Quantity: k.Login}, {Quantity: k.Client}, {Quantity: k.Server}, {Text: yesNo(k.PostQuantum)}, {Text: Standing(k.Status)},
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
		t.Rows = append(t.Rows, Row{safe(c.Suite), []Cell{
			{Text: text(c.Suite.Cipher)}, {Text: text(c.Suite.MAC)}, {Text: text(c.Suite.Kex)}, {Text: text(string(c.Direction))}, {Quantity: &seconds},
		}})
	}
	return t
}

func failedTable(r *rank.Ranking) Table {
	t := Table{Name: "failed", Title: "Tried without success", Columns: []Column{
		{Key: "what", Head: "what"}, {Key: "workload", Head: "workload"}, {Key: "outcome", Head: "outcome"},
		{Key: "detail", Head: "detail"}, {Key: "attempts", Head: "attempts", Kind: Count},
	}}
	for _, f := range r.Failed {
		t.Rows = append(t.Rows, Row{safe(f.Suite), []Cell{
			{Text: text(f.Suite.String())}, {Text: text(string(f.Workload))}, {Text: text(string(f.Outcome))}, {Text: text(f.Detail)}, {Text: fmt.Sprint(f.Attempts)},
		}})
	}
	return t
}

func controlTable(r *rank.Ranking) Table {
	t := Table{
		Name: "controls", Title: "Hidden A/A controls: the same key exchange under two names",
		Note: "A ratio near 1 shows that the run does not see differences where there are none.",
		Columns: []Column{
			{Key: "a", Head: "A"}, {Key: "b", Head: "B"}, {Key: "ratio", Head: "B against A", Unit: "ratio", Scale: 1, Kind: Quantity},
			{Key: "separated", Head: "taken for different"},
		},
	}
	for _, c := range r.Controls {
		ratio := c.Ratio
		t.Rows = append(t.Rows, Row{safe(c.A), []Cell{{Text: text(c.A.String())}, {Text: text(c.B.String())}, {Quantity: &ratio}, {Text: yesNo(c.Separated)}}})
	}
	return t
}
