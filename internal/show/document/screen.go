package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// The first screen has at most screenLines lines: what to use, the options that the
// policy allows, and how far to trust it. What it says is in doubt stands on it.
const (
	screenLines = 40
	optionRows  = 9 // of one direction, where all fits
	fewestRows  = 1
	loginRows   = 3
	barLength   = 10
	nameWidth   = 31
	nearCore    = 0.6 // share of a core from which on it is what limits
)

// screen is what a report shows first, and bench at its end.
type screen struct {
	r      *rank.Ranking
	c      *advise.Choice
	answer Answer
	o      Options
	rows   int  // of one direction
	terse  bool // without explanations of words
}

// blocks leaves out rows that do not matter where all is too long, then the
// explanations of words, then more rows.
func (s screen) blocks() []Block {
	fewest := max(fewestRows, min(s.c.Tied, optionRows))
	for _, s.terse = range []bool{false, true} {
		for s.rows = optionRows; s.rows >= fewest; s.rows-- {
			if out := s.all(); s.o.Limit != 0 || length(out) <= screenLines {
				return out
			}
		}
		fewest = fewestRows
	}
	s.rows = fewestRows
	return s.all()
}

// length counts the lines of blocks, and those between them.
func length(blocks []Block) int {
	n := len(blocks) - 1
	for _, b := range blocks {
		n += len(b.Heads) + len(b.Rows) + len(b.Lines)
		if b.Title != "" {
			n++
		}
	}
	return n
}

func (s screen) all() []Block {
	out := s.opening()
	for i, d := range s.r.Directions() {
		out = append(out, s.options(i, d))
	}
	if len(s.r.Kex) > 0 {
		out = append(out, s.logins())
	}
	if len(s.r.Measurements) > 0 {
		out = append(out, briefMeasurements(s.r.Measurements))
	}
	return append(out, Block{Lines: s.foot()})
}

// opening is what stands above a long report.
func (s screen) opening() []Block {
	out := []Block{{Lines: s.head()}}
	if len(s.r.Bulk) > 0 {
		out = append(out, Block{Lines: s.answerLines()})
	}
	return out
}

// head says what was measured, and how noisy that was.
func (s screen) head() []string {
	return append(hanging("", s.what()), hanging("", strings.Join(nonEmpty(processors(s.r.Environment), Noise(s.r)), ", "))...)
}

// what names the programs, the machine and the length of the run.
func (s screen) what() string {
	e, c := s.r.Environment, s.r.Campaign
	where := "SSH to " + orUnknown(c.Target)
	if c.Server != record.ServerRemote && c.Imported == "" {
		where = "SSH on one machine, over loopback"
	}
	if s.o.Here {
		where = strings.Replace(where, "one", "this", 1)
	}
	client := release(e.Client)
	if server := release(e.Server); server != "" && !strings.HasPrefix(client, server) {
		client += " to " + server
	}
	words := nonEmpty(client, library(e.Crypto), lasted(c, s.o.Measured))
	return where + ": " + strings.Join(words, ", ")
}

// release is a version without what a distribution adds to it: "OpenSSH 9.2p1".
func release(version string) string {
	name, _, _ := strings.Cut(version, " (")
	if first, _, more := strings.Cut(name, " "); more && strings.Contains(first, "_") {
		name = first
	}
	return strings.ReplaceAll(name, "_", " ")
}

// library is the name and version of the crypto library, without its date.
func library(s string) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(2, len(words))], " ")
}

func processors(e record.Environment) string {
	if e.CPU == "" || e.Cores == 0 {
		return e.CPU
	}
	return fmt.Sprintf("%s (%s)", unit.Count(e.Cores, "core"), e.CPU)
}

func lasted(c record.Campaign, measured time.Duration) string {
	if measured = cmp.Or(measured, c.BudgetNS); measured > 0 {
		return seconds(measured)
	}
	return ""
}

