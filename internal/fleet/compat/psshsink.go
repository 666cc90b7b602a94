package compat

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/safedir"
)

// psshSink prints a line for each host that ends, and what it said with -i, and
// writes the files of -o and -e.
type psshSink struct {
	fleet.Nothing
	p       *pssh
	env     Env
	program bool

	folders [2]*safedir.Folder // of standard output and error, nil = none
	names   []string           // files of the hosts
	live    output.PerHost[psshLive]
	ended   int

	killed, lost, failed bool // some host was ended, ended with 255, ended otherwise
}

// psshLive is a host that has begun.
type psshLive struct {
	files [2]*os.File
	said  [2]bytes.Buffer // what is to be shown at its end
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
		folder, err := safedir.Make(dir)
		if err != nil {
			return nil, errors.Join(err, s.End(fleet.Summary{}))
		}
		s.folders[i] = folder
	}
	return s, nil
}

// fds is how many files may be open at once.
func (s *psshSink) fds() int {
	n := 0
	for _, folder := range s.folders {
		if folder != nil {
			n += max(s.p.Par, 1)
		}
	}
	return n
}

// End closes the folders.
func (s *psshSink) End(fleet.Summary) error {
	var errs []error
	for i, folder := range s.folders {
		if folder != nil {
			errs = append(errs, folder.Close())
			s.folders[i] = nil
		}
	}
	return errors.Join(errs...)
}

// file is where a host's stream goes, made when there is something to write; nil
// without -o or -e.
func (s *psshSink) file(index int, stream fleet.Stream) (*os.File, error) {
	folder, l := s.folders[stream], s.live.Of(index)
	if folder == nil || l.files[stream] != nil {
		return l.files[stream], nil
	}
	err := folder.Remove(s.names[index])
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		l.files[stream], err = folder.OpenFile(s.names[index], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	return l.files[stream], err
}

// Output keeps and shows what the options say.
func (s *psshSink) Output(e fleet.Event) error {
	return s.output(e.Index, e.Stream, e.Data)
}

func (s *psshSink) output(index int, stream fleet.Stream, data []byte) error {
	l := s.live.Of(index)
	f, err := s.file(index, stream)
	if f != nil {
		_, err = f.Write(data)
	}
	err = output.Loss(err)
	if s.p.Inline || s.p.InlineStdout && stream == fleet.Stdout {
		l.said[stream].Write(data)
	}
	if s.p.Print && stream == fleet.Stdout {
		text := s.safe(data)
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

func (s *psshSink) safe(data []byte) []byte {
	if !s.env.StdoutTTY {
		return data
	}
	return termsafe.Text(data)
}

// Done prints how the host ended.
func (s *psshSink) Done(r fleet.Result, _ fleet.Summary) error {
	var err error
	why := s.judge(&r)
	l := s.live.Of(r.Index)
	delete(s.live, r.Index)
	for _, f := range l.files {
		if f != nil {
			err = cmp.Or(err, output.Loss(f.Close()))
		}
	}
	s.ended++
	var b bytes.Buffer
	s.report(&b, s.p.hosts[r.Index].name, why)
	b.Write(s.safe(l.said[fleet.Stdout].Bytes()))
	if l.said[fleet.Stderr].Len() > 0 {
		b.WriteString(s.paint("31", "Stderr: "))
		b.Write(s.safe(l.said[fleet.Stderr].Bytes()))
	}
	_, failed := s.env.Stdout.Write(b.Bytes())
	return cmp.Or(failed, err)
}

// judge counts the host and says what went wrong, and what ssh would have said.
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
	for _, line := range v.message {
		s.output(r.Index, fleet.Stderr, []byte(line+"\r\n")) // what is lost has been told
	}
	s.lost = s.lost || v.code == 255
	s.failed = s.failed || v.code != 0
	if v.code == 0 {
		return ""
	}
	return fmt.Sprintf("Exited with error code %d", v.code)
}

// report is the line of a host.
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
	if !s.env.StdoutTTY || s.env.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// code is the exit code of the program.
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
