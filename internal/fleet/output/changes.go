package output

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// changes shows repeated runs of a command: the first one as gather does, and of each later one
// only hosts whose output or end has changed.
//
//	---------------
//	web[1-3] (3), at 10:15:20
//	---------------
//	| - a line that they sent before
//	| + a line that they send now
//	web7 (1) =: at 10:15:20: unreachable: connection refused
type changes struct {
	*gather // of this run
	opt     gatherOptions
	at      string                // when this run began
	known   map[string]*hostState // of the runs before, by the hosts' names; nil: there was none
	now     map[string]*hostState // of this run
}

// hostState is the last output of a host, and its end.
type hostState struct {
	host    host.Host
	end     string
	ran     bool
	streams [2]*said // nil: nothing is known
}

// said is the output of a group of hosts.
type said struct {
	raw   digest
	text  []byte // as shown; nil: too large to be compared
	group *group // in this run
}

// maxCompared is how much output of a group is kept until the next run, in bytes.
const maxCompared = 64 << 10

var _ fleet.Sink = (*changes)(nil)

// Begin begins a run.
func (c *changes) Begin(s fleet.Start) error {
	c.gather, c.at, c.now = newGather(c.opt), s.Time.Local().Format("15:04:05"), map[string]*hostState{}
	return nil
}

// Done keeps the end of a host. A host that was stopped because all runs end has not changed.
func (c *changes) Done(r fleet.Result, so fleet.Summary) error {
	if c.known == nil || r.Class != fleet.Cancelled {
		c.now[r.Host.String()] = &hostState{host: r.Host, end: Explain(&r), ran: r.Ran == fleet.RanYes && r.Class == fleet.NoFailure}
	}
	return c.gather.Done(r, so)
}

// End shows the run, and remembers it for the next one.
func (c *changes) End(so fleet.Summary) error {
	err := c.remember()
	if c.known == nil {
		c.known = c.now
		return errors.Join(err, c.gather.End(so))
	}
	out, errs := bufio.NewWriter(c.opt.Out), bufio.NewWriter(c.opt.Err)
	err = errors.Join(err, c.writeOutput(out, fleet.Stdout, ""), out.Flush(), c.writeOutput(errs, fleet.Stderr, ", standard error"))
	ends := Ends{}
	for name, now := range c.now {
		if was := c.known[name]; was.end != now.end {
			ends.Add(now.host, "at "+c.at+": "+cmp.Or(now.end, "ok again"))
		}
		for stream, s := range now.streams {
			if s == nil {
				now.streams[stream] = c.known[name].streams[stream]
			}
		}
	}
	ends.Write(errs)
	maps.Copy(c.known, c.now)
	return errors.Join(err, errs.Flush(), c.store.Close())
}

// remember records the output of each host.
func (c *changes) remember() error {
	var err error
	for stream, groups := range c.groups {
		for raw, gr := range groups {
			s := &said{raw: raw, group: gr}
			if gr.content.Size <= maxCompared {
				text, unread := c.text(gr)
				s.text, err = text, cmp.Or(err, unread)
			}
			for _, name := range gr.hosts {
				if now := c.now[name]; now != nil {
					now.streams[stream] = s
				}
			}
		}
	}
	for _, now := range c.now {
		if now.ran && now.streams[fleet.Stderr] == nil {
			now.streams[fleet.Stderr] = &said{text: []byte{}}
		}
	}
	return err
}

// writeOutput writes the changes in the output of hosts: hosts with the same change are a group.
func (c *changes) writeOutput(w *bufio.Writer, stream fleet.Stream, note string) error {
	type change struct{ from, to *said }
	groups, of := map[[2]digest]*group{}, map[*group]change{}
	for name, now := range c.now {
		was, is := c.known[name].streams[stream], now.streams[stream]
		if is == nil || was != nil && was.raw == is.raw {
			continue
		}
		if was == nil {
			was = &said{}
		}
		key := [2]digest{was.raw, is.raw}
		if groups[key] == nil {
			groups[key] = &group{}
			of[groups[key]] = change{was, is}
		}
		groups[key].hosts = append(groups[key].hosts, name)
	}
	for _, gr := range bySize(groups) {
		from, to := of[gr].from, of[gr].to
		fmt.Fprintf(w, "%s\n%s (%d)%s, at %s\n%s\n", rule, asSet(gr.hosts), len(gr.hosts), note, c.at, rule)
		var edits []byte
		if from.text != nil && to.text != nil {
			edits = differences(from.text, to.text)
		}
		if edits == nil && to.group != nil {
			if err := c.writeContent(w, to.group); err != nil {
				return err
			}
		}
		w.Write(edits) // bufio keeps the error for Flush
	}
	return nil
}
