package dropin

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
)

// psshSink prints a line for each host that ends, with -i its output, and writes the files of -o
// and -e.
type psshSink struct {
	fleet.Nothing
	p    *pssh
	env  Env
	work // running hosts

	files [2]*output.Files                // of standard output and error, nil = none
	names []string                        // of them, for the hosts
	said  output.PerHost[[2]bytes.Buffer] // output to show at a host's end
	ended int

	killed, lost, failed bool // some host was ended, ended with 255, ended otherwise
}

func newPsshSink(p *pssh, env Env) (*psshSink, error) {
	s := &psshSink{p: p, env: env}
	seen := map[string]int{}
	for _, h := range p.hosts {
		name := h.name
		if n := seen[h.name]; n > 0 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		seen[h.name]++
		s.names = append(s.names, name)
	}
	for i, dir := range []string{p.OutDir, p.ErrDir} {
		if dir == "" {
			continue
		}
		files, err := output.OpenFiles(max(p.Par, 1), dir)
		if err != nil {
			return nil, errors.Join(err, s.End(fleet.Summary{}))
		}
		s.files[i] = files
	}
	return s, nil
}

// fds is how many files may be open at once.
func (s *psshSink) fds() int {
	n := 0
	for _, files := range s.files {
		if files != nil {
			n += max(s.p.Par, 1)
		}
	}
	return n
}

// End closes the directories.
func (s *psshSink) End(so fleet.Summary) error {
	var errs []error
	for i, files := range s.files {
		if files != nil {
			errs = append(errs, files.End(so))
			s.files[i] = nil
		}
	}
	return errors.Join(errs...)
}

// Output keeps and shows output as the options say.
func (s *psshSink) Output(e fleet.Event) error {
	return s.output(e.Index, e.Stream, e.Data)
}

func (s *psshSink) output(index int, stream fleet.Stream, data []byte) error {
	var err error
	if files := s.files[stream]; files != nil {
		err = files.Append(s.names[index], data)
	}
	if s.p.Inline || s.p.InlineStdout && stream == fleet.Stdout {
		s.said.Of(index)[stream].Write(data)
	}
	if s.p.Print && stream == fleet.Stdout {
		text := s.env.safe(stream, data)
		_, failed := fmt.Fprintf(s.env.Stdout, "%s: %s%s", s.p.hosts[index].Name, text, missingEnd(text))
		err = cmp.Or(failed, err)
	}
	return err
}

func missingEnd(text []byte) string {
	if bytes.HasSuffix(text, []byte("\n")) {
		return ""
	}
	return "\n"
}

// Done prints how the host ended.
func (s *psshSink) Done(r fleet.Result, _ fleet.Summary) error {
	var err error
	why := s.judge(&r)
	said := s.said.Take(r.Index)
	for _, files := range s.files {
		if files != nil {
			err = cmp.Or(err, files.Close(s.names[r.Index]))
		}
	}
	s.ended++
	var b bytes.Buffer
	s.report(&b, s.p.hosts[r.Index].name, why)
	b.Write(s.env.safe(fleet.Stdout, said[fleet.Stdout].Bytes()))
	if said[fleet.Stderr].Len() > 0 {
		b.WriteString(s.paint("31", "Stderr: "))
		b.Write(s.env.safe(fleet.Stdout, said[fleet.Stderr].Bytes()))
	}
	_, failed := s.env.Stdout.Write(b.Bytes())
	return cmp.Or(failed, err)
}

// judge counts the host and returns the error, and ssh's message.
func (s *psshSink) judge(r *fleet.Result) string {
	v := judge(r, s.program)
	switch {
	case r.Class == fleet.CommandTimeout:
		s.killed = true
		return "Timed out, Killed by signal 9"
	case r.Class == fleet.Cancelled && r.Status() == fleet.NotStarted:
		s.failed = true
		return "Cancelled"
	case r.Class == fleet.Cancelled:
		s.failed = true
		return "Interrupted"
	case v.signal != 0:
		s.killed = true
		return fmt.Sprintf("Killed by signal %d", v.signal)
	case v.exec != 0:
		v.code, v.message = 255, []string{fault.Strerror(v.exec)}
	}
	for _, line := range heard(s.options, v.message) {
		s.output(r.Index, fleet.Stderr, []byte(line+"\r\n")) // losses were reported
	}
	s.lost = s.lost || v.code == 255
	s.failed = s.failed || v.code != 0
	if v.code == 0 {
		return ""
	}
	return fmt.Sprintf("Exited with error code %d", v.code)
}

// report prints the line of a host.
func (s *psshSink) report(b *bytes.Buffer, name, why string) {
	bold := func(text string) string { return s.paint("1", text) }
	words := []string{s.paint("36", "["+bold(fmt.Sprint(s.ended))+"]"), time.Now().Format(time.TimeOnly), s.paint("32", "["+bold("SUCCESS")+"]"), termsafe.Line(name)}
	if why != "" {
		words[2] = s.paint("31", "["+bold("FAILURE")+"]")
		words = append(words, s.paint("31", bold(why)))
	}
	b.WriteString(strings.Join(words, " ") + "\n")
}

func (s *psshSink) paint(color, text string) string {
	return terminal.Paint(s.env.StdoutTTY && s.env.Getenv("NO_COLOR") == "", color, text)
}

// code returns the exit code of the program.
func (s *psshSink) code() int {
	switch {
	case s.killed:
		return 3
	case s.lost:
		return 4
	case s.failed:
		return s.p.tool.failed
	}
	return exitOK
}
