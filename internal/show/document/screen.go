package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// The first screen fits a terminal of 24 lines with the prompts around it.
const (
	screenLines = 22
	mostBars    = 6 // of choices that matter
	fewestBars  = 3 // before remarks go
	barLength   = 24
)

// screen is the first screen of a report, and the last of bench: the answer, the next steps, the
// choices that matter, and their confidence.
type screen struct {
	r      *rank.Ranking
	c      *advise.Choice
	answer Answer
	o      Options
}

// tables returns the screen; if it is too long, it leaves out the last choices, and then remarks.
func (s screen) tables() []Table {
	opening, remarks := s.opening(), s.remarks()
	for bars := mostBars; ; bars-- {
		out := append(slices.Clone(opening), s.choices(bars)...)
		out = append(out, Table{Lines: RemarkLines(remarks, s.o.Columns)})
		switch {
		case s.o.Limit != 0 || length(out) <= screenLines:
			return out
		case bars > fewestBars:
		case slices.ContainsFunc(remarks, func(r Remark) bool { return r.Spare }):
			last := len(remarks) - 1
			for !remarks[last].Spare {
				last--
			}
			remarks, bars = slices.Delete(remarks, last, last+1), mostBars+1
		default:
			return out
		}
	}
}

// opening returns the answer, and the next steps.
func (s screen) opening() []Table {
	var out []Table
	if len(s.r.Bulk) > 0 {
		out = append(out, Table{Lines: []string{strings.Join(s.answer.Says, " ")}})
	}
	if len(s.answer.Steps) > 0 {
		out = append(out, Table{Lines: stepLines(s.answer.Steps, s.o.Columns)})
	}
	return out
}

// stepLines prints steps and never breaks a text to copy: if there is no room next to the words, it
// drops its note, and then gives it its own line. columns is the width of the terminal; 0: any.
func stepLines(steps []Step, columns int) []string {
	columns = cmp.Or(columns, text.Columns)
	room := 0
	for _, s := range steps {
		room = max(room, text.Width(s.What))
	}
	var out []string
	for _, s := range steps {
		head := text.Pad("  "+s.What, room+4)
		switch {
		case text.Width(head+s.String()) <= columns:
			out = append(out, text.Whole(head+s.String()))
		case text.Width(head+s.Copy) <= columns:
			out = append(out, text.Whole(head+s.Copy))
		default:
			out = append(out, "  "+s.What, text.Whole(s.Copy))
		}
	}
	return out
}

// choices draws the bars of the best options and of the present one.
func (s screen) choices(bars int) []Table {
	switch {
	case len(s.r.Bulk) == 0:
		return nil
	case s.c.Tied == 0:
		t := bulkTable(s.r, s.r.Directions()[0]).untitled()
		t.Rows = t.Rows[:min(len(t.Rows), bars)]
		return []Table{t}
	}
	directions := s.r.Directions()
	t := Table{Columns: []Column{{Fit: text.Above}}}
	for _, d := range directions {
		heads := []string{"MB/s"}
		if s.r.By == rank.Cost {
			heads = append(heads, "CPU s/GB")
		}
		for _, head := range heads {
			if len(directions) > 1 {
				head = string(d) + "|" + head
			}
			t.Columns = append(t.Columns, Column{Terse: head, Kind: Count})
		}
	}
	t.Columns = append(t.Columns, Column{}, Column{})
	rows := foldOptions(s.c, 0, s.r.Campaign.Offer)
	kept := s.kept(rows, bars)
	longest := 0.0
	for _, i := range kept {
		longest = max(longest, rows[i].mean(s.r, 0).Value)
	}
	for _, i := range kept {
		t.Rows = append(t.Rows, s.bar(rows[i], longest))
	}
	more := len(s.r.Bulk) / max(1, len(directions)) // a row may be several
	for _, i := range kept {
		more -= len(rows[i].options)
	}
	if more > 0 {
		t.Lines = []string{fmt.Sprintf("%s: %s", unit.Count(more, "more combination"), s.o.Commands.All())}
	}
	return []Table{t}
}

