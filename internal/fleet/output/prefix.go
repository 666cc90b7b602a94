package output

import (
	"cmp"
	"errors"
	"io"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// prefixOptions control how prefix writes. Only the writers are required.
type prefixOptions struct {
	Out, Err io.Writer // remote stdout; remote stderr and the ends of hosts
	Width    int       // names are padded to this many columns
	MaxLine  int       // longer lines are cut into pieces, in bytes; 0 = 16 KiB
	Raw      bool      // do not clean the text; lines still cannot run into each other
	Times    bool      // the time of each line stands before it
	// ColorOut and ColorErr color the arrows of the two writers.
	ColorOut, ColorErr bool
}

// prefix writes every line after the name of its host, as it comes:
//
//	web1 -> a line of standard output
//	web1 +> more of it, where it was too long
//	web1 => a line of standard error
//	web1 =: what became of the host, if it failed
//
// A line is written when it is complete, with one Write per piece of output,
// so that hosts do not mix within a line.
type prefix struct {
	fleet.Nothing
	opt   prefixOptions
	lines HostLines
	buf   []byte
	at    time.Time // of the lines that are written
	hints Ends      // hints already shown: a thousand hosts may share one

	stopped Ends // of hosts that the end of the run stopped
}

var _ fleet.Sink = (*prefix)(nil)

func newPrefix(opt prefixOptions) *prefix {
	if opt.MaxLine <= 0 {
		opt.MaxLine = defaultMaxLine
	}
	return &prefix{opt: opt, lines: HostLines{Lines: Lines{Max: opt.MaxLine}}, hints: Ends{}, stopped: Ends{}}
}

// width is the column width for a list of hosts: the longest name, but at most 40.
func width(hosts []host.Host) int {
	width := 0
	for _, h := range hosts {
		width = max(width, len(h.String()))
	}
	return min(width, 40)
}

// arrow separates the name from the text.
type arrow struct{ plain, color string }

// The arrows and colors are those of mpssh.
var (
	arrowOut  = arrow{"->", "1;32"}
	arrowMore = arrow{"+>", "1;32"}
	arrowErr  = arrow{"=>", "1;31"}
	arrowEnd  = arrow{"=:", "1;31"}
)

func (a arrow) text(color bool) string { return terminal.Paint(color, a.color, a.plain) }

// Output writes the complete lines.
func (p *prefix) Output(e fleet.Event) error {
	p.buf, p.at = p.buf[:0], e.Time
	p.lines.Feed(e, func(l Piece) { p.line(e.Host, e.Stream, l) })
	return Loss(p.flush(p.writer(e.Stream)))
}

// Done writes held output and the end of the host.
func (p *prefix) Done(r fleet.Result, _ fleet.Summary) error {
	name := r.Host.String()
	p.at = r.End()
	held := p.rest(&r)
	p.buf = p.buf[:0]
	if isLoss(Loss(held)) {
		r.Incomplete = cmp.Or(r.Incomplete, held.Error())
	}
	if note := termsafe.Line(r.Note); note != "" {
		p.append(name, arrowEnd.text(p.opt.ColorErr), []byte("note: "+note))
	}
	text := Explain(&r)
	switch {
	case r.Class == fleet.Cancelled: // as all the others are
		p.stopped.Add(r.Host, text)
	case text != "":
		p.append(name, arrowEnd.text(p.opt.ColorErr), []byte(text))
		if hint := termsafe.Line(r.Hint); hint != "" && p.hints.Add(r.Host, hint) {
			p.append(name, arrowEnd.text(p.opt.ColorErr), []byte("hint: "+hint))
		}
	}
	return Loss(cmp.Or(held, p.flush(p.opt.Err)))
}

// rest writes held text of a host's lines, or the reason why that could not be written.
func (p *prefix) rest(r *fleet.Result) (err error) {
	p.lines.End(r.Index, func(stream fleet.Stream, l Piece) {
		p.buf = p.buf[:0]
		p.line(r.Host.String(), stream, l)
		err = cmp.Or(err, p.flush(p.writer(stream)))
	})
	return err
}

// End writes a line for each way in which the end of the run stopped hosts.
func (p *prefix) End(fleet.Summary) error {
	p.buf = p.buf[:0]
	for _, gr := range bySize(p.stopped) {
		p.append(asSet(gr.hosts), arrowEnd.text(p.opt.ColorErr), []byte(gr.text))
	}
	return p.flush(p.opt.Err)
}

func (p *prefix) line(name string, stream fleet.Stream, l Piece) {
	a, color := arrowOut, p.opt.ColorOut
	if stream == fleet.Stderr {
		a, color = arrowErr, p.opt.ColorErr
	}
	if l.Continues {
		a = arrowMore
	}
	p.append(name, a.text(color), l.Text)
}

func (p *prefix) append(name, arrow string, text []byte) {
	if p.opt.Times {
		p.buf = append(appendTime(p.buf, p.at), ' ')
	}
	p.buf = append(p.buf, name...)
	for range p.opt.Width - len(name) {
		p.buf = append(p.buf, ' ')
	}
	p.buf = append(append(append(p.buf, ' '), arrow...), ' ')
	if p.opt.Raw {
		p.buf = append(p.buf, text...)
	} else {
		p.buf = termsafe.Append(p.buf, text)
	}
	p.buf = append(p.buf, '\n')
}

// appendTime appends a local time; - for an unknown one.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, '-')
	}
	return t.Local().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
}

func (p *prefix) writer(s fleet.Stream) io.Writer {
	if s == fleet.Stderr {
		return p.opt.Err
	}
	return p.opt.Out
}

func (p *prefix) flush(w io.Writer) error {
	if len(p.buf) == 0 {
		return nil
	}
	_, err := w.Write(p.buf)
	return err
}

// copies shows the results of a copy to many hosts: the copied files, as hosts end, and at the end
// the errors, each once for all hosts that share it.
type copies struct {
	*prefix         // of standard output
	wrong   *gather // the rest
}

var _ fleet.Sink = (*copies)(nil)

// Output prints complete lines of standard output at once, and keeps standard error for End.
func (c *copies) Output(e fleet.Event) error {
	if e.Stream == fleet.Stderr {
		return c.wrong.Output(e)
	}
	return c.prefix.Output(e)
}

// Done prints the rest of the host's last line, and keeps its result for End.
func (c *copies) Done(r fleet.Result, so fleet.Summary) error {
	return errors.Join(Loss(c.rest(&r)), c.wrong.Done(r, so))
}

// End prints the gathered standard error.
func (c *copies) End(so fleet.Summary) error { return c.wrong.End(so) }
