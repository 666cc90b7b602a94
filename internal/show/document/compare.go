package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// OfComparison builds the report of a comparison. Files are named by letters, from A, and by their
// labels.
func OfComparison(c *compare.Comparison, o Options) *Document {
	d := &Document{Title: "SSH speed compared", Method: comparisonMethod(c), Lead: comparisonLead(c), Doubts: doubts(c.Warnings, nil), Tables: comparisonTables(c), Charts: comparisonCharts(c)}
	for i, in := range c.Inputs {
		e := in.Environment
		d.Environment = append(d.Environment, Fact{fileName(c, i), clean(strings.Join(text.NonEmpty(e.CPU, release(e.Client), library(e.Crypto), e.Kernel), ", "))})
		if in.Ranking != nil {
			d.Quality = append(d.Quality, Fact{"noise floor of " + fileName(c, i), cmp.Or(noiseFloor(in.Ranking.Noise), unknownWord)})
		}
	}
	switch opening := []Table{{Lines: slices.Clone(d.Lead)}, {Lines: factLines(d.Environment)}}; c.Lines[0].Table {
	case compare.Methods, compare.Logins:
		d.Title = map[compare.Table]string{compare.Methods: "Transfer methods, compared", compare.Logins: "Logins compared"}[c.Lines[0].Table]
		d.Brief = Clean(slices.Concat(opening, byFactor(d.Tables[0]), []Table{{Lines: []string{inBrackets}}}))
	default:
		d.Brief = briefComparison(c, d, opening, o.All)
		var suites []alg.Suite
		for _, l := range append(c.In(compare.Cells), c.In(compare.Kex)...) {
			suites = append(suites, l.Suite)
		}
		d.Algorithms = Algorithms(suites)
	}
	return d
}

// letter returns the letter of a file.
func letter(i int) string { return stats.Letters(i) }

// letters names files by their places.
func letters(files []int) string {
	var names []string
	for _, i := range files {
		names = append(names, letter(i))
	}
	return strings.Join(names, ", ")
}

func fileName(c *compare.Comparison, i int) string {
	return clean(letter(i) + " " + c.Inputs[i].Label)
}

// comparisonLead returns the result, a sentence each.
func comparisonLead(c *compare.Comparison) (out []string) {
	for _, l := range c.In(compare.Overall) {
		for k, r := range l.Ratios {
			out = append(out, fmt.Sprintf("%s: %s over %s.", beside(fileName(c, k+1), fileName(c, 0), r.Verdict), r.Interval().Times(), unit.Count(len(c.In(compare.Cells)), "combination")))
		}
	}
	out = append(append(out, changedMethods(c)...), changedLogins(c)...)
	if least := Least(c.Shows(compare.Speed)); least != "" {
		out = append(out, title(least)+".")
	}
	out = slices.Concat(out, changedDefaults(c), clientsAlone(c), lackingLines(c))
	if len(c.Normalized) > 0 {
		out = append(out, "Normalized to the geometric mean of "+clean(strings.Join(c.Normalized, ", "))+" in each file.")
	}
	return out
}

// beside compares b with a in words.
func beside(b, a string, v stats.Verdict) string {
	switch v {
	case stats.Equal:
		return fmt.Sprintf("%s is as fast as %s, within %s", b, a, stats.MarginWords)
	case stats.NotEnough:
		return fmt.Sprintf("Not enough data to say whether %s is faster or slower than %s", b, a)
	}
	return fmt.Sprintf("%s is %s than %s", b, Faster(v), a)
}

// Faster words a verdict on a speed.
func Faster(v stats.Verdict) string { return v.Called("faster", "slower") }