// besides returns the tables of a result without ciphers, such as one of an old log, as far as they
// fit the screen.
func (s screen) besides(tables []Table) []Table {
	last := RemarkLines(s.remarks(), s.o.Columns)
	if s.o.Limit != 0 {
		return append(slices.Clone(tables), Table{Lines: last})
	}
	return Screenful(slices.Clone(tables), nil, 0, s.o.Commands.All(), last)
}

// kept selects the rows to show: the first ones, and the present one.
func (s screen) kept(rows []folded, bars int) []int {
	switch {
	case s.o.Limit < 0:
		bars = len(rows)
	case s.o.Limit > 0:
		bars = s.o.Limit
	}
	var out []int
	for i := range min(len(rows), bars) {
		out = append(out, i)
	}
	now := slices.IndexFunc(rows, func(f folded) bool { return f.holds(s.c.Present.Suite) })
	if now >= len(out) && len(out) > 0 {
		out[len(out)-1] = now
	}
	return out
}

func (s screen) bar(f folded, longest float64) Row {
	row := Row{Cells: []Cell{{Text: f.name()}}}
	for d := range s.r.Directions() {
		row.Cells = append(row.Cells, Cell{Text: speed(s.r, cells(f.options, d))})
		if s.r.By == rank.Cost {
			row.Cells = append(row.Cells, Cell{Text: span(cells(f.options, d), cpuOf, 1)})
		}
	}
	bar, now := "", ""
	if longest > 0 {
		length := barLength / float64(max(1, len(row.Cells)-3)) // figures of both directions leave less room
		bar = strings.Repeat("#", max(1, int(math.Round(length*f.mean(s.r, 0).Value/longest))))
	}
	if f.holds(s.c.Present.Suite) {
		now = "now"
	}
	row.Cells = append(row.Cells, Cell{Text: bar}, Cell{Text: now})
	return row
}

// Remark is a name and its text. Some can be left out.
type Remark struct {
	Name, Value string
	Spare       bool
}

// RemarkLines puts remarks below each other, in lines of at most width columns; 0: any width.
func RemarkLines(all []Remark, width int) []string {
	var out []string
	for _, r := range all {
		prefix := text.Pad("  "+r.Name, 14)
		if r.Value == text.Whole(r.Value) && text.Width(prefix+r.Value) > cmp.Or(width, text.Columns) {
			prefix = "  " + r.Name + "  "
		}
		if r.Value != "" {
			out = append(out, text.Wrap(prefix, r.Value, width)...)
		}
	}
	return out
}

// remarks returns everything else that matters, a line each where possible.
func (s screen) remarks() []Remark {
	out := []Remark{{Name: "login", Value: s.login()}, {Name: "limit", Value: s.limit(), Spare: true}}
	if word, why := s.confidence(); word != "" {
		out = append(out, Remark{Name: "confidence", Value: word + ": " + why}, s.words())
	}
	for _, note := range s.notes() {
		out = append(out, Remark{Name: "note", Value: note, Spare: true})
	}
	return append(out, s.measured(), Remark{Name: "saved", Value: text.Whole(cmp.Or(s.o.Shown, s.o.File))},
		Remark{Name: "more", Value: text.Whole(s.o.Commands.All()) + ", --method, --out report.html"})
}

// words explains the special words of the screen.
func (s screen) words() Remark {
	if slices.ContainsFunc(s.answer.Steps, func(step Step) bool { return strings.Contains(step.Copy, " client") }) {
		return Brackets("client: this side, which runs ssh")
	}
	return Brackets()
}

// measured names the programs, the machine and the length of the run.
func (s screen) measured() Remark {
	e, c := s.r.Environment, s.r.Campaign
	return Measured(c.Target, e.Client, e.Server, library(e.Crypto), processors(c, e), s.lasted())
}

// Measured says below figures where and with which programs they were measured. Empty parts are
// unknown, and left out.
func Measured(target, client, server string, words ...string) Remark {
	where := "to " + cmp.Or(target, unknownWord)
	if target == record.Loopback {
		where = "over " + target
	}
	return Remark{Name: "measured", Value: clean(strings.Join(text.NonEmpty(append([]string{where, programs(client, server)}, words...)...), ", "))}
}

