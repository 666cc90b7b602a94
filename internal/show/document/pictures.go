package document

import (
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

func rankingCharts(r *rank.Ranking, c *advise.Choice) []Chart {
	var out []Chart
	add := func(c Chart, ok bool) {
		if ok {
			out = append(out, c)
		}
	}
	for i, d := range r.Directions() {
		add(answerChart(r, c, i, d))
		add(rankingChart(r, d))
		add(heatChart(r, d))
		add(costChart(r, d))
	}
	add(kexChart(r))
	return out
}

// Short drops the vendor domain of most names of OpenSSH.
func Short(name string) string { return clean(strings.TrimSuffix(name, "@openssh.com")) }

// label names a cell in short words.
func label(s alg.Suite) string {
	return strings.Join(text.NonEmpty(Short(s.Cipher), Short(s.MAC)), " + ")
}

// mark returns the words that must accompany a row.
func mark(group string, status alg.Status, more ...string) string {
	words := append([]string{group}, more...)
	if !status.Sound() {
		words = append(words, Standing(status))
	}
	return strings.Join(text.NonEmpty(words...), ", ")
}

// computations returns the cells of a direction, best first, one for all names of the same
// computation: the safest of them. A cipher or a MAC has the same name in all cells. A cell that
// was found to differ, although it computes the same, stays separate.
func computations(r *rank.Ranking, d record.Direction) (cells []rank.Cell) {
	names := map[alg.Kind]map[string]string{alg.Cipher: {}, alg.MAC: {}}
	for kind, chosen := range names {
		var all []string
		for _, c := range r.Bulk {
			all = appendNew(all, c.Suite.Name(kind))
		}
		for _, name := range alg.SoundFirst(kind, all) {
			if of := computation(alg.Suite{Cipher: name, MAC: name}).Name(kind); chosen[of] == "" {
				chosen[of] = name
			}
		}
	}
	at := map[same]int{}
	for _, c := range r.In(d) {
		of, key := computation(c.Suite), sameOf(r, c)
		i, seen := at[key]
		if !seen {
			i = len(cells)
			at[key], cells = i, append(cells, c)
		}
		if c.Suite.Cipher == names[alg.Cipher][of.Cipher] && c.Suite.MAC == names[alg.MAC][of.MAC] {
			cells[i] = c
		}
	}
	return cells
}

// same is the key of cells that compute the same and were not found to differ.
type same struct {
	computation alg.Suite
	figure      float64
	direction   record.Direction
}

func sameOf(r *rank.Ranking, c rank.Cell) same {
	return same{computation(c.Suite), r.Deciding(c).Value(), c.Direction}
}

// Twins maps cells to an earlier cell of which they are another name; the figures are those of that
// cell.
func Twins(r *rank.Ranking) map[record.Cell]alg.Suite {
	first, twins := map[same]alg.Suite{}, map[record.Cell]alg.Suite{}
	for _, c := range r.Bulk {
		key := sameOf(r, c)
		if of, seen := first[key]; !seen {
			first[key] = c.Suite
		} else if c.Shared > 1 {
			twins[record.Cell{Suite: c.Suite, Direction: c.Direction}] = of
		}
	}
	return twins
}

// computation returns the per-byte computation of a suite: how a MAC is truncated and applied
// matters little.
func computation(s alg.Suite) alg.Suite {
	return alg.Suite{Cipher: alg.Canonical(alg.Cipher, s.Cipher), MAC: alg.Primitive(s.MAC)}
}

// aboutLetters explains the letters; "" where no row has one.
func aboutLetters(r *rank.Ranking) string {
	if !slices.ContainsFunc(r.Bulk, func(c rank.Cell) bool { return c.Group != "" }) {
		return ""
	}
	return "Rows of one letter do not differ significantly. "
}

func rankingChart(r *rank.Ranking, d record.Direction) (Chart, bool) {
	c := Chart{
		Name: "ranking", Table: "ranking", Part: clean(string(d)), Shape: Dots, Unit: "MB/s", Series: []string{"throughput"}, Rising: true,
		Title: title(string(d)) + ": throughput with 95 % intervals",
		Note:  "Best first. " + aboutLetters(r) + "One name stands for all that compute the same.",
	}
	value := func(cell rank.Cell) Point { return PointOf(cell.Throughput.Shown, 1e6) }
	if r.By == rank.Cost {
		c.Unit, c.Series, c.Rising = "s/GB", []string{"client CPU", "server CPU"}, false
		c.Title = title(string(d)) + ": CPU time per byte with 95 % intervals"
	}
	for _, cell := range computations(r, d) {
		points := []Point{value(cell)}
		if r.By == rank.Cost {
			points = []Point{PointOf(cell.Client.Shown, 1), PointOf(cell.Server.Shown, 1)}
		}
		for i := range points {
			points[i].Predicted = cell.Basis == rank.Predicted
		}
		c.Items = append(c.Items, Item{Label: label(cell.Suite), Mark: mark(cell.Group, cell.Status), Suite: safe(cell.Suite), Points: points})
	}
	c.Log = r.By == rank.Cost && c.spread() > squeezed
	return c.Known(), len(c.Items) > 0
}

// squeezed is the spread above which the dearest cipher, such as 3des-cbc, leaves the others no
// room on a linear scale.
const squeezed = 16

// spread returns the greatest value relative to the least one.
func (c *Chart) spread() float64 {
	least, most := math.Inf(1), 0.0
	for _, item := range c.Items {
		for _, p := range item.Points {
			if p.Known && p.Value > 0 {
				least, most = min(least, p.Value), max(most, p.Value)
			}
		}
	}
	return most / least
}

// mostHeat is the most fields of a matrix, of which OpenSSH fills about 170: a file may name more.
const mostHeat = 4096

// heatChart is the matrix of ciphers and MACs, both best first; false if it would be empty. AEAD
// ciphers share one column.
func heatChart(r *rank.Ranking, d record.Direction) (Chart, bool) {
	c := Chart{
		Name: "heat", Table: "ranking", Part: clean(string(d)), Shape: Heat, Unit: "MB/s", Rising: true,
		Title: title(string(d)) + ": cipher × MAC, " + bulkOrder(r), Note: "Rows and columns are ordered by their best cell.",
	}
	scale := 1e6
	if r.By == rank.Cost {
		c.Unit, c.Rising, scale = "s/GB", false, 1
	}
	var ciphers, macs []string
	cells := map[alg.Suite]Point{}
	for _, cell := range computations(r, d) {
		ciphers, macs = appendNew(ciphers, cell.Suite.Cipher), appendNew(macs, cell.Suite.MAC)
		p := PointOf(r.Deciding(cell).Shown, scale)
		p.Predicted = cell.Basis == rank.Predicted
		cells[cell.Suite.Bulk()] = p
	}
	if len(ciphers)*len(macs) > mostHeat {
		return c, false
	}
	slices.SortStableFunc(macs, func(a, b string) int { // "" first: its ciphers ignore the others
		if (a == "") != (b == "") {
			return map[bool]int{true: -1, false: 1}[a == ""]
		}
		return 0
	})
	for _, mac := range macs {
		c.Series, c.Columns = append(c.Series, orOwnTag(mac)), append(c.Columns, clean(mac))
	}
	for _, cipher := range ciphers {
		item := Item{Label: Short(cipher), Suite: safe(alg.Suite{Cipher: cipher})}
		for _, mac := range macs {
			item.Points = append(item.Points, cells[alg.Suite{Cipher: cipher, MAC: mac}])
		}
		c.Items = append(c.Items, item)
	}
	return c, len(cells) > 1
}

func orOwnTag(mac string) string {
	if mac == "" {
		return "(own tag)"
	}
	return Short(mac)
}

// AnswerChart is the name of the charts of allowed options.
const AnswerChart = "answer"

// answerRows is the number of rows that fit a slide.
const answerRows = 8

// answerChart draws the options that the policy allows, as on the first screen of the text; false
// if there are none.
func answerChart(r *rank.Ranking, c *advise.Choice, direction int, d record.Direction) (Chart, bool) {
	out := Chart{
		Name: AnswerChart, Table: "ranking", Part: clean(string(d)), Shape: Bars, Unit: barUnit(r), Series: []string{"throughput"}, Rising: true,
		Title: title(string(d)) + ": what policy " + clean(c.Policy.Name) + " allows", Note: "More is better. Lines: 95 % intervals.",
	}
	if r.By == rank.Cost {
		out.Series, out.Note = []string{"bytes per CPU time"}, "Bytes that a second of CPU time of the busier side moves: more is better. Lines: 95 % intervals."
	}
	rows := foldOptions(c, direction, r.Campaign.Offer)
	for i, row := range rows {
		now := row.holds(c.Present.Suite)
		if i >= answerRows && !now {
			continue
		}
		item := Item{Label: row.name(), Suite: safe(row.options[0].Suite), Points: []Point{row.mean(r, direction)}}
		if now {
			item.Mark, item.Color = "now", ColorNow
		}
		out.Items = append(out.Items, item)
	}
	if len(out.Items) > answerRows { // the present one came from below
		out.Items = append(out.Items[:answerRows-1], out.Items[answerRows])
	}
	return out, len(out.Items) > 1
}

// costChart draws the CPU time of combinations; false if none is known. It leaves out weak ones,
// which can be dozens of times as slow and would leave no room for the others.
func costChart(r *rank.Ranking, d record.Direction) (Chart, bool) {
	c := Chart{
		Name: "cost", Table: "ranking", Part: clean(string(d)), Shape: Stack, Unit: "s/GB", Title: title(string(d)) + ": CPU time per GB",
		Note: "CPU seconds of both sides add up: less is better. Weak algorithms are not shown.", Series: []string{"client", "server"},
	}
	for _, cell := range computations(r, d) {
		if cell.Client.Known() && cell.Status.Sound() {
			c.Items = append(c.Items, Item{Label: label(cell.Suite), Suite: safe(cell.Suite), Points: []Point{PointOf(cell.Client.Shown, 1), PointOf(cell.Server.Shown, 1)}})
		}
	}
	return c.Known(), len(c.Items) > 0
}

func kexChart(r *rank.Ranking) (Chart, bool) {
	c := Chart{
		Name: "kex", Table: "kex", Shape: Bars, Unit: "ms", Series: []string{"login"}, Title: "Key exchange: time of a login with 95 % intervals",
		Note: "From the start of the client to the start of the remote command.",
	}
	if r.KexBy == rank.Cost {
		c.Series = []string{"client CPU", "server CPU"}
		c.Title = "Key exchange: CPU time of a login with 95 % intervals"
	}
	for _, k := range r.Kex {
		points := []Point{PointOf(k.Login.Shown, 1e6)}
		if r.KexBy == rank.Cost {
			points = []Point{PointOf(k.Client.Shown, 1e6), PointOf(k.Server.Shown, 1e6)}
		}
		item := Item{Label: Short(k.Name), Mark: mark(k.Group, k.Status), Suite: safe(alg.Suite{Kex: k.Name}), Points: points}
		if k.PostQuantum {
			item.Mark, item.Color = mark(k.Group, k.Status, "post-quantum"), ColorQuantum
		}
		c.Items = append(c.Items, item)
	}
	return c.Known(), len(c.Items) > 0
}
