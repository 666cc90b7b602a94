package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Answer is what a reader came for: what to use, what is used now, what changing
// gains, and the lines to write for it. Every format shows it in these words.
type Answer struct {
	Facts  []Fact   // USE, NOW, GAIN, DO; a name may stand several times
	Config []string // lines of ssh_config(5); none where nothing needs to be changed
	Add    string   // the command that adds them, and the one that measures what they gain
	Check  string
	Scope  string // the hosts that Add is for
}

// Names of the facts of an answer.
const (
	Use  = "USE"
	Now  = "NOW"
	Gain = "GAIN"
	Do   = "DO"
)

// AnswerOf puts a choice into words. advise is the command line that leads to it.
func AnswerOf(r *rank.Ranking, c *advise.Choice, advise string) Answer {
	a := Answer{}
	add := func(name string, values ...string) {
		for _, v := range values {
			a.Facts = append(a.Facts, Fact{name, text(v)})
		}
	}
	if c.Tied == 0 {
		add(Use, fmt.Sprintf("nothing that was measured is allowed by policy %s", c.Policy.Name))
		return a
	}
	add(Use, useText(c))
	if now := nowText(r, c); now != "" {
		add(Now, now)
	}
	add(Gain, gainTexts(r, c)...)
	a.Config = configLines(r, c)
	switch {
	case len(a.Config) > 0:
		add(Do, a.Config...)
		if c.Logins.Forbids {
			add(Do, "(policy "+c.Policy.Name+" refuses the key exchange that is used now)")
		}
	case c.Stays():
		add(Do, "keep it: nothing needs to be changed")
	case c.Uncertain():
		add(Do, "nothing yet; go on measuring: sshpace bench --resume FILE --budget 60s")
	default:
		add(Do, advise+" says what to write: this client is too old for a single line")
	}
	if len(a.Config) > 0 || !c.Stays() && !c.Uncertain() {
		a.Add, a.Check = advise+" --write client", advise+" --prove"
		a.Scope = "that host"
		if r.Campaign.Server != record.ServerRemote {
			a.Add += " --host '*'" // it says nothing of hosts: who asks for all says so
			a.Scope = "all hosts"
		}
	}
	return a
}

// steps are the commands that add and check the lines.
func (a Answer) steps() []step {
	if a.Add == "" {
		return nil
	}
	return []step{
		{"        try it:   ", a.Check, "(changes nothing)"}, {"        write it: ", a.Add, "(" + a.Scope + ")"},
		{label: "        ^ puts these first in ~/.ssh/config; all others stay allowed"},
	}
}

// useText names the best options with their figures.
func useText(c *advise.Choice) string {
	var names []string
	for _, o := range c.Use() {
		names = append(names, label(o.Suite))
	}
	const most = 3
	text := strings.Join(names[:min(len(names), most)], " or ")
	switch {
	case len(names) > most:
		text += fmt.Sprintf(" or %d more", len(names)-most)
	}
	if len(names) > 1 {
		text += " (tied)"
	}
	return text + "  " + figuresText(c.Use())
}

// figuresText is what options reach, as ranges, in each direction.
func figuresText(options []advise.Option) string {
	var speeds, costs []string
	for i, of := range options[0].Cells {
		var cells []rank.Cell
		for _, o := range options {
			cells = append(cells, o.Cells[i])
		}
		way := ""
		if len(options[0].Cells) > 1 {
			way = map[record.Direction]string{record.Upload: " up", record.Download: " down"}[of.Direction]
		}
		if speed := span(cells, speedOf, 1e6); speed != "-" {
			speeds = append(speeds, speed+way)
		}
		if cost := span(cells, costOf, 1); cost != "-" {
			costs = append(costs, cost+way)
		}
	}
	var out []string
	if len(speeds) > 0 {
		out = append(out, strings.Join(speeds, ", ")+" MB/s")
	}
	if len(costs) > 0 {
		out = append(out, strings.Join(costs, ", ")+" CPU s/GB")
	}
	return strings.Join(out, "  ")
}

// nowText names what is negotiated now; "" where that is unknown.
func nowText(r *rank.Ranking, c *advise.Choice) string {
	s := c.Present.Suite
	if s.Cipher == "" {
		return ""
	}
	out := label(s.Bulk())
	if c.Present.Default {
		out += " (OpenSSH's default)"
	} else {
		out += " (by ssh_config)"
	}
	option := advise.Option{Suite: s}
	for _, d := range r.Directions() {
		cell, ok := r.Find(s, d)
		if !ok {
			return out + "  not measured"
		}
		option.Cells = append(option.Cells, cell)
	}
	if c.Present.Option < 0 {
		out += ", not in policy " + c.Policy.Name
	}
	return out + "  " + figuresText([]advise.Option{option})
}