// programs names client and server briefly: one name where both are of one release.
func programs(client, server string) string {
	name := release(client)
	if server := release(server); server != "" && !strings.HasPrefix(name, server) {
		name = strings.Join(text.NonEmpty(name, server), " to ")
	}
	return name
}

// release returns a version without the additions of a distribution: "OpenSSH 9.2p1".
func release(version string) string {
	name, _, _ := strings.Cut(version, " (")
	if first, _, more := strings.Cut(name, " "); more && strings.Contains(first, "_") {
		name = first
	}
	return strings.ReplaceAll(name, "_", " ")
}

// library returns the name and version of the crypto library, without its date.
func library(s string) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(2, len(words))], " ")
}

// cores returns the number of cores; "" where it is unknown.
func cores(e record.Environment) string {
	if e.Cores == 0 {
		return ""
	}
	return unit.Count(e.Cores, "core")
}

// processors names the processors that measured, and their owner where the server has others.
func processors(c record.Campaign, e record.Environment) string {
	if c.Server == record.ServerRemote && e.Cores > 0 {
		return unit.Count(e.Cores, "client core")
	}
	return cmp.Or(cores(e), e.CPU)
}

// lasted says how long the run took. Its budget includes pauses and the search for limits: the time
// of measuring is shown where the budget was not used up.
func (s screen) lasted() string {
	measured, budget := s.o.Measured, s.r.Campaign.BudgetNS
	switch {
	case measured == 0 && budget > 0, measured < budget && s.r.Ended == string(plan.EndBudget):
		return seconds(budget)
	case budget > measured:
		return seconds(measured) + " of " + seconds(budget)
	case measured > 0:
		return seconds(measured)
	}
	return ""
}

