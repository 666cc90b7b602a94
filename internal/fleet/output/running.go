package output

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
)

// running holds the hosts that have begun and not ended.
type running struct {
	names []string
	hosts map[int]*runningHost
}

type runningHost struct {
	since time.Time
	last  string // the last line that is not blank, or the beginning of it
}

const (
	// maxRunning is how many hosts the view shows: a terminal of 24 lines has room for output above
	// them.
	maxRunning = 5
	// settled is how long a host runs before it is shown: most end before.
	settled = time.Second
	// longestName is how much of a host's name is shown, in columns.
	longestName = 24
	// maxSaid is how much of a line is kept, in bytes.
	maxSaid = 400
)

func (r *running) begin(s fleet.Start) {
	r.hosts = map[int]*runningHost{}
	for _, h := range s.Hosts {
		r.names = append(r.names, termsafe.Line(h.String()))
	}
}

func (r *running) started(index int, now time.Time) { r.hosts[index] = &runningHost{since: now} }

// said keeps the last line of a piece of output.
func (r *running) said(e fleet.Event) {
	h := r.hosts[e.Index]
	if h == nil {
		return
	}
	h.last = LastSaid(e, h.last)
}

// LastSaid returns the last line of a piece of output, or its beginning; before if it is blank.
func LastSaid(e fleet.Event, before string) string {
	last := text.LastLine(string(e.Data[max(0, len(e.Data)-10*maxSaid):]))
	return cmp.Or(last[:min(len(last), maxSaid)], before)
}

// lines returns the hosts that have run longest, each with its last line.
func (r *running) lines(now time.Time, width int) []string {
	var list []int
	for index, h := range r.hosts {
		if now.Sub(h.since) >= settled {
			list = append(list, index)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Or(r.hosts[a].since.Compare(r.hosts[b].since), cmp.Compare(a, b)) })
	more := len(list) - maxRunning
	list = list[:min(len(list), maxRunning)]
	t := text.Table{Columns: []text.Column{{Fit: text.Cut}, {Right: true, Tight: true}, {}}}
	for _, index := range list {
		h := r.hosts[index]
		age := now.Sub(h.since).Truncate(time.Second)
		t.Rows = append(t.Rows, []string{"  " + text.Clip(r.names[index], longestName), text.PadLeft(age.String(), 5), termsafe.Line(h.last)})
	}
	lines := t.Lines(0)
	for i := range lines {
		lines[i] = text.Clip(lines[i], width-1)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}