// changedMethods counts for each file the methods that became faster and slower than in the first.
func changedMethods(c *compare.Comparison) (out []string) {
	lines := slices.DeleteFunc(c.In(compare.Methods), func(l compare.Line) bool { return l.Quantity != compare.Speed })
	if len(lines) == 0 {
		return nil
	}
	over := ""
	if path := pathText(commonPath(c)); path != "" {
		over = " over" + path
	}
	for k := range c.Inputs[1:] {
		count := map[stats.Verdict]int{}
		for _, l := range lines {
			count[l.Ratios[k].Verdict]++
		}
		of := ", with all " + unit.Count(len(lines), "method")
		if len(lines) == 1 {
			of = ""
		}
		if len(count) == 1 {
			out = append(out, beside(letter(k+1), letter(0), lines[0].Ratios[k].Verdict)+of+over+".")
			continue
		}
		var words []string
		for _, v := range []stats.Verdict{stats.Better, stats.Worse, stats.Equal, stats.NotEnough} {
			if n := count[v]; n > 0 {
				words = append(words, fmt.Sprintf("%d %s", n, Faster(v)))
			}
		}
		out = append(out, fmt.Sprintf("%s against A, of %s%s: %s.", letter(k+1), unit.Count(len(lines), "method"), over, strings.Join(words, ", ")))
	}
	return out
}

// commonPath returns the path of all methods, if they have one.
func commonPath(c *compare.Comparison) record.Path {
	first := c.Lines[0].Method
	if first == nil || slices.ContainsFunc(c.Lines, func(l compare.Line) bool { return l.Method.Path != first.Path }) {
		return record.Path{}
	}
	return first.Path
}

// subjectName names the subject of a line, without the path that all methods share.
func subjectName(c *compare.Comparison, s compare.Subject) string {
	if s.Method == nil {
		return clean(s.Name)
	}
	m := *s.Method
	if m.Path == commonPath(c) {
		m.Path = record.Path{}
	}
	return MethodLabel(m)
}

// changedLogins says how logins are compared.
func changedLogins(c *compare.Comparison) []string {
	if c.Lines[0].Table != compare.Logins {
		return nil
	}
	return []string{fmt.Sprintf("CPU time of each login by itself; runs as a whole may differ by %.0f %%, which the intervals include.", c.Floor)}
}

// clientsAlone names the lines whose CPU time is the client's alone.
func clientsAlone(c *compare.Comparison) []string {
	var names []string
	lines := 0
	for _, l := range c.Lines {
		if l.Quantity == compare.CPU {
			lines++
			if l.ClientAlone {
				names = append(names, subjectName(c, l.Subject))
			}
		}
	}
	return text.NonEmpty(ClientAlone(names, lines))
}

// ClientAlone says which of lines lines have the CPU time of the client alone; "" for none.
func ClientAlone(names []string, lines int) string {
	const says = "CPU time is the client's alone, as the server's is not known in all files"
	switch len(names) {
	case 0:
		return ""
	case lines:
		return says + "."
	}
	return says + ": " + strings.Join(names, ", ") + "."
}

// Least says which differences a comparison can show; least is the smallest one, as a share. It
// returns "" for none.
func Least(least float64) string {
	if least <= 0 {
		return ""
	}
	return "these files can show differences of " + unit.Difference(least) + " or more"
}

// changedDefaults names the suite that each file's programs negotiate by default, where they
// differ.
func changedDefaults(c *compare.Comparison) (lines []string) {
	for i, s := range c.Defaults {
		lines = append(lines, "Default changed: "+letter(i)+" negotiates "+clean(strings.Join(text.NonEmpty(Short(s.Cipher), Short(s.MAC), s.Kex), ", ")))
	}
	return lines
}

// notCompared begins the sentences of lackingLines.
const notCompared = "Not compared, "

// lackingLines names the subjects that not all files have, by the files that have them, and then
// the algorithms that some did not measure.
func lackingLines(c *compare.Comparison) (lines []string) {
	var heads []string
	names := map[string][]string{}
	between := ", "
	for _, o := range c.Only {
		head, name := "only in "+letters(o.Having()), Short(strings.TrimSpace(o.Factor+" "+o.Name))
		switch {
		case o.Method != nil:
			name, between = MethodAndCipher(*o.Method), "; "
		case len(o.Offered) == len(c.Inputs):
			head = "not measured in " + letters(slices.DeleteFunc(slices.Clone(o.Offered), func(i int) bool { return slices.Contains(o.Files, i) }))
		}
		heads = appendNew(heads, head)
		names[head] = append(names[head], name)
	}
	slices.SortStableFunc(heads, func(a, b string) int { return -cmp.Compare(a, b) })
	for _, head := range heads {
		lines = append(lines, notCompared+head+": "+strings.Join(names[head], between))
	}
	return lines
}

