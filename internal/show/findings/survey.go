package findings

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// surveySchema names the layout of the JSON form.
const surveySchema = "sshpace.survey/1"

// Survey is the report of the logins of a fleet.
type Survey struct {
	Schema  string          `json:"schema"`
	Target  string          `json:"target"`
	Whole   bool            `json:"complete"` // otherwise hosts that were not reached in time are missing
	Reached int             `json:"logged_in"`
	Login   *stats.Interval `json:"login_ns,omitempty"` // median, and the range of nine of ten
	Busy    float64         `json:"busy_pct"`           // of the time of all logins, this machine was busy
	Groups  []*Group        `json:"groups"`             // of hosts, in the order of the kinds
	Ciphers []string        `json:"ciphers"`            // that all hosts take, and are sound
	Gain    []string        `json:"gain,omitempty"`     // of the fastest of them, in words
	Since   string          `json:"since,omitempty"`    // of an earlier survey: when it began, RFC 3339
	Hosts   []record.Host   `json:"hosts"`

	fold func([]string) string
	same func(text, host string) string
}

// Group is hosts with the same finding.
type Group struct {
	Kind  string          `json:"kind"`
	Check string          `json:"check,omitempty"`
	What  string          `json:"what"`
	Set   string          `json:"set"`
	Hosts []string        `json:"hosts"`
	Cost  *stats.Interval `json:"cost_ns,omitempty"` // median and range
	Where string          `json:"where,omitempty"`
	Do    string          `json:"do,omitempty"`

	breaks bool
	costs  []float64
	own    string // the failure of the first host, with its name
}

// The kinds of groups, in order, with their headings.
var (
	groupKinds  = []string{"cause", "failure", "change", "version", "algorithm"}
	groupTitles = []string{"Causes of slow logins, the costliest first", "Failed logins", "Changes since ", "Servers", "Algorithms"}
)

// SurveyOf returns the report of a record file with hosts. fold writes names of hosts as a set, and
// same a failure as all hosts have it.
func SurveyOf(f *record.File, fold func([]string) string, same func(text, host string) string) *Survey {
	r := &Survey{Schema: surveySchema, Target: f.Campaign.Target, Whole: f.End.Why == string(plan.EndComplete), Groups: []*Group{}, Ciphers: []string{}, Hosts: f.Hosts, fold: fold, same: same}
	var walls []float64
	var all, busy float64
	for i := range f.Hosts {
		h := &f.Hosts[i]
		r.host(h)
		for _, p := range h.Phases {
			all, busy = all+float64(p.WallNS), busy+float64(p.BusyNS)
		}
		if h.Class == "" {
			walls = append(walls, float64(h.WallNS))
		}
	}
	if r.Reached = len(walls); r.Reached > 0 {
		const tenth = 0.1
		r.Login = &stats.Interval{Value: stats.Median(walls), Lo: stats.Quantile(walls, tenth/2), Hi: stats.Quantile(walls, 1-tenth/2), N: len(walls)}
	}
	if all > 0 {
		r.Busy = 100 * busy / all
	}
	r.Ciphers = append(r.Ciphers, slices.DeleteFunc(Common(f.Hosts).Ciphers, func(name string) bool { return !sound(alg.Cipher, name) })...)
	r.sort()
	return r
}

// Common returns the algorithms that all hosts take, of those that have named any.
func Common(hosts []record.Host) (common alg.Offer) {
	for _, h := range hosts {
		switch {
		case len(h.Offer.Ciphers) == 0:
		case len(common.Ciphers) == 0:
			common = h.Offer
		default:
			common = common.Intersect(h.Offer)
		}
	}
	return common
}

func sound(kind alg.Kind, name string) bool {
	a, _ := alg.Lookup(kind, name)
	return a.Status.Sound()
}

// host adds a host to all groups that it belongs to.
func (r *Survey) host(h *record.Host) {
	for _, c := range h.Causes {
		g := r.add("cause", c.Check, c.What, h.Name)
		if g.breaks = c.Breaks; c.CostNS > 0 {
			g.costs = append(g.costs, float64(c.CostNS))
		}
		if g.Do == "" {
			g.Where, g.Do = c.Where, c.Do
		}
	}
	if h.Class != "" && len(h.Causes) == 0 {
		g := r.add("failure", h.Class, r.same(h.Failure, h.Name), h.Name)
		g.own = cmp.Or(g.own, h.Failure)
	}
	if version, is := strings.CutPrefix(h.Banner, "SSH-2.0-"); is {
		r.add("version", "", version, h.Name)
	}
	for _, kind := range alg.Kinds {
		names := slices.DeleteFunc(slices.Clone(h.Offer.List(kind)), func(name string) bool { a, _ := alg.Lookup(kind, name); return a.Pseudo })
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return sound(kind, name) }) {
			r.add("algorithm", "", fmt.Sprintf("needs an insecure %s: has only %s", kind.Keyword(), strings.Join(names, ",")), h.Name)
		}
	}
	quantum := func(name string) bool { a, _ := alg.Lookup(alg.Kex, name); return a.PostQuantum }
	switch {
	case h.Suite.Kex == "" || quantum(h.Suite.Kex):
	case slices.ContainsFunc(h.Offer.Kex, quantum):
		r.add("algorithm", "", "has post-quantum key exchange, and this client chose "+h.Suite.Kex, h.Name)
	default:
		r.add("algorithm", "", "has no post-quantum key exchange", h.Name)
	}
	if h.Suite.HostKey != "" {
		r.add("algorithm", "", "host key "+h.Suite.HostKey, h.Name)
	}
}