// seconds words a length of time.
func seconds(d time.Duration) string {
	if d < 10*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// login says how long a login takes with the present key exchange, or else with the best one.
func (s screen) login() string {
	l := s.c.Logins
	if len(l.Options) == 0 {
		return ""
	}
	k, advice := l.Options[max(0, l.Present)], ""
	if l.Present >= 0 && k.PostQuantum {
		advice = ": keep it"
	}
	if l.Present < 0 {
		advice = ", the best that was measured"
	}
	name := clean(k.Name)
	if k.PostQuantum {
		name += " (post-quantum)"
	}
	if l.Forbids {
		advice = fmt.Sprintf("; policy %s refuses the key exchange that is used now", s.c.Policy.Name)
	}
	if !k.Login.Known() {
		return name + advice
	}
	return unit.Milliseconds(k.Login.Value()) + " with " + name + advice
}

// limit names the present limit of a transfer, as far as it was found, and the remedy. It does not
// repeat that no cipher helps where the answer says so.
func (s screen) limit() string {
	var out []string
	for _, l := range s.r.Limits {
		help, _, _ := strings.Cut(l.Help, "; no ") // cipher, MAC or other setting
		if help == "" {
			continue
		}
		line, _, _ := strings.Cut(cmp.Or(l.Sentence, l.What), "; ") // the evidence follows
		line += "; what helps: " + help
		if len(s.r.Limits) > 1 {
			line = string(l.Direction) + ": " + line
		}
		out = append(out, clean(line))
	}
	return strings.Join(out, "; ")
}

// severe lists the warnings that make all figures unreliable.
var severe = []string{rank.Throttled}

// slowedFor is the percentage of other work from which on confidence is lower.
const slowedFor = 15

// confidence returns the confidence in the answer, a ratio, in one word, and the reason.
func (s screen) confidence() (word, why string) {
	if len(s.r.Bulk) == 0 || s.c.Tied == 0 {
		return "", ""
	}
	apart := 0
	for _, c := range s.r.Controls {
		if c.Separated {
			apart++
		}
	}
	for _, w := range s.r.Warnings {
		if slices.Contains(severe, w.Name) {
			return "low", doubtOf(w).String()
		}
	}
	switch slowed := s.r.Slowed.Percent(); {
	case apart > 1: // a note reports each of these
		return "low", fmt.Sprintf("the same work under two names came out different in %d of %s", apart, unit.Count(len(s.r.Controls), "pair"))
	case s.c.Uncertain():
		return "low", "no significant difference so far"
	case len(s.c.Gains) == 0:
		return "low", "there is nothing to compare with"
	case s.c.Stays() && s.c.Only():
		return "high", "there is nothing else to choose"
	case s.c.Elsewhere:
		return "medium", "it depends on the limit of one transfer"
	case s.known() > vague:
		return "low", fmt.Sprintf("the ratio is only known within %s; a longer --budget, or a quieter machine", unit.Difference(s.known()))
	case s.r.Slowed.Busy() || slowed >= slowedFor:
		return "medium", s.disturbed() + "; trust ratios, not MB/s"
	case s.known() > wide:
		return "medium", fmt.Sprintf("the ratio is only known within %s; %s", unit.Difference(s.known()), s.basis())
	}
	return "high", s.basis()
}

// The largest error of an answer's ratio with high and with medium confidence: on a machine that
// lacks processor time intervals are wider.
const (
	wide  = 0.1
	vague = 0.5
)

// known returns the relative error of the answer's ratios.
func (s screen) known() (part float64) {
	for _, g := range s.c.Gains {
		if q := g.Decides(s.r.By); q != nil {
			part = max(part, q.HalfWidth())
		}
	}
	return part
}

// disturbed describes other work of the machine.
func (s screen) disturbed() string {
	slowed := s.r.Slowed
	if slowed.Busy() {
		return fmt.Sprintf("%.1f of %s were busy otherwise", slowed.Foreign, unit.Count(s.r.Environment.Cores, "core"))
	}
	return "other work slowed this machine by " + unit.Difference(slowed.Percent()/100)
}

// basis names the data of the answer.
func (s screen) basis() string {
	n := 0
	for _, c := range s.r.Bulk {
		n += connectionsOf(c)
	}
	measured, predicted := Bases(s.r)
	out := fmt.Sprintf("%s measured over %s", unit.Count(measured, "combination"), unit.Count(n, "connection"))
	if predicted > 0 {
		out += fmt.Sprintf(", %d predicted", predicted)
	}
	return out
}

// told lists the warnings that the screen words itself, or that matter only for figures that it
// does not show.
var told = []string{"slowed", "beside", "noise", "by-cost", "one-core", "drift", "foreign", rank.Throttled, "missing"}

// notes returns the other warnings, with their remedies.
func (s screen) notes() []string {
	var out []string
	for _, w := range s.r.Warnings {
		if !slices.Contains(told, w.Name) {
			out = append(out, doubtOf(w).String())
		}
	}
	return out
}

// everything returns all that a ranking knows.
func everything(r *rank.Ranking, d *Document) []Table {
	lines := factLines(d.Quality)
	for _, f := range r.Failed {
		lines = append(lines, fmt.Sprintf("failed: %s: %s", f.Suite, strings.TrimSpace(string(f.Outcome)+" "+f.Detail)))
	}
	lines = append(lines, limitLines(r.Limits)...)
	return append(slices.Clone(d.Tables), Table{Lines: append(lines, doubtLines(d.Doubts)...)})
}

// howMeasured explains how the figures were made, how reliable they are, and the words.
func howMeasured(r *rank.Ranking, d *Document) []Table {
	trust := append(append(factLines(d.Quality), limitLines(r.Limits)...), doubtLines(d.Doubts)...)
	return []Table{
		{Title: "How it was measured", Lines: d.Method}, {Title: "How far to trust it", Lines: trust},
		{Title: "The machine", Lines: factLines(d.Environment)}, {Title: "Words", Lines: factLines(Glossary)},
	}
}

func factLines(facts []Fact) (out []string) {
	for _, f := range facts {
		out = append(out, f.Name+": "+f.Value)
	}
	return out
}

func doubtLines(doubts []Doubt) (out []string) {
	for _, d := range doubts {
		out = append(out, "warning: "+d.String())
	}
	return out
}