// briefComparison shows the result, and as many of the changed lines as fit the screen; with all,
// every table.
func briefComparison(c *compare.Comparison, d *Document, out []Table, all bool) []Table {
	if !all { // lists of names, and of programs, have a line each
		for i, line := range out[0].Lines {
			if strings.HasPrefix(line, notCompared) {
				out[0].Lines[i] = text.Clip(line, text.Columns)
			}
		}
		for i, line := range out[1].Lines {
			out[1].Lines[i] = text.Clip(line, text.Columns)
		}
	}
	if all {
		var orders []string
		for k, tau := range c.Order {
			orders = append(orders, fmt.Sprintf("%s orders the cells as %s does with a Kendall's tau of %.3f (1: alike, 0: unrelated).", fileName(c, k+1), fileName(c, 0), tau))
		}
		return Clean(append(append(out, d.Tables...), Table{Lines: append(orders, d.Method...)}, Table{Lines: doubtLines(d.Doubts)}))
	}
	if c.Lines[0].Table == compare.Figures { // only measurements besides SSH
		return Clean(Screenful(append(out, d.Tables...), doubtLines(d.Doubts), 0, "sshpace compare --all", nil))
	}
	hidden := len(d.Doubts)
	for _, t := range d.Tables {
		if t.Name == string(compare.Overall) || t.Name == string(compare.Cells) {
			continue
		}
		changed := slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool { return r.Same })
		hidden += len(t.Rows) - len(changed)
		if t.Rows = changed; len(changed) > 0 {
			t.Spare = max(0, len(changed)-len(c.Inputs))
			out = append(out, t)
		}
	}
	last := Table{Lines: []string{inBrackets}}
	out, over := Fit(out, len(last.Lines)+2)
	if hidden += over; hidden > 0 {
		last.Lines = append(last.Lines, fmt.Sprintf("%d more lines and remarks: sshpace compare --all", hidden))
	}
	return Clean(append(out, last))
}

// byFactor returns a table in parts: logins by their factor, which is the title of a part.
func byFactor(t Table) (out []Table) {
	for _, row := range t.Rows {
		part := t
		part.Title, part.Rows = "", nil
		if t.Columns[0].Key == "factor" {
			part.Title = row.Cells[0].Text
		}
		if len(out) == 0 || out[len(out)-1].Title != part.Title {
			out = append(out, part)
		}
		last := &out[len(out)-1]
		last.Rows = append(last.Rows, row)
	}
	return out
}

const howMethodsChanged = "Ratios of medians to the first file, with 95 % intervals that include run-to-run variation (doc/method.md). Faster and slower hold for all rows together (Holm's correction); equal: within " + stats.MarginWords + "."

func comparisonMethod(c *compare.Comparison) []string {
	switch c.Lines[0].Table {
	case compare.Methods:
		return []string{howMethodsChanged}
	case compare.Logins:
		return nil
	}
	out := []string{fmt.Sprintf(`Speeds are ratios to the first file, by %s: 1.05 means 5 %% faster than it. `+
		`Intervals hold with 95 %% confidence, one by one; a verdict of faster or slower holds for all rows of its table together (Holm's correction). `+
		`Equal: the interval lies within %s.`, basis(c.Lines[0]), stats.MarginWords)}
	if len(c.Machines) > 0 {
		out = append(out, `With three files or more, log(cost) = machine + cell is fitted; deviations from it show a missing instruction or another library.`)
	}
	return out
}

// basis names the quantity that the speed of a line is computed from.
func basis(l compare.Line) string {
	switch {
	case l.By == rank.Cost && l.ClientAlone:
		return costOf(clientAlone)
	case l.By == rank.Cost:
		return costOf(bothSidesWord)
	case l.Table == compare.Kex:
		return "time"
	}
	return string(rank.Throughput)
}