// add adds a host to a group.
func (r *Survey) add(kind, check, what, name string) *Group {
	what = termsafe.Line(what)
	i := slices.IndexFunc(r.Groups, func(g *Group) bool { return g.Kind == kind && g.Check == check && g.What == what })
	if i < 0 {
		i = len(r.Groups)
		r.Groups = append(r.Groups, &Group{Kind: kind, Check: check, What: what})
	}
	r.Groups[i].Hosts = append(r.Groups[i].Hosts, name)
	return r.Groups[i]
}

// sort finishes the groups, and puts the most important ones of each kind first.
func (r *Survey) sort() {
	for _, g := range r.Groups {
		g.Set = termsafe.Line(r.fold(g.Hosts))
		if g.own != "" && len(g.Hosts) == 1 {
			g.What = termsafe.Line(g.own)
		}
		if len(g.costs) > 0 {
			g.Cost = &stats.Interval{Value: stats.Median(g.costs), Lo: slices.Min(g.costs), Hi: slices.Max(g.costs), N: len(g.costs)}
		}
	}
	slices.SortStableFunc(r.Groups, func(a, b *Group) int {
		return cmp.Or(slices.Index(groupKinds, a.Kind)-slices.Index(groupKinds, b.Kind), cmp.Compare(b.weight(), a.weight()))
	})
}

// weight orders groups of a kind: logins that fail or hang come first.
func (g *Group) weight() float64 {
	switch {
	case g.breaks:
		return math.Inf(1)
	case g.Cost != nil:
		return g.Cost.Value * float64(len(g.Hosts))
	}
	return float64(len(g.Hosts))
}

// Against adds the changes since an earlier survey.
func (r *Survey) Against(f *record.File) {
	before := map[string]*record.Host{}
	for i := range f.Hosts {
		before[f.Hosts[i].Name] = &f.Hosts[i]
	}
	r.Since = f.Campaign.Started.UTC().Format(time.RFC3339)
	changed := func(name, what, old, now string) {
		if old != now {
			r.add("change", "", fmt.Sprintf("%s: %s -> %s", what, cmp.Or(old, "none"), cmp.Or(now, "none")), name)
		}
	}
	for _, h := range r.Hosts {
		old := before[h.Name]
		delete(before, h.Name)
		if old == nil {
			r.add("change", "", "new in the set", h.Name)
			continue
		}
		changed(h.Name, "failure", old.Class, h.Class)
		if h.Class == "" && old.Class == "" {
			changed(h.Name, "server", old.Banner, h.Banner)
			changed(h.Name, "key exchange", old.Suite.Kex, h.Suite.Kex)
			changed(h.Name, "cipher", old.Suite.Cipher, h.Suite.Cipher)
			changed(h.Name, "host key", old.Suite.HostKey, h.Suite.HostKey)
		}
		changed(h.Name, "slow", checksOf(old), checksOf(&h))
	}
	for _, h := range f.Hosts {
		if before[h.Name] != nil && r.Whole {
			r.add("change", "", "no longer in the set", h.Name)
		}
	}
	r.sort()
}

