package document

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// overTrip is a method measured over several round trips.
type overTrip struct {
	name   string
	cipher string
	rates  map[time.Duration]stats.Interval
}

// overTrips are the methods of a result that were measured over several round trips, and these in
// order; none where there is only one.
type overTrips struct {
	methods []overTrip
	trips   []time.Duration
}

func overTripsOf(results []compare.MethodResult) (o overTrips) {
	index, called := map[string]int{}, map[string]int{}
	for _, r := range results {
		if r.Rate.N == 0 {
			continue
		}
		plain := r.Method
		plain.Path = record.Path{}
		name, cipher := MethodLabel(plain), Short(r.Suite.Cipher)
		at, known := index[name+" "+cipher]
		if !known {
			at = len(o.methods)
			index[name+" "+cipher], o.methods = at, append(o.methods, overTrip{name, cipher, map[time.Duration]stats.Interval{}})
			called[name]++
		}
		o.methods[at].rates[r.RTT] = r.Rate
		if !slices.Contains(o.trips, r.RTT) {
			o.trips = append(o.trips, r.RTT)
		}
	}
	for i, method := range o.methods {
		if called[method.name] > 1 { // several ciphers
			o.methods[i].name += " " + method.cipher
		}
	}
	slices.Sort(o.trips)
	if len(o.trips) < 2 {
		return overTrips{}
	}
	return o
}

// ceilingName describes the most that OpenSSH's window lets through.
var ceilingName = unit.ChannelWindow.String() + " / round trip"

// table shows throughput by round trip.
func (o overTrips) table() Table {
	t := Table{Name: "rtt", Title: "MB/s over the round trip", Note: tripNote, Columns: []Column{{Key: "method", Head: "method", Fit: text.Cut}}}
	ceilings := Row{Cells: []Cell{{Text: ceilingName}}}
	for _, trip := range o.trips {
		t.Columns = append(t.Columns, Column{Key: "bytes_per_s_" + trip.String(), Head: trip.String(), Terse: trip.String(), Unit: "MB/s", Scale: 1e6, Kind: Quantity, Bare: true})
		at := Cell{}
		if trip > 0 {
			at = Cell{Quantity: stats.Exactly(float64(unit.Ceiling(trip)))}
		}
		ceilings.Cells = append(ceilings.Cells, at)
	}
	for _, method := range o.methods {
		row := Row{Cells: []Cell{{Text: method.name}}}
		for _, trip := range o.trips {
			rate := method.rates[trip]
			row.Cells = append(row.Cells, Cell{Quantity: rate.OrNil()})
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, ceilings)
	return t
}

var tripNote = "OpenSSH has at most " + unit.ChannelWindow.String() + " in flight; other programs have windows of their own."

// chart draws the speed of each method over the round trip, with the ceiling of ssh's window.
func (o overTrips) chart() Chart {
	c := Chart{
		Name: "rtt", Shape: Curve, Unit: "MB/s", Across: "round trip, ms", Log: true, Rising: true, Table: "methods",
		Title: "Throughput over the round trip, against the ceiling of OpenSSH's window",
		Note:  "The broken line: " + tripNote,
	}
	most := 0.0
	for _, method := range o.methods {
		item := Item{Label: method.name}
		for _, trip := range o.trips {
			if rate, ok := method.rates[trip]; ok {
				item.X, item.Points = append(item.X, trip.Seconds()*1e3), append(item.Points, PointOf(&rate, 1e6))
				most = math.Max(most, rate.Hi/1e6)
			}
		}
		c.Items, c.Series = append(c.Items, item), append(c.Series, item.Label)
	}
	c.Items, c.Series = append(c.Items, ceilingItem(o.trips[len(o.trips)-1], most)), append(c.Series, ceilingName)
	return c
}

// ceilingItem is the window's ceiling, from the round trip where it falls to most.
func ceilingItem(longest time.Duration, most float64) Item {
	const steps = 40
	item := Item{Label: ceilingName, Bound: true}
	from := min(float64(unit.ChannelWindow)/most/1e6, longest.Seconds()) // seconds
	for i := range steps + 1 {
		trip := from * math.Pow(longest.Seconds()/from, float64(i)/steps)
		value := float64(unit.ChannelWindow) / trip / 1e6
		item.X, item.Points = append(item.X, trip*1e3), append(item.Points, Point{Value: value, Lo: value, Hi: value, Known: true})
	}
	return item
}

// sharedPath describes the path that all methods share, apart from the round trip.
func sharedPath(results []compare.MethodResult) string {
	for _, r := range results {
		r.RTT = 0
		if name := pathText(r.Path); name != "" {
			return name
		}
	}
	return ""
}

// pathText describes a path after the name of a method; "" where there is none.
func pathText(p record.Path) string {
	name := ""
	if p.RTT > 0 {
		name += " " + p.RTT.String()
	}
	if p.BytesPerS > 0 {
		name += " " + unit.Throughput(p.BytesPerS).String()
	}
	if p.SegmentsLost > 0 {
		name += fmt.Sprintf(" %s%% lost", unit.Percentage(100*p.SegmentsLost))
	}
	return name
}
