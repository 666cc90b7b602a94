package dropin

import (
	"bytes"
	"cmp"
	"fmt"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// mpsshSink prints as mpssh does: names to the right, standard error to standard error, empty lines
// left out.
type mpsshSink struct {
	fleet.Nothing
	m     *mpssh
	env   Env
	hosts []host.Host
	width [2]int        // of login names, with -v, and of hosts
	files *output.Files // nil without -o
	lines output.HostLines
	live  output.PerHost[mpsshHost]
	buf   []byte
}

// mpsshHost holds the data of a host until it ends.
type mpsshHost struct {
	used bool      // it has sent something
	open [2][]byte // the part of a line that its files do not have yet
}

var _ fleet.Sink = (*mpsshSink)(nil)

// mpsshLine is the length at which mpssh splits lines, in bytes.
const mpsshLine = 1023

func (m *mpssh) sink(env Env, hosts []host.Host) (*mpsshSink, error) {
	s := &mpsshSink{m: m, env: env, hosts: hosts, lines: output.HostLines{Lines: output.Lines{Max: mpsshLine, OnlyLF: true}}}
	for _, h := range hosts {
		s.width = [2]int{max(s.width[0], len(h.User)), max(s.width[1], len(h.Name))}
	}
	if m.OutDir == "" {
		return s, nil
	}
	var err error
	s.files, err = output.OpenFiles(0, m.OutDir)
	return s, err
}

// End closes the files.
func (s *mpsshSink) End(so fleet.Summary) error {
	if s.files == nil {
		return nil
	}
	return s.files.End(so)
}

// name returns the text before a line, each part right-aligned in its column.
func (s *mpsshSink) name(h host.Host) string {
	name := fmt.Sprintf("%*s", s.width[1], h.Name)
	if s.m.Verbose {
		name = fmt.Sprintf("%*s@%s", s.width[0], h.User, name)
	}
	return name
}

// Output prints the complete lines.
func (s *mpsshSink) Output(e fleet.Event) error {
	h := s.hosts[e.Index]
	e.Data = bytes.ReplaceAll(e.Data, []byte{0}, nil) // the original's lines are C strings
	live := s.live.Of(e.Index)
	live.used = live.used || !s.unwanted(e.Stream)
	var lost error
	if s.files != nil && !s.unwanted(e.Stream) && len(e.Data) > 0 {
		lost = s.keep(e)
	}
	if s.hidden(e.Stream) {
		return lost
	}
	s.lines.Feed(e, func(p output.Piece) { s.line(h, e.Stream, p.Text) })
	return cmp.Or(s.flush(e.Stream), lost)
}

// file writes to a file of the host, which goes by user@host.
func (s *mpsshSink) file(e fleet.Event) error {
	h := s.hosts[e.Index]
	e.Host = h.User + "@" + h.Name
	return s.files.Output(e)
}

// keep writes whole lines to the host's file: a host that is listed twice writes to one. Of a line
// that is too long for that it keeps the last byte.
func (s *mpsshSink) keep(e fleet.Event) error {
	open := &s.live.Of(e.Index).open[e.Stream]
	data := append(*open, e.Data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	if len(data)-end > mpsshLine {
		end = len(data) - 1
	}
	*open = bytes.Clone(data[end:])
	if e.Data = data[:end]; end == 0 {
		return nil
	}
	return s.file(e)
}

// endLines ends the last lines of the host's files: the original writes lines.
func (s *mpsshSink) endLines(i int, open [2][]byte) (lost error) {
	for stream, rest := range open {
		if len(rest) > 0 {
			lost = cmp.Or(lost, s.file(fleet.Event{Index: i, Stream: fleet.Stream(stream), Data: append(rest, '\n')}))
		}
	}
	return lost
}

func (s *mpsshSink) hidden(stream fleet.Stream) bool { return s.m.Blind || s.unwanted(stream) }

// unwanted streams go to no file either.
func (s *mpsshSink) unwanted(stream fleet.Stream) bool {
	return stream == fleet.Stdout && s.m.NoOut || stream == fleet.Stderr && s.m.NoErr
}

// Done prints held output and, with -e, the exit code.
func (s *mpsshSink) Done(r fleet.Result, so fleet.Summary) error {
	h := s.hosts[r.Index]
	var held error
	s.lines.End(r.Index, func(stream fleet.Stream, p output.Piece) {
		s.line(h, stream, p.Text)
		held = cmp.Or(held, s.flush(stream))
	})
	v, live := judge(&r, false), s.live.Take(r.Index)
	if err := cmp.Or(held, s.endLines(r.Index, live.open), s.explain(r.Index, v.message)); err != nil {
		return err
	}
	s.ending(h, v.code, live.used)
	if err := s.flush(fleet.Stdout); err != nil || s.files == nil {
		return err
	}
	// The files go by user@host, without the port.
	return s.files.Done(fleet.Result{Index: r.Index, Host: host.Host{User: h.User, Name: h.Name}}, so)
}

// explain prints ssh's messages and writes them to files.
func (s *mpsshSink) explain(i int, message []string) error {
	if s.m.Quiet {
		return nil
	}
	h := s.hosts[i]
	var lost error
	for _, line := range message {
		if s.files != nil && !s.unwanted(fleet.Stderr) {
			lost = cmp.Or(lost, s.file(fleet.Event{Index: i, Stream: fleet.Stderr, Data: []byte(line + "\n")}))
		}
		if !s.hidden(fleet.Stderr) {
			s.line(h, fleet.Stderr, []byte(line))
		}
	}
	return cmp.Or(s.flush(fleet.Stderr), lost)
}

// ending prints that ssh failed, whatever the options, or the exit code with -e; with -v alone a
// silent host is named. Without standard output (-O) it prints nothing.
func (s *mpsshSink) ending(h host.Host, code int, used bool) {
	color := green
	if code != 0 {
		color = red
	}
	switch {
	case s.m.NoOut:
	case code == 255:
		s.append(h, "!!!", yellow, fleet.Stdout, []byte("ssh failure"))
	case s.m.PrintExit:
		s.append(h, "=:", color, fleet.Stdout, fmt.Append(nil, code))
	case s.m.Verbose && !used && !s.m.Blind:
		s.buf = append(append(s.buf, s.name(h)...), " \n"...)
	}
}

func (s *mpsshSink) line(h host.Host, stream fleet.Stream, text []byte) {
	if len(text) == 0 {
		return
	}
	arrow, color := "->", green
	if stream == fleet.Stderr {
		arrow, color = "=>", red
	}
	s.append(h, arrow, color, stream, text)
}

func (s *mpsshSink) append(h host.Host, arrow, color string, to fleet.Stream, text []byte) {
	if s.env.toTerminal(to) {
		arrow = color + arrow + plain
	}
	s.buf = fmt.Appendf(s.buf, "%s %s %s\n", s.name(h), arrow, s.env.safe(to, text))
}

func (s *mpsshSink) flush(stream fleet.Stream) error {
	return output.Loss(s.env.flush(stream, &s.buf))
}