// seconds is a length of time as people say it.
func seconds(d time.Duration) string {
	if d < 10*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// columns is the width of the screen.
const columns = 80

// step is a line to copy, with what it is for before it and after it.
type step struct{ label, copy, note string }

// lines never break what is to be copied: where it has no room beside the words, it
// stands on a line of its own, whole, however long it is.
func (s step) lines() []string {
	line := strings.TrimRight(s.label+s.copy+"  "+s.note, " ")
	if len([]rune(line)) <= columns {
		return []string{line}
	}
	return append(hanging("", strings.TrimRight(s.label, " ")+" "+s.note), unbroken(s.copy))
}

// unbroken is a text that no writer breaks into lines.
func unbroken(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }

// hanging breaks a text into lines of a screen's width, those after the first as far
// in as prefix is long.
func hanging(prefix, text string) []string {
	var out []string
	line := prefix
	for _, word := range strings.SplitAfter(strings.ReplaceAll(text, " %", unbroken(" %")), " ") {
		if len([]rune(line+strings.TrimRight(word, " "))) > columns && strings.TrimSpace(line) != "" {
			out = append(out, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len([]rune(prefix)))
			if len(line)+len([]rune(word)) > columns { // a path, which is not broken
				line = "    "
			}
		}
		line += word
	}
	if strings.TrimSpace(line) != "" {
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}

// Noise says in one line what else the machine did, and what is noise for it; "" where
// no transfer was measured.
func Noise(r *rank.Ranking) string {
	if len(r.Bulk) == 0 {
		return ""
	}
	var words []string
	if r.Slowed.Busy() {
		words = append(words, fmt.Sprintf("%.1f of them busy with other programs", r.Slowed.Foreign))
	}
	switch slowed := r.Slowed.Percent(); {
	case slowed >= 1 && r.Slowed.Busy():
		words = append(words, fmt.Sprintf("slowed %.0f %% (not corrected)", slowed))
	case slowed >= 1:
		words = append(words, fmt.Sprintf("slowed %.0f %% by other guests or work (not corrected)", slowed))
	}
	by := map[rank.By]string{rank.Cost: "CPU", rank.Throughput: "speed"}[r.By]
	if tie := r.Tie(); tie > 0 && r.Campaign.Server != record.ServerRemote { // pairs have intervals of their own
		words = append(words, fmt.Sprintf("%s differences under %s %% are ties", by, Percent(tie)))
	}
	if r.Merged {
		words = append(words, "one letter: tied, or the order depends on other guests")
	}
	if r.By == rank.Cost {
		words = append(words, "sorted by "+r.CostSide()+"'s CPU")
	}
	return strings.Join(words, "; ")
}

func (s screen) answerLines() []string {
	var out []string
	last := ""
	for _, f := range s.answer.Facts {
		name := f.Name
		if name == last {
			name = ""
		}
		last = f.Name
		prefix := fmt.Sprintf("  %-5s ", name)
		if f.Name == Do && slices.Contains(s.answer.Config, f.Value) {
			out = append(out, step{label: prefix, copy: f.Value}.lines()...)
			continue
		}
		out = append(out, hanging(prefix, f.Value)...)
	}
	for _, step := range s.answer.steps() {
		out = append(out, step.lines()...)
	}
	return out
}

// options is the table of what the policy allows in one direction.
func (s screen) options(direction int, d record.Direction) Block {
	if s.c.Tied == 0 && len(s.r.Bulk) <= optionRows {
		return briefBulk(s.r, d) // nothing is allowed: show what there is
	}
	title := fmt.Sprintf("%s, policy %s", strings.ToUpper(orTransfer(d)), s.c.Policy.Name)
	b := Block{
		Fields: []Field{{Width: 1}, {Width: nameWidth}, {Width: 3}, {Width: 8, Right: true}, {Width: barLength}, {Width: 9, Right: true}, {Width: 11, Right: true}},
		Heads:  [][]string{{"", "", "", "MB/s", "", "CPU s/GB", "connections"}},
	}
	rows := foldOptions(s.c, direction, s.r.Campaign.Offer)
	best := s.longest(rows)
	shown := s.shown(len(rows), s.rows)
	for i := 0; i < len(rows); i++ {
		hidden := s.hidden(rows[i:], shown-i)
		if hidden > 1 { // one takes no more room than saying so
			what := "between"
			if i += hidden; i == len(rows) {
				what = "more"
			}
			b.Rows = append(b.Rows, restRow(hidden, what, "report --limit 0"))
		}
		if i < len(rows) {
			b.Rows = append(b.Rows, s.optionRow(rows[i], best)...)
		}
	}
	b.Title = title + s.orderedBy()
	b.Rows = append(b.Rows, s.refused(d))
	b.Rows = slices.DeleteFunc(b.Rows, func(row []string) bool { return row == nil })
	return b
}

// hidden is how many rows are left out here, if the first ones are shown. What is used
// now always stands there, to compare with.
func (s screen) hidden(rows []folded, shown int) int {
	if shown > 0 {
		return 0
	}
	if i := slices.IndexFunc(rows, func(f folded) bool { return f.holds(s.c.Present.Suite) }); i >= 0 {
		return i
	}
	return len(rows)
}

// shown is how many rows of a table there is room for.
func (s screen) shown(rows, room int) int {
	if s.o.Limit > 0 {
		room = s.o.Limit
	}
	if s.o.Limit < 0 || rows == room+1 { // one more takes no more room than saying so
		return rows
	}
	return min(rows, room)
}

func restRow(n int, what, flag string) []string {
	if n <= 0 {
		return nil
	}
	return []string{"", fmt.Sprintf("%d %s: %s", n, what, flag)}
}

// orderedBy says what orders the rows, where that is not the speed.
func (s screen) orderedBy() string {
	if s.r.By != rank.Cost {
		return ""
	}
	return ", by CPU"
}

// longest is what the longest bar stands for.
func (s screen) longest(rows []folded) float64 {
	longest := 0.0
	for _, row := range rows {
		longest = max(longest, s.barOf(row))
	}
	return longest
}

// barOf is the mean speed of a row, or how much a second of CPU moves where there
// is none.
func (s screen) barOf(f folded) float64 {
	sum, n := 0.0, 0
	for _, c := range f.cells {
		v := speedOf(c)
		if cost := s.r.Busiest(c); s.r.By == rank.Cost && cost != nil {
			v = 1e9 / cost.Value
		}
		if v > 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(1, n))
}

// optionRow is one row, or two where the name is long: it is never cut, for it can be
// typed.
func (s screen) optionRow(f folded, best float64) [][]string {
	group := f.cells[0].Group
	now := ""
	if f.holds(s.c.Present.Suite) {
		now = Now
	}
	bar := ""
	if best > 0 {
		bar = strings.Repeat("#", max(1, int(math.Round(barLength*s.barOf(f)/best))))
	}
	row := []string{group, f.name(), now, span(f.cells, speedOf, 1e6), bar, span(f.cells, costOf, 1), connections(f.cells)}
	if len(f.name()) <= nameWidth {
		return [][]string{row}
	}
	head := []string{group, f.name()}
	row[0], row[1] = "", ""
	return [][]string{head, row}
}

// connections counts what stands behind the figures of cells.
func connections(cells []rank.Cell) string {
	n := 0
	for _, c := range cells {
		n += connectionsOf(c)
	}
	if n == 0 {
		return "predicted"
	}
	return fmt.Sprint(n)
}

// refused says what the table leaves out.
func (s screen) refused(d record.Direction) []string {
	var cells []rank.Cell
	for _, c := range s.r.Bulk {
		if c.Direction == d && !s.c.Policy.Allow(s.r, c.Suite) {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		return nil
	}
	what := "less safe"
	if s.c.Policy.Name != "modern" {
		what = "others"
	}
	return []string{"", fmt.Sprintf("%d %s: report --all", len(cells), what), "", span(cells, speedOf, 1e6)}
}

// logins is the table of key exchanges.
func (s screen) logins() Block {
	l := s.c.Logins
	b := Block{
		Title:  "LOGIN, once per connection" + s.loginOrder(),
		Fields: []Field{{Width: 1}, {Width: nameWidth + 3}, {Width: 3}, {Width: 9, Right: true}, {Width: 18, Right: true}, {}},
		Heads:  [][]string{{"", "", "", "ms", "CPU ms, both sides", ""}},
	}
	keep := s.shown(len(l.Options), loginRows)
	for i, k := range l.Options {
		if i >= keep && i != l.Present {
			continue
		}
		b.Rows = append(b.Rows, s.loginRow(i, k))
	}
	b.Rows = append(b.Rows, hiddenLogins(len(l.Options)-len(b.Rows), l.Refused)...)
	if l.PostQuantum > 0 && len(l.Options) > 0 && l.Options[0].PostQuantum {
		b.Lines = append(b.Lines, fmt.Sprintf("  PQ is safe against quantum computers, too, for ~%s ms more CPU: keep it", Figure(l.PostQuantum/1e6)))
	}
	return b
}

// hiddenLogins says what the table of key exchanges leaves out, in one row.
func hiddenLogins(more, refused int) [][]string {
	var words []string
	if more > 0 {
		words = append(words, fmt.Sprintf("%d more: report --limit 0", more))
	}
	if refused > 0 {
		words = append(words, fmt.Sprintf("%d less safe: report --all", refused))
	}
	if len(words) == 0 {
		return nil
	}
	return [][]string{{"", strings.Join(words, "; ")}}
}

// loginOrder says what orders the key exchanges.
func (s screen) loginOrder() string {
	by := map[rank.By]string{rank.Cost: "CPU", rank.Throughput: "time"}[s.r.KexBy]
	if options := s.c.Logins.Options; len(options) > 1 && options[0].PostQuantum && !options[len(options)-1].PostQuantum {
		return ": post-quantum (PQ) first, then by " + by
	}
	return ", by " + by
}

func (s screen) loginRow(i int, k rank.Exchange) []string {
	now, mark := "", ""
	if i == s.c.Logins.Present {
		now = Now
	}
	if k.PostQuantum {
		mark = "PQ"
	}
	cpu := "-"
	if total := k.CPU(); total > 0 {
		cpu = Figure(total / 1e6)
	}
	return []string{"", kexName(k.Name, s.r.Campaign.Offer.Kex), now, shown(k.Login, 1e6), cpu, mark}
}

// kexName is what to type for a key exchange.
func kexName(name string, all []string) string {
	if len(name) > nameWidth+4 {
		return pattern([]string{name}, all)
	}
	return text(name)
}

// foot says what limits, how far to trust it, and where more is.
func (s screen) foot() []string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, hanging(fmt.Sprintf("%-12s ", name), value)...)
		}
	}
	addAll := func(name string, values []string) {
		for _, value := range values {
			add(name, value)
			name = "" // it stands once, before the first
		}
	}
	addAll("WHAT LIMITS", s.limits())
	addAll("TRUST", s.trust())
	addAll("NOTE", s.notes())
	if len(s.r.Bulk) > 0 && !s.terse {
		add("WORDS", "CPU s/GB: seconds of CPU per GB, both sides together; [a-b]: where 95 % of repeated runs find it; one letter: tied")
	}
	add("FILE", cmp.Or(s.o.Shown, s.o.File))
	if len(s.r.Bulk) > 0 {
		add("MORE", "sshpace report --all | --method | --out report.html; sshpace advise")
	}
	return out
}

