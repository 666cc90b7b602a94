package page

import (
	"html/template"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/show/document"
)

// view is the data of the template.
type view struct {
	*document.Document
	Policy   string
	Style    template.CSS
	Scripts  []template.JS // our own files, never data
	Sections []section
	Loose    []figure // charts without a table
	Names    []name
	Config   bool // rows can be copied as configuration
	Island   island
}

// section is a table with the charts of its numbers.
type section struct {
	ID      string
	Table   string // name of its tables
	Title   string
	Figures []figure
	Data    table
}

type figure struct {
	ID    string
	Title string
	Note  string
	Shape document.Shape
}

type table struct {
	Title, Note string
	Heads       []head
	Rows        []row
}

type head struct {
	Text    string
	Numeric bool
}

type row struct {
	Cipher, MAC, Kex string // values that filters use
	Aliases          string // other names of the same computation, which older servers may need
	Cells            []cell
}

// cell is one of: text, an algorithm with its standing, a number.
type cell struct {
	Text    string
	Spread  string
	Sort    string // the number in full, for sorting; "" for text
	Numeric bool
	Badge   *name
}

// name is an algorithm with the id of its explanation.
type name struct {
	document.Algorithm
	ID       string
	Standing string
}

// island is the data for the scripts, in a script element of type application/json.
type island struct {
	Charts      []chartData  `json:"charts"`
	Policies    []policyData `json:"policies"`
	Policy      string       `json:"policy"`      // that the page opens with; "": any
	Weak        []string     `json:"weak"`        // not copied unless a policy lists them
	PostQuantum []string     `json:"postQuantum"` // lines before the other key exchanges

	Series  []document.Tint `json:"series"`
	Amounts document.Scale  `json:"amounts"`
	Ratios  document.Scale  `json:"ratios"`
}

func viewOf(d *document.Document) view {
	v := view{Document: d, Style: template.CSS(styleCSS), Config: len(d.Table("ranking"))+len(d.Table("kex")) > 0}
	scripts := []string{echartsJS, app()}
	for _, s := range scripts {
		v.Scripts = append(v.Scripts, template.JS(s))
	}
	v.Policy = securityPolicy(scripts, styleCSS)
	v.Island.Series, v.Island.Amounts, v.Island.Ratios = document.Series[:], document.Amounts, document.Ratios
	v.Names = names(d.Algorithms)
	v.Config = v.Config && len(d.Table("cells")) == 0
	v.figures(d)
	v.Island.Policies, v.Island.Policy = policies(d.Algorithms), d.PolicyName
	for _, a := range d.Algorithms {
		if !a.Status.Sound() {
			v.Island.Weak = append(v.Island.Weak, a.Name)
		}
		if a.PostQuantum {
			v.Island.PostQuantum = append(v.Island.PostQuantum, a.Name)
		}
	}
	return v
}

func names(algorithms []document.Algorithm) []name {
	var out []name
	for i, a := range algorithms {
		out = append(out, name{a, "alg-" + strconv.Itoa(i), document.Standing(a.Status)})
	}
	return out
}

// figures sorts charts and tables into sections.
func (v *view) figures(d *document.Document) {
	byTable := map[[2]string][]figure{}
	for i, c := range d.Charts {
		f := figure{"chart-" + strconv.Itoa(i), c.Title, c.Caption(), c.Shape}
		v.Island.Charts = append(v.Island.Charts, chartData{f.ID, c})
		if len(d.Table(c.Table)) == 0 {
			v.Loose = append(v.Loose, f)
		} else {
			byTable[[2]string{c.Table, c.Part}] = append(byTable[[2]string{c.Table, c.Part}], f)
		}
	}
	for i, t := range d.Tables {
		v.Sections = append(v.Sections, section{
			ID: "section-" + strconv.Itoa(i), Table: t.Name, Title: sectionTitle(t, len(d.Table(t.Name)) > 1),
			Figures: byTable[[2]string{t.Name, t.Part}], Data: v.table(t),
		})
	}
}

// sectionTitle returns a short name for the navigation.
func sectionTitle(t document.Table, several bool) string {
	title := t.Called()
	if title == "" {
		return t.Title
	}
	title = strings.ToUpper(title[:1]) + title[1:]
	if several {
		title += ", " + t.Part
	}
	return title
}

func (v *view) table(t document.Table) table {
	out := table{Title: t.Title, Note: t.Note}
	shown, aliases := columns(t), slices.IndexFunc(t.Columns, func(c document.Column) bool { return c.Key == "aliases" })
	for _, i := range shown {
		c := t.Columns[i]
		out.Heads = append(out.Heads, head{c.Heading(), c.Numeric()})
	}
	for _, r := range t.Rows {
		line := row{Cipher: r.Suite.Cipher, MAC: r.Suite.MAC, Kex: r.Suite.Kex}
		for _, i := range shown {
			line.Cells = append(line.Cells, v.cell(t.Columns[i], r.Cells[i]))
		}
		if aliases >= 0 {
			line.Aliases = r.Cells[aliases].Text
		}
		out.Rows = append(out.Rows, line)
	}
	return out
}

// columns leaves out columns that the page shows in another way: the status stands next to each
// name, and other names of a computation have their own table.
func columns(t document.Table) []int {
	named := slices.ContainsFunc(t.Columns, func(c document.Column) bool { return c.Kind == document.Name })
	return slices.DeleteFunc(t.Telling(), func(i int) bool {
		c := t.Columns[i]
		return named && c.Key == "status" || c.Minor && t.Name == "ranking"
	})
}

func (v *view) cell(c document.Column, value document.Cell) cell {
	switch c.Kind {
	case document.Count:
		return cell{Text: value.Text, Sort: value.Text, Numeric: true}
	case document.Name:
		return cell{Text: value.Text, Badge: v.badge(c.Of, value.Text)}
	case document.Quantity:
		if value.Quantity == nil {
			return cell{Text: "-", Numeric: true}
		}
		q := value.Quantity
		text, bounds := c.Parts(value)
		return cell{Text: text, Spread: bounds, Sort: strconv.FormatFloat(q.Value, 'g', -1, 64), Numeric: true}
	}
	return cell{Text: value.Text}
}

func (v *view) badge(kind alg.Kind, text string) *name {
	for i := range v.Names {
		if v.Names[i].Kind == kind && v.Names[i].Name == text {
			return &v.Names[i]
		}
	}
	return nil
}

// chartData is a chart for the scripts.
type chartData struct {
	ID string `json:"id"`
	document.Chart
}

// policyData lists the names of the document that a policy allows; null: all.
type policyData struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Cipher []string `json:"cipher"`
	MAC    []string `json:"mac"`
	Kex    []string `json:"kex"`
}

func policies(algorithms []document.Algorithm) []policyData {
	var out []policyData
	for _, p := range alg.Policies() {
		d := policyData{Name: p.Name, Title: p.Title}
		lists := map[alg.Kind]*[]string{alg.Cipher: &d.Cipher, alg.MAC: &d.MAC, alg.Kex: &d.Kex}
		silent := map[alg.Kind]bool{alg.Cipher: p.Ciphers == nil, alg.MAC: p.MACs == nil, alg.Kex: p.Kex == nil}
		for kind, list := range lists {
			if !silent[kind] {
				*list = []string{}
			}
		}
		for _, a := range algorithms {
			if list := lists[a.Kind]; list != nil && !silent[a.Kind] && p.Allows(a.Kind, a.Name) {
				*list = append(*list, a.Name)
			}
		}
		out = append(out, d)
	}
	return out
}
