package findings

import (
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/login"
	"sshpace/internal/show/document"
)

// compareSchema names the layout of a comparison's JSON form.
const compareSchema = "sshpace.login-compare/1"

// LoginComparison is a comparison of logins as it is shown.
type LoginComparison struct {
	Schema string `json:"schema"`
	*compare.LoginComparison
}

// CompareLogins relates reports to the first one.
func CompareLogins(files []string, reports []*Login) *LoginComparison {
	results := make([][]compare.LoginKind, len(reports))
	for i, report := range reports {
		for _, r := range report.Results {
			results[i] = append(results[i], kindOf(r))
		}
	}
	return &LoginComparison{compareSchema, compare.Logins(files, results)}
}

func kindOf(r login.Result) compare.LoginKind {
	return compare.LoginKind{Factor: r.Factor, Level: r.Level, Client: r.ClientCPU, Server: r.ServerCPU, Wall: r.Wall}
}

// JSON writes the comparison.
func (c *LoginComparison) JSON(w io.Writer) error { return termsafe.WriteJSON(w, c, " ") }

// Document returns the comparison for people.
func (c *LoginComparison) Document() *document.Document {
	t := document.Table{Name: "logins", Title: "Logins compared", Columns: []document.Column{{Key: "factor", Head: "what differs", Minor: true}, {Key: "level", Head: "login", Terse: " ", Fit: text.Above}}}
	for _, name := range c.Files[1:] {
		cpu := document.Column{Key: "cpu_ratio", Head: "CPU time, " + termsafe.Line(name), Terse: "CPU time"}
		t.Columns = append(t.Columns, document.RatioColumns(cpu, "verdict", "takes")...)
	}
	var alone []string
	for _, k := range c.Kinds {
		if k.ClientAlone {
			alone = append(alone, k.Level)
		}
	}
	sides := "both sides"
	if len(alone) == len(c.Kinds) {
		sides = "the client"
	}
	d := &document.Document{Title: t.Title, Lead: []string{fmt.Sprintf("CPU time of %s against %s, each login by itself; runs as a whole may differ by %.0f %%, which the intervals include.", sides, c.Files[0], 100*compare.LoginFloor())}}
	d.Lead = append(d.Lead, text.NonEmpty(document.ClientAlone(alone, len(c.Kinds)))...)
	groups, order := map[string]*document.Table{}, []string{}
	for _, k := range c.Kinds {
		row := document.Row{Cells: []document.Cell{{Text: k.Factor}, {Text: termsafe.Line(k.Level)}}}
		for i := range k.CPU {
			row.Cells = append(row.Cells, document.Cell{Quantity: k.CPU[i].OrNil()}, document.Cell{Text: k.Verdicts[i]})
		}
		t.Rows = append(t.Rows, row)
		if groups[k.Factor] == nil {
			group := t
			group.Title, group.Rows = k.Factor, nil
			groups[k.Factor], order = &group, append(order, k.Factor)
		}
		groups[k.Factor].Rows = append(groups[k.Factor].Rows, row)
	}
	d.Tables, d.Brief = []document.Table{t}, []document.Table{{Lines: d.Lead}}
	for _, factor := range order {
		d.Brief = append(d.Brief, *groups[factor])
	}
	var lacking []string
	for _, o := range c.Only {
		lacking = append(lacking, fmt.Sprintf("only in %s: %s", strings.Join(o.Files, ", "), strings.TrimSpace(o.Factor+" "+o.Level)))
	}
	d.Brief = document.Clean(append(d.Brief, document.Table{Lines: lacking}))
	return d
}