// limits says what bounds a transfer: what was found while one went on, or else what
// the figures say of the best option.
func (s screen) limits() []string {
	var out []string
	for _, l := range s.r.Limits {
		line := cmp.Or(l.Sentence, l.What)
		if rate := l.Evidence.BytesPerSecond; rate > 0 && l.Suite == (alg.Suite{}) {
			line = fmt.Sprintf("in a separate transfer as now, %s MB/s: %s", Figure(rate/1e6), line)
		}
		if len(s.r.Limits) > 1 {
			line = fmt.Sprintf("%s: %s", l.Direction, line)
		}
		if out = append(out, text(line)); l.Help != "" {
			out = append(out, text("what helps: "+s.helps(l)))
		}
	}
	if len(out) == 0 {
		out = append(out, s.bound())
	}
	return nonEmpty(out...)
}

// helps says what helps against a limit. Where that is none of a cipher's, and a cipher is
// faster for all that, the limit leaves no more than what is gained so.
func (s screen) helps(l record.Limit) string {
	name, narrow := narrows[l.What]
	gains := slices.ContainsFunc(s.c.Gains, func(g rank.Gain) bool { return g.To.Direction == l.Direction && g.Verdict == stats.Better })
	if !narrow || !gains || !s.c.Matters() {
		return l.Help
	}
	beyond, _, _ := strings.Cut(l.Help, "; no ") // cipher, MAC or other setting
	return fmt.Sprintf("%s is the limit now and leaves a cipher or MAC only the GAIN above; for more, %s", name, beyond)
}

