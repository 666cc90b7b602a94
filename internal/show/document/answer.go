package document

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Answer is the main result for a reader: which algorithms to use, the gain, and the commands for
// it. Every format uses these words.
type Answer struct {
	Says   []string // one or two sentences
	Config []string // lines of ssh_config(5); none where nothing needs to be changed
	Steps  []Step   // the next steps
}

// Step is something to do. Copy is to be typed exactly; it may be "".
type Step struct{ What, Copy, Note string }

// String returns the step with its note.
func (s Step) String() string {
	if s.Copy == "" || s.Note == "" {
		return s.Copy + s.Note
	}
	return s.Copy + "  (" + s.Note + ")"
}

// Further returns the steps without the lines of Config, which stand by themselves.
func (a Answer) Further() []Step { return a.Steps[min(len(a.Config), len(a.Steps)):] }

// Commands holds the commands that continue from a result.
type Commands struct {
	Advise  string // to its advice
	Undo    string // returns to the state before the answer was followed
	Resume  string // to more measurements
	Streams string // shows how many connections are worth it
	Report  string // to the same again, and to more of it
	Config  string // destination of the lines of an answer: the file that ssh reads in place of the user's own; "": the user's own

	measured time.Duration // so far
}

// longer returns a budget of all sittings, as a flag: times as much as was measured, which counts
// when a result is resumed, and at least a minute; and how long that takes.
func longer(measured time.Duration, times float64) (flag, takes string) {
	const step = 10 * time.Second
	budget := max(time.Minute, (time.Duration(times*float64(measured)) + step - 1).Truncate(step))
	return fmt.Sprintf("--budget %.0fs", budget.Seconds()), takesAbout(budget - measured)
}

// takesAbout words the time of a command.
func takesAbout(d time.Duration) string { return "takes about " + seconds(d) }

// All returns the command that shows everything.
func (c Commands) All() string { return c.Report + " --all" }

// config returns the file for the lines of an answer. A name that would leave no room for them is
// cut: the user has typed it.
func (c Commands) config() string {
	const most = 24
	if name := clean(cmp.Or(c.Config, "~/.ssh/config")); text.Width(name) <= most {
		return name
	}
	return text.Clip(".../"+clean(filepath.Base(c.Config)), most)
}

// Standard are the commands for the newest result.
var Standard = Commands{Advise: "sshpace advise", Undo: "sshpace advise --undo", Resume: "sshpace bench --resume FILE", Streams: "sshpace transfer --only own,streams", Report: "sshpace report"}

// AnswerOf puts a choice into words.
func AnswerOf(r *rank.Ranking, c *advise.Choice, commands Commands) Answer {
	w := wording{r, c}
	a := Answer{Says: text.NonEmpty(w.says()...)}
	for i := range a.Says {
		a.Says[i] = clean(a.Says[i])
	}
	if c.Tied == 0 {
		return a
	}
	a.Config = configLines(r, c)
	switch {
	case len(a.Config) > 0:
		for i, line := range a.Config {
			a.Steps = append(a.Steps, Step{[]string{"put into " + commands.config(), ""}[min(i, 1)], line, ""})
		}
		if r.Campaign.Server == record.ServerRemote { // the measurement says nothing about other hosts
			a.Steps[len(a.Steps)-1].Note = "below Host " + clean(r.Campaign.Target)
		}
		a.Steps = append(a.Steps, tryIt(commands), writeIt("or let sshpace do it", r, commands), Step{"undo it", commands.Undo + " client", "or remove the line"})
	case !c.Compares():
		a.Steps = []Step{{"compare", commands.Advise, "asks ssh what it uses now"}}
		if c.Present.Suite.Cipher != "" {
			a.Steps = []Step{{"compare", measuring(r), "measures what ssh uses now, too"}}
		}
	case c.Uncertain():
		flag, takes := longer(max(r.Campaign.BudgetNS, commands.measured), 2)
		a.Steps = []Step{{"measure longer", commands.Resume + " " + flag, takes}}
	case !c.Stays():
		a.Steps = []Step{tryIt(commands), writeIt("let sshpace write it", r, commands)}
	}
	if limiting(r) == narrows[record.LimitWindow] {
		a.Steps = append(a.Steps, Step{"use more connections", commands.Streams + " " + shell.Word(clean(r.Campaign.Target)), "shows how many pay"})
	}
	return a
}

// measuring returns the command that measures everything that a choice depends on.
func measuring(r *rank.Ranking) string {
	if r.Campaign.Server == record.ServerRemote {
		return shell.Line("sshpace", "bench", clean(r.Campaign.Target))
	}
	return "sshpace bench"
}