func checksOf(h *record.Host) string {
	var names []string
	for _, c := range h.Causes {
		names = append(names, c.Check)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// JSON writes the report.
func (r *Survey) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// Document returns the report for every format but JSON; all is for a terminal.
func (r *Survey) Document(f *record.File, all bool) *document.Document {
	d := &document.Document{
		Title: "The logins of " + termsafe.Line(r.Target), Lead: append(r.lead(), r.ciphers()...), Environment: document.Environment(f),
		Tables: []document.Table{r.groupTable(), r.hostTable()},
	}
	d.Brief = []document.Table{{Lines: text.Wrap("", strings.Join(r.lead(), " "), 0)}}
	for i, kind := range groupKinds {
		if t := r.brief(kind, all); len(t.Lines) > 0 {
			if t.Title = groupTitles[i]; kind == "change" {
				t.Title += r.Since
			}
			d.Brief = append(d.Brief, t)
		}
	}
	d.Brief = document.Clean(append(d.Brief, document.Table{Lines: r.ciphers()}))
	return d
}

// has reports whether there is a group of a kind.
func (r *Survey) has(kind string) bool {
	return slices.ContainsFunc(r.Groups, func(g *Group) bool { return g.Kind == kind })
}

// lead returns the number of logins, and their times.
func (r *Survey) lead() []string {
	lines := []string{fmt.Sprintf("%d of %s logged in.", r.Reached, unit.Count(len(r.Hosts), "host"))}
	if r.Login != nil {
		lines[0] = strings.TrimSuffix(lines[0], ".") + ", in " + r.Login.Noted(unit.InMilliseconds, " ms", "median; nine of ten") + "."
	}
	if !r.Whole {
		lines = append(lines, "The survey was stopped: the other hosts are missing.")
	}
	if r.Reached > 0 && !r.has("cause") {
		lines = append(lines, "No slow logins found.")
	}
	if r.Whole && r.Since != "" && !r.has("change") {
		lines = append(lines, "Nothing has changed since "+r.Since+".")
	}
	const noticeable = 5
	if r.Busy >= noticeable {
		lines = append(lines, fmt.Sprintf("This machine was busy in %.0f %% of their time: waits that others had then, too, are not blamed on a host.", r.Busy))
	}
	return lines
}

// ciphers lists the ciphers that all hosts take, and the gain of the fastest one.
func (r *Survey) ciphers() []string {
	switch {
	case !slices.ContainsFunc(r.Hosts, func(h record.Host) bool { return len(h.Offer.Ciphers) > 0 }):
		return nil
	case len(r.Ciphers) == 0:
		return []string{"No sound cipher is taken by all hosts."}
	}
	lines := []string{"Ciphers that all hosts take: " + termsafe.Line(strings.Join(r.Ciphers, ","))}
	if len(r.Gain) == 0 {
		return append(lines, "Nothing here says which is fastest; to find out: sshpace bench")
	}
	return append(lines, r.Gain...)
}

// brief shows the groups of a kind on a terminal. A group of most hosts is named by their number
// alone.
func (r *Survey) brief(kind string, all bool) (t document.Table) {
	for _, g := range r.Groups {
		if g.Kind != kind {
			continue
		}
		cost := ""
		switch {
		case g.breaks:
			cost = "broken: "
		case g.Cost != nil:
			cost = g.Cost.Shown(unit.InMilliseconds, " ms") + ": "
		case g.Check != "":
			cost = g.Check + ": "
		}
		set := ": " + g.Set
		if kind != "cause" && 2*len(g.Hosts) > len(r.Hosts) && !all {
			set = ""
		}
		t.Lines = append(t.Lines, text.Wrap(fmt.Sprintf("%6d  ", len(g.Hosts)), cost+g.What+set, 0)...)
		if all && g.Do != "" {
			t.Lines = append(t.Lines, text.Wrap("        do  ", g.Where, 0)...)
			t.Lines = append(t.Lines, strings.Split(g.Do, "\n")...)
		}
	}
	return t
}

// groupTable holds all groups.
func (r *Survey) groupTable() document.Table {
	t := document.Table{Name: "groups", Title: "Groups of hosts", Columns: []document.Column{
		{Key: "kind", Head: "kind"}, {Key: "hosts", Head: "hosts", Kind: document.Count}, column("cost_ns", "cost"), {Key: "check", Head: "check"}, {Key: "what", Head: "what"}, {Key: "set", Head: "set"},
	}}
	for _, g := range r.Groups {
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{
			{Text: g.Kind}, {Text: fmt.Sprint(len(g.Hosts))}, {Quantity: g.Cost}, {Text: g.Check}, {Text: g.What}, {Text: g.Set},
		}})
	}
	return t
}

func microseconds(key, head string) document.Column {
	return document.Column{Key: key + "_us", Head: head + ", us", Kind: document.Count}
}

// hostTable holds each login.
func (r *Survey) hostTable() document.Table {
	t := document.Table{Name: "hosts", Title: "Each login", Columns: []document.Column{
		{Key: "host", Head: "host"}, {Key: "failure", Head: "failure"}, {Key: "causes", Head: "causes"}, microseconds("login", "login"),
	}}
	phases := slices.DeleteFunc(slices.Clone(record.AllPhases), func(p record.Phase) bool {
		return !slices.ContainsFunc(r.Hosts, func(h record.Host) bool { _, has := h.Phase(p); return has })
	})
	for _, p := range phases {
		i := slices.IndexFunc(steps, func(s step) bool { return s.phase == p })
		t.Columns = append(t.Columns, microseconds(string(p), steps[i].name))
	}
	for _, key := range []string{"server", "kex", "cipher", "mac", "hostkey", "via"} {
		t.Columns = append(t.Columns, document.Column{Key: key, Head: key})
	}
	for _, h := range r.Hosts {
		cells := []document.Cell{{Text: h.Name}, {Text: h.Class}, {Text: checksOf(&h)}, {Text: fmt.Sprint(h.WallNS.Microseconds())}}
		for _, name := range phases {
			var cell document.Cell
			if p, has := h.Phase(name); has {
				cell.Text = fmt.Sprint(p.WallNS.Microseconds())
			}
			cells = append(cells, cell)
		}
		for _, s := range []string{h.Banner, h.Suite.Kex, h.Suite.Cipher, h.Suite.MAC, h.Suite.HostKey, strings.Join(h.Via, ",")} {
			cells = append(cells, document.Cell{Text: s})
		}
		for i := range cells {
			cells[i].Text = termsafe.Line(cells[i].Text)
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells})
	}
	return t
}