// bound says what the figures say that bounds the best option; "" if nothing.
func (s screen) bound() string {
	if s.c.Tied == 0 {
		return ""
	}
	cell := s.c.Options[0].Cells[0]
	name := label(cell.Suite)
	if c := s.r.Ceilings; c != nil && c.Limiting != "" {
		for _, row := range c.Rows {
			if row.Name == c.Limiting {
				return fmt.Sprintf("%s: at most %s MB/s; %s reaches %.0f %% of it", row.Name, Figure(row.Limit/1e6), label(c.Cell.Suite), 100*row.Share)
			}
		}
	}
	cost := s.r.Busiest(cell)
	switch {
	case cost == nil || cost.Value <= 0:
		return ""
	case s.r.Campaign.Server == record.ServerRemote && !s.c.Limited(s.r):
		return limiting(s.r) + ": ssh needs less than a core"
	case s.r.Campaign.Server != record.ServerRemote && speedOf(cell)*cost.Value/1e9 < nearCore:
		return fmt.Sprintf("other work: one core alone moves %s MB/s with %s", Figure(1e3/cost.Value), name)
	}
	return fmt.Sprintf("one core moves %s MB/s with %s; a link: sshpace bench HOST", Figure(1e3/cost.Value), name)
}

// trust says what the figures rest on.
func (s screen) trust() []string {
	if len(s.r.Bulk) == 0 {
		return nil
	}
	out := []string{basis(s.r)}
	if s.c.Tied > 0 {
		out[0] += s.doubt(s.c.Options[0].Cells[0])
	}
	for _, w := range s.r.Warnings {
		if w.Name == rank.Throttled {
			out = append(out, text(w.Text+"; "+w.Hint))
		}
	}
	apart := 0
	for _, c := range s.r.Controls {
		if c.Separated {
			apart++
		}
	}
	if n := len(s.r.Controls); apart > 1 { // a note says of each
		out = append(out, fmt.Sprintf("the same work under two names came out equal in %d of %s", n-apart, unit.Count(n, "pair")))
	}
	return out
}