// tryIt returns the step that compares the advice with the present state.
func tryIt(commands Commands) Step {
	return Step{"try it first", commands.Advise + " --prove", "changes nothing"}
}

// writeIt returns the step by which sshpace writes the lines. A result of loopback says nothing
// about hosts: whoever wants it for all must say so.
func writeIt(what string, r *rank.Ranking, commands Commands) Step {
	s := Step{what, commands.Advise + " --write client", "edits ssh_config"}
	if r.Campaign.Server != record.ServerRemote {
		s.Copy += " --host '*'"
	}
	return s
}

// wording turns a choice into sentences.
type wording struct {
	r *rank.Ranking
	c *advise.Choice
}

// says returns the answer: better, equal, or not enough data.
func (w wording) says() []string {
	c := w.c
	present := w.present()
	switch {
	case c.Tied == 0:
		return w.none()
	case c.Present.Suite.Cipher == "":
		return []string{w.fastest(), "This result does not say what ssh uses now, so nothing is advised."}
	case len(c.Gains) == 0 && !c.Present.Refused:
		return []string{w.fastest(), "What ssh uses now (" + present + ") was not measured, so nothing is advised."}
	case len(c.Gains) == 0:
		return []string{fmt.Sprintf("Use %s: policy %s does not allow what ssh uses now (%s).", w.names(), c.Policy.Name, present)}
	case c.Stays() && c.Only():
		return []string{fmt.Sprintf("Keep %s: policy %s allows nothing else that both sides offer.", present, c.Policy.Name)}
	case c.Stays() && c.Elsewhere:
		return []string{fmt.Sprintf("Keep %s: %s is the limit here, not a CPU, so no cipher will help.", present, limiting(w.r))}
	case c.Stays():
		return []string{fmt.Sprintf("Keep %s: nothing that policy %s allows %s here.", present, c.Policy.Name,
			w.by("saves more than "+stats.MarginWords+" of the CPU time", "is more than "+stats.MarginWords+" faster")), w.limit()}
	case c.Matters():
		return []string{fmt.Sprintf("%s %s here than what ssh uses now (%s): %s.", w.names(), w.better(), present, w.gains()), w.meaning()}
	case c.Present.Option < 0:
		return []string{fmt.Sprintf("Use %s: policy %s does not allow what ssh uses now (%s).", w.names(), c.Policy.Name, present), title(w.gains()) + " against it."}
	}
	return []string{fmt.Sprintf("Not enough data yet to say whether another cipher %s here than %s, which ssh uses now.", w.better(), present), w.leader()}
}

// none says that the policy allows nothing, and which algorithms there are.
func (w wording) none() []string {
	says := []string{fmt.Sprintf("Policy %s allows none of the combinations that were measured.", w.c.Policy.Name)}
	if len(w.r.Bulk) == 0 {
		return says
	}
	best := w.r.Bulk[0]
	says = append(says, fmt.Sprintf("The fastest of them is %s, %s.", text.Clip(label(best.Suite), text.Columns/2), unit.Throughput(speedOf(best))))
	if w.r.Campaign.Server == record.ServerRemote {
		says = append(says, "Have the server offer a modern cipher: check its Ciphers line and the version of its software.")
	}
	return says
}

// names returns the names of the best options, shortened if there are many.
func (w wording) names() string {
	var names []string
	for _, o := range w.c.Use() {
		names = append(names, label(o.Suite))
	}
	const most = 2
	if n := len(names) - most; n > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, " or ")
}

func (w wording) present() string { return label(w.c.Present.Suite) }

// by picks the words of a ranking by CPU cost, or of one by speed.
func (w wording) by(cost, speed string) string {
	if w.r.By == rank.Cost {
		return cost
	}
	return speed
}

// better returns the predicate of the better option: "is faster", or "takes less CPU time".
func (w wording) better() string { return w.by("takes less CPU time", "is faster") }

// fastest names the best option where there is nothing to compare it with.
func (w wording) fastest() string {
	return fmt.Sprintf("Best of all that policy %s allows: %s, %s.", w.c.Policy.Name, w.names(), speeds(w.c.Use()))
}