// gainTexts says what changing gains, a line for each direction.
func gainTexts(r *rank.Ranking, c *advise.Choice) []string {
	switch {
	case c.Stays():
		return nonEmpty(fmt.Sprintf("none: nothing else is more than %.0f %% faster", 100*stats.Margin), limitText(r, c))
	case c.Present.Suite.Cipher == "":
		return []string{"not known: this result does not say what is used now"}
	case len(c.Gains) == 0:
		return []string{"not known: what is used now was not measured"}
	}
	var out []string
	if c.Uncertain() {
		out = append(out, doubtText(c))
	}
	for _, g := range c.Gains {
		line := gainText(g)
		if len(c.Gains) > 1 {
			line = string(g.To.Direction) + " " + line
		}
		if slow := slowLink(r, g); slow > 0 {
			line += fmt.Sprintf("; over a link under %s MB/s (%s Gbit/s) no faster, only less CPU", Figure(slow/1e6), Figure(slow*8/1e9))
		}
		out = append(out, line)
	}
	return out
}

// limitText says that no cipher can help, where that is so.
func limitText(r *rank.Ranking, c *advise.Choice) string {
	if c.Limited(r) {
		return ""
	}
	return limiting(r) + " is the limit, not a CPU: no cipher will help"
}

// narrows are limits that no cipher changes.
var narrows = map[string]string{"window": "the window of 2 MiB", "link": "the link", "losses": "the link, which loses packets,"}

// limiting names what limits a transfer to a host where that is no CPU, as far as that was found out
// and is the same in all directions.
func limiting(r *rank.Ranking) string {
	var found []string
	for _, l := range r.Limits {
		found = append(found, narrows[l.What])
	}
	if found = slices.Compact(found); len(found) == 1 && found[0] != "" {
		return found[0]
	}
	return "the link, the window of 2 MiB or a disk"
}

// doubtText says what is missing for an answer.
func doubtText(c *advise.Choice) string {
	text := "not enough data to tell"
	if c.Unseen > 0 {
		text += fmt.Sprintf("; not measured yet: %s", unit.Count(c.Unseen, "choice"))
	}
	if c.Present.Option == 0 {
		return text + "; nothing was faster so far"
	}
	return text + "; " + label(c.Options[0].Suite) + " leads, " + chanceText(c.Gains)
}

// chanceText is how likely a change is to gain something, by what is known so far.
func chanceText(gains []rank.Gain) string {
	var words []string
	for _, g := range gains {
		word := fmt.Sprintf("%.0f %% likely to be faster", 100*g.Chance)
		if len(gains) > 1 {
			word = string(g.To.Direction) + " " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// slowLink is the speed of a link, in bytes per second, below which what is used now
// is as fast as all others; 0 where nothing is faster, or a link was measured.
func slowLink(r *rank.Ranking, g rank.Gain) float64 {
	if g.Throughput == nil || g.Throughput.Lo <= 1 || r.Campaign.Server == record.ServerRemote {
		return 0
	}
	return speedOf(g.From)
}

// gainText is one direction. A ratio whose interval holds 1 is no gain.
func gainText(g rank.Gain) string {
	var words []string
	if g.Throughput != nil {
		words = append(words, ratioText(*g.Throughput, "speed", "speed", "slower"))
	}
	if g.Cost != nil {
		words = append(words, ratioText(*g.Cost, "CPU", "less CPU", "more CPU"))
	}
	return strings.Join(words, ", ")
}

// ratioText is a ratio with what it is of where it is above 1, and below.
func ratioText(q rank.Quantity, of, above, below string) string {
	switch {
	case q.Lo > 1:
		return q.Times() + " " + above
	case q.Hi < 1:
		return rank.Quantity{Value: 1 / q.Value, Lo: 1 / q.Hi, Hi: 1 / q.Lo}.Times() + " " + below
	}
	return q.Times() + " " + of
}

// configLines puts the best options first and leaves all others enabled. None where
// nothing needs to be changed, or the client is too old for lists with ^.
func configLines(r *rank.Ranking, c *advise.Choice) []string {
	if !advise.Prepends(r.Environment.Client) {
		return nil
	}
	var out []string
	for _, k := range advise.Keywords {
		if names := c.First(k.Kind); len(names) > 0 {
			out = append(out, k.Name+" ^"+text(strings.Join(names, ",")))
		}
	}
	return out
}