// doubt says how far a cell's figures may be off in another run: mostly by what all
// cells have in common.
func (s screen) doubt(c rank.Cell) string {
	var words []string
	for _, figure := range []struct {
		of string
		q  *rank.Quantity
	}{{"speed", c.Throughput}, {"CPU", s.r.Busiest(c)}} {
		if figure.q != nil && figure.q.Lo != figure.q.Hi {
			words = append(words, fmt.Sprintf("%s by %s %%", figure.of, Percent(100*figure.q.HalfWidth())))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; another run may shift all, " + strings.Join(words, ", ") + ": trust the ratios"
}

// told are the doubts that the head of the screen says in its own words.
var told = []string{"slowed", "noise", "by-cost", "one-core", "drift", "foreign", rank.Throttled}

// notes are the other doubts, with what to do.
func (s screen) notes() []string {
	var out []string
	for _, w := range s.r.Warnings {
		if slices.Contains(told, w.Name) {
			continue
		}
		line := text(w.Text)
		if w.Hint != "" {
			line += "; " + text(w.Hint)
		}
		out = append(out, line)
	}
	const most = 3
	if n := len(out) - most; n > 0 {
		out = append(out[:most], fmt.Sprintf("%d more: report --method", n))
	}
	return out
}

// connectionsOf is how many connections stand behind a cell.
func connectionsOf(c rank.Cell) int {
	n := 0
	for _, q := range []*rank.Quantity{c.Throughput, c.Client} {
		if q != nil && c.Basis == rank.Measured {
			n = max(n, q.N)
		}
	}
	return n
}