// gains returns the ratios, one for each direction.
func (w wording) gains() string {
	var words []string
	for _, g := range w.c.Gains {
		word := w.gain(g)
		if len(w.c.Gains) > 1 {
			word = string(g.To.Direction) + " " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// gain returns the ratio that decides, with the speeds where there is one direction.
func (w wording) gain(g advise.Gain) string {
	q := g.Decides(w.r.By)
	if q == nil {
		return "unknown"
	}
	if w.r.By == rank.Cost {
		return saving(q) + " less"
	}
	out := q.Times()
	if from, to := speedOf(g.From), speedOf(g.To); len(w.c.Gains) == 1 && from > 0 {
		out += fmt.Sprintf(", %s instead of %s", unit.Digits(to/1e6), unit.Throughput(from))
	}
	return out
}

// saving returns the share that a ratio of costs saves: "44 % (38-50)".
func saving(q *stats.Interval) string {
	saved := q.Mapped(func(ratio float64) float64 { return 100 * (1 - 1/ratio) })
	return saved.Shown(func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }, " %")
}

// meaning describes the other effects of a change, or the cases without effect.
func (w wording) meaning() string {
	g := w.c.Gains[0]
	less := g.Cost != nil && g.Cost.Verdict() == stats.Better
	if from := speedOf(g.From); w.r.Campaign.Server != record.ServerRemote && from > 0 {
		text := fmt.Sprintf("On links slower than %s Gbit/s transfers are not faster", unit.Digits(from*8/1e9))
		if less {
			text += "; they only use less CPU"
		}
		return text + "."
	}
	if less && w.r.By != rank.Cost {
		who := "Both sides use"
		if !g.From.Server.Known() || !g.To.Server.Known() {
			who = "The client uses"
		}
		return fmt.Sprintf("%s %s less CPU.", who, saving(g.Cost))
	}
	return ""
}

// limit says that no cipher can help, if that is so.
func (w wording) limit() string {
	if w.c.Limited(w.r) {
		return ""
	}
	return title(limiting(w.r)) + " is the limit, not a CPU: no cipher will help."
}

// leader returns a sentence about the option that looks best, where that is not certain.
func (w wording) leader() string {
	var words []string
	if w.c.Present.Option == 0 {
		words = append(words, "Nothing "+w.by("took less CPU time", "was faster")+" so far")
	} else {
		words = append(words, fmt.Sprintf("%s leads so far: %s%s", label(w.c.Options[0].Suite), w.gains(), w.chance()))
		if slices.ContainsFunc(w.c.Gains, func(g advise.Gain) bool { return g.ByChance(w.r.By) }) {
			words[0] += fmt.Sprintf(", which the best of %d may reach by chance", len(w.c.Options)-1)
		}
	}
	if w.c.Unseen > 0 {
		words = append(words, unit.Count(w.c.Unseen, "combination")+" of cipher and MAC not measured yet")
	}
	return strings.Join(words, "; ") + "."
}

// chance returns the probability that the leader is better, by its own figures.
func (w wording) chance() string {
	least := 1.0
	for _, g := range w.c.Gains {
		least = min(least, g.Chance)
	}
	if len(w.c.Gains) == 0 || least < 0.5 {
		return ""
	}
	return fmt.Sprintf(", %s with a chance of %.0f %%", w.by("less CPU time", "faster"), math.Min(99, 100*least))
}

// speeds returns the speeds of options, as ranges, in each direction.
func speeds(options []rank.Row) string {
	var out []string
	for i, of := range options[0].Cells {
		way := ""
		if len(options[0].Cells) > 1 {
			way = " " + string(of.Direction)
		}
		if speed := span(cells(options, i), speedOf, 1e6); speed != "-" {
			out = append(out, speed+" MB/s"+way)
		}
	}
	if len(out) == 0 {
		return "by CPU time"
	}
	return strings.Join(out, ", ")
}

// theWindow names OpenSSH's window.
var theWindow = "the window of " + unit.ChannelWindow.String()

// narrows are limits that no cipher changes.
var narrows = map[string]string{
	record.LimitWindow: theWindow, record.LimitLink: "the link", record.LimitLosses: "the link, which loses packets,",
}

// limiting names the limit of transfers to a host if it is not a CPU, as far as it was found and is
// the same in all directions.
func limiting(r *rank.Ranking) string {
	var found []string
	for _, l := range r.Limits {
		found = append(found, narrows[l.What])
	}
	if found = slices.Compact(found); len(found) == 1 && found[0] != "" {
		return found[0]
	}
	return "the link, " + theWindow + " or a disk"
}

// configLines puts the best options first and leaves all others enabled. There are none where
// nothing needs to be changed, or the client is too old for lists with ^.
func configLines(r *rank.Ranking, c *advise.Choice) []string {
	if !advise.Prepends(r.Environment.Client) {
		return nil
	}
	var out []string
	for _, kind := range alg.Measured {
		if names := c.First(kind); len(names) > 0 {
			out = append(out, kind.Keyword()+" ^"+clean(strings.Join(names, ",")))
		}
	}
	return out
}
