package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/show/document"
)

// LaTeX writes the named tables as tabulars of the package booktabs, with the numbers as people
// read them, for \input{} in one column of a paper. Without a name it writes the same tables as
// CSV.
func LaTeX(w io.Writer, d *document.Document, names ...string) error {
	chosen, err := named(d, names)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for i, t := range chosen {
		if i > 0 {
			fmt.Fprintln(out)
		}
		latexTable(out, t)
	}
	return out.Flush()
}

func latexTable(w io.Writer, t document.Table) {
	var align string
	var heads []string
	slim := t.Slim()
	for _, i := range slim {
		c := t.Columns[i]
		heads = append(heads, typeset(strings.NewReplacer("-|", "-", "|", " ").Replace(cmp.Or(strings.TrimSpace(c.Terse), c.Heading()))))
		if c.Numeric() {
			align += "r"
		} else {
			align += "l"
		}
	}
	fmt.Fprintf(w, "%% %s (needs \\usepackage{booktabs})\n{\\small\\setlength{\\tabcolsep}{4pt}%%\n\\begin{tabular}{%s}\n\\toprule\n%s \\\\\n\\midrule\n", t.Title, align, strings.Join(heads, " & "))
	for _, r := range t.Rows {
		var cells []string
		for _, i := range slim {
			value, bounds := t.Columns[i].Brief(r.Cells[i])
			cells = append(cells, typeset(value)+strings.ReplaceAll(typeset(strings.TrimRight(" "+bounds, " ")), "-", "--")) // en dashes
		}
		fmt.Fprintf(w, "%s \\\\\n", strings.Join(cells, " & "))
	}
	fmt.Fprintln(w, `\bottomrule`+"\n"+`\end{tabular}}`)
}

// typeset keeps a text from being a command: TeX only prints the name of a host, whatever it is. A
// row that begins with a bracket would be an argument of the line break before it.
var typeset = strings.NewReplacer(
	`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "%", `\%`, "#", `\#`, "_", `\_`, "^", `\textasciicircum{}`, "~", `\textasciitilde{}`,
	"<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`, "[", "{[}", "*", "{*}",
).Replace
