package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/show/document"
)

// CSV writes the named tables as comma-separated values (RFC 4180): a line of column names, then a
// line for each row, and an empty line between two names. Names and numbers are those of the JSON
// report, in base units and in full; a quantity takes four columns. Without a name it writes the
// cells of a comparison, otherwise the first table.
func CSV(w io.Writer, d *document.Document, names ...string) error {
	tables, err := named(d, names)
	if err != nil {
		return err
	}
	var lines [][]string
	for i, t := range tables {
		if i == 0 || t.Name != tables[i-1].Name { // tables of one name are below one head
			if i > 0 {
				lines = append(lines, nil)
			}
			lines = append(lines, csvHead(t.Columns))
		}
		for _, r := range t.Rows {
			lines = append(lines, csvRow(t.Columns, r))
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// named returns the tables of all names; without any, the cells of a comparison, otherwise the
// first table.
func named(d *document.Document, names []string) (all []document.Table, err error) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		tables, err := tablesOf(d, name)
		if err != nil {
			return nil, err
		}
		all = append(all, tables...)
	}
	return all, nil
}

// tablesOf finds the tables with a name. An unknown name is an error.
func tablesOf(d *document.Document, name string) ([]document.Table, error) {
	names := d.TableNames()
	if len(names) == 0 {
		return nil, fmt.Errorf("the report has no table")
	}
	if name == "" {
		name = names[0]
		if slices.Contains(names, "cells") {
			name = "cells"
		}
	}
	tables := d.Table(name)
	if len(tables) == 0 {
		return nil, document.NoSuch("table", name, names)
	}
	return tables, nil
}

func csvHead(columns []document.Column) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.Key)
		if c.Kind == document.Quantity {
			out = append(out, c.Key+"_lo", c.Key+"_hi", c.Key+"_n")
		}
	}
	return out
}

func csvRow(columns []document.Column, r document.Row) []string {
	var out []string
	for i, c := range columns {
		cell := r.Cells[i]
		switch {
		case c.Kind != document.Quantity:
			out = append(out, harmless(cell.Text))
		case cell.Quantity == nil:
			out = append(out, "", "", "", "")
		default:
			q := cell.Quantity
			out = append(out, full(q.Value), full(q.Lo), full(q.Hi), strconv.Itoa(q.N))
		}
	}
	return out
}

func full(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// harmless puts a quote before a text that a spreadsheet would take for a formula (OWASP, CSV
// Injection).
func harmless(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
