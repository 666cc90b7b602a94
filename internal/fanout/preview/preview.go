// Package preview shows what a run would do: which hosts, in which batches, by which route and
// engine, with which command. It connects to nobody.
package preview

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/reach"
)

// Plan is a run that does not begin.
type Plan struct {
	Hosts   []host.Host
	Batches []int // their sizes, in order
	Command string
	Account string                 // the command runs as by sudo, "" without sudo
	Own     func(host.Host) string // the command of a host; nil: the same for all
	Reach   *reach.Executor
}

// planned is the record of one host.
type planned struct {
	Type    string   `json:"type"`
	Schema  string   `json:"schema"`
	Host    string   `json:"host"`
	Batch   int      `json:"batch"` // from 1
	User    string   `json:"user"`
	Address string   `json:"address"`
	Port    int      `json:"port"`
	Through []string `json:"through,omitempty"` // jump hosts, the first to connect to first
	Engine  string   `json:"engine,omitempty"`  // absent if the host cannot be reached as asked
	Why     string   `json:"why,omitempty"`     // it is that engine, or none
	Command string   `json:"command"`

	name string // of the host alone
}

// each calls use for each host, in the order of the run.
func (p *Plan) each(ctx context.Context, use func(planned) error) error {
	batch, left := 0, 0
	for _, h := range p.Hosts {
		if left == 0 {
			batch, left = batch+1, p.Batches[batch]
		}
		left--
		rec := planned{Type: "planned", Schema: output.Schema, Host: h.String(), Batch: batch, Command: p.Command, name: h.Name}
		if p.Own != nil {
			rec.Command = p.Own(h)
		}
		found, err := p.Reach.Planned(ctx, h)
		if err != nil {
			rec.Why = err.Error()
		}
		if found != nil {
			rec.User, rec.Address, rec.Port = found.Host.User(), found.Host.HostName(), found.Host.Port()
			rec.Engine, rec.Why = found.Engine, cmp.Or(found.Why, rec.Why)
			for _, jump := range found.Jumps {
				rec.Through = append(rec.Through, jump.Name)
			}
		}
		if err := use(rec); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// WriteJSON writes one object a line for each host.
func (p *Plan) WriteJSON(ctx context.Context, w io.Writer) error {
	return p.each(ctx, func(rec planned) error { return termsafe.WriteJSON(w, rec, "") })
}

// Write writes the command and a table, at most width columns wide (0: any width). Hosts that
// differ by name alone share a row.
func (p *Plan) Write(ctx context.Context, w io.Writer, width int) error {
	var rows [][]string
	sets := map[string][]string{} // of hosts, by the rest of their row
	err := p.each(ctx, func(rec planned) error {
		if rec.Address == rec.name {
			rec.Address = "as named"
		}
		row := []string{strconv.Itoa(rec.Batch), rec.User, rec.Address, strconv.Itoa(rec.Port), strings.Join(rec.Through, ","), cmp.Or(rec.Engine, "none"), rec.Why}
		if p.Own != nil {
			row = append(row, rec.Command)
		}
		for i := range row {
			row[i] = termsafe.Line(row[i])
		}
		key := strings.Join(row, "\x00")
		if sets[key] == nil {
			rows = append(rows, row)
		}
		sets[key] = append(sets[key], rec.Host)
		return nil
	})
	if err != nil {
		return err
	}
	table := text.Table{Columns: []text.Column{{Head: "HOSTS", Fit: text.Cut}, {Tight: true, Right: true}, {Head: "BATCH", Right: true}, {Head: "USER"}, {Head: "ADDRESS", Fit: text.Cut}, {Head: "PORT", Right: true}, {Head: "THROUGH", Fit: text.Cut}, {Head: "ENGINE"}, {Head: "WHY", Fit: text.Cut}}}
	if p.Own != nil {
		table.Columns = append(table.Columns, text.Column{Head: "COMMAND", Fit: text.Cut})
	}
	for _, row := range rows {
		hosts := sets[strings.Join(row, "\x00")]
		table.Rows = append(table.Rows, slices.Concat([]string{termsafe.Line(hostset.Fold(hosts)), fmt.Sprintf("(%d)", len(hosts))}, row))
	}
	_, err = fmt.Fprintf(w, "%s: %s\n%s", p.title(), termsafe.Line(p.Command), table.Text(max(0, width-1)))
	return err
}

func (p *Plan) title() string {
	title := "would run on " + unit.Count(len(p.Hosts), "host")
	if len(p.Batches) > 1 {
		title += fmt.Sprintf(" in %d batches", len(p.Batches))
	}
	if p.Account != "" {
		title += " as " + p.Account + " by sudo"
	}
	return title
}
