package dropin

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
)

// clushSink prints lines as they come, or keeps standard output until the end.
type clushSink struct {
	fleet.Nothing
	*clush
	work
	env     Env
	text    string // the command, or the file to copy
	keeps   bool
	colored bool
	lines   output.HostLines
	kept    output.PerHost[bytes.Buffer]
	ended   map[int][]clushSent // by exit code
	first   *clushSent          // whose output --diff compares with
	open    []string            // hosts that Ctrl-C ended
	largest int
	buf     [2][]byte
}

// clushSent is the output of hosts that sent the same.
type clushSent struct {
	index int // of the first host
	hosts []string
	text  string
}

// clushLate stands for the exit code of hosts that -u ended.
const clushLate = -1

// Output keeps or prints the complete lines.
func (s *clushSink) Output(e fleet.Event) error {
	s.lines.Feed(e, func(p output.Piece) { s.line(e.Index, e.Stream, p.Text) })
	return s.flush()
}

func (s *clushSink) flush() error {
	return cmp.Or(s.env.flush(fleet.Stdout, &s.buf[0]), s.env.flush(fleet.Stderr, &s.buf[1]))
}

func (s *clushSink) line(index int, stream fleet.Stream, text []byte) {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if s.GatherAll && s.keeps {
		stream = fleet.Stdout
	}
	keep := s.keeps && stream == fleet.Stdout
	if keep {
		fmt.Fprintf(s.kept.Of(index), "%s\n", text)
	}
	if !keep || s.verbosity == 2 && !(s.Gather && s.LineMode) {
		s.print(stream, s.names[index], text)
	}
}

func (s *clushSink) print(stream fleet.Stream, hosts string, text []byte) {
	if !s.NoLabels {
		s.add(stream, "%s", terminal.Paint(s.colored, [2]string{"94", "91"}[stream], hosts+": "))
	}
	s.add(stream, "%s\n", s.env.safe(stream, text))
}

func (s *clushSink) add(stream fleet.Stream, format string, args ...any) {
	s.buf[stream] = fmt.Appendf(s.buf[stream], format, args...)
}

// say prints a message of the program, which -q with -S leaves out.
func (s *clushSink) say(hosts, text string) {
	if s.verbosity > 0 || !s.MaxRC {
		s.add(fleet.Stderr, "clush: %s: %s\n", hosts, text)
	}
}

// Done prints ssh's messages, and files the host under its end.
func (s *clushSink) Done(r fleet.Result, _ fleet.Summary) error {
	s.lines.End(r.Index, func(stream fleet.Stream, p output.Piece) { s.line(r.Index, stream, p.Text) })
	v, name := judge(&r, s.program), s.names[r.Index]
	switch {
	case r.Class == fleet.CommandTimeout:
		v = verdict{code: clushLate}
	case r.Class == fleet.Cancelled:
		s.open = append(s.open, name)
		return s.flush()
	case v.signal != 0:
		v.code = 128 + v.signal
	case v.exec != 0:
		v = verdict{code: 255, message: []string{fault.Strerror(v.exec)}}
	}
	for _, line := range heard(s.work.options, v.message) {
		s.line(r.Index, fleet.Stderr, []byte(line))
	}
	kept := s.kept.Take(r.Index)
	s.ended[v.code] = append(s.ended[v.code], clushSent{r.Index, []string{name}, kept.String()})
	if v.code > 0 && !s.keeps {
		s.say(name, fmt.Sprintf("exited with exit code %d", v.code))
	}
	return s.flush()
}

// End prints the kept output, and the ends that are not printed yet.
func (s *clushSink) End(fleet.Summary) error {
	codes := slices.Sorted(maps.Keys(s.ended))
	var all []clushSent
	for _, code := range codes {
		ended := s.ended[code]
		slices.SortFunc(ended, func(a, b clushSent) int { return cmp.Compare(a.index, b.index) })
		all = append(all, ended...)
		switch {
		case code == clushLate || !s.keeps || s.Gather && s.LineMode:
		case s.LineMode:
			s.byLine(ended)
		default:
			s.blocks(ended)
		}
	}
	if s.keeps && s.Gather && s.LineMode {
		s.together(all)
	}
	for _, code := range codes {
		var hosts []string
		for _, sent := range s.ended[code] {
			hosts = append(hosts, sent.hosts...)
		}
		switch {
		case code == clushLate:
			s.largest = 255
			s.say(hostset.Fold(hosts), "command timeout")
		case code > 0 && s.keeps:
			s.say(counted(hosts, s.verbosity > 0), fmt.Sprintf("exited with exit code %d", code))
		case code == 0 && s.Copying && s.verbosity > 1 && s.Copy:
			s.add(fleet.Stdout, "`%s' -> %s:`%s'\n", s.text, hostset.Fold(hosts), s.Dest)
		case code == 0 && s.Copying && s.verbosity > 1:
			s.add(fleet.Stdout, "%s:`%s' -> `%s'\n", hostset.Fold(hosts), s.text, s.Dest)
		}
		s.largest = max(s.largest, code)
	}
	if len(s.open) > 0 {
		s.add(fleet.Stderr, "Keyboard interrupt (%s did not complete).\n", hostset.Fold(s.open))
	}
	return s.flush()
}

// counted folds hosts, and adds their number.
func counted(hosts []string, wanted bool) string {
	set := hostset.Fold(hosts)
	if wanted && len(hosts) > 1 {
		set += fmt.Sprintf(" (%d)", len(hosts))
	}
	return set
}

// sameSent joins hosts that have sent the same, the most first, those that sent nothing last.
func sameSent(list []clushSent) (groups []clushSent) {
	at := map[string]int{}
	for _, sent := range list {
		i, known := at[sent.text]
		if !known {
			i = len(groups)
			at[sent.text], groups = i, append(groups, clushSent{sent.index, nil, sent.text})
		}
		groups[i].hosts = append(groups[i].hosts, sent.hosts...)
	}
	slices.SortFunc(groups, func(a, b clushSent) int {
		return cmp.Or(cmp.Compare(min(len(b.text), 1), min(len(a.text), 1)), cmp.Compare(len(b.hosts), len(a.hosts)), cmp.Compare(a.hosts[0], b.hosts[0]))
	})
	return groups
}

func (s *clushSink) byLine(list []clushSent) {
	for _, sent := range list {
		for line := range strings.Lines(sent.text) {
			s.print(fleet.Stdout, hostset.Fold(sent.hosts), []byte(line[:len(line)-1]))
		}
	}
}

// together prints the first line of all hosts, each different one once, then the second, and so on.
func (s *clushSink) together(list []clushSent) {
	for len(list) > 0 {
		var row, rest []clushSent
		for _, sent := range list {
			line, more, found := strings.Cut(sent.text, "\n")
			if found {
				row, rest = append(row, clushSent{sent.index, sent.hosts, line + "\n"}), append(rest, clushSent{sent.index, sent.hosts, more})
			}
		}
		s.byLine(sameSent(row))
		list = rest
	}
}

// blocks prints each output under the hosts that sent it, or how it differs from the first one.
func (s *clushSink) blocks(list []clushSent) {
	for _, sent := range sameSent(list) {
		set := counted(sent.hosts, s.verbosity > 0 && s.yes("node_count"))
		switch {
		case sent.text == "" && s.first == nil:
		case s.Diff && s.first == nil:
			s.first = &clushSent{0, []string{set}, sent.text}
		case s.Diff:
			s.differences(set, sent.text)
		default:
			const rule = "---------------"
			if !s.NoLabels {
				s.add(fleet.Stdout, "%s\n", terminal.Paint(s.colored, "94", rule+"\n"+set+"\n"+rule))
			}
			s.add(fleet.Stdout, "%s", s.env.safe(fleet.Stdout, []byte(sent.text)))
		}
	}
}

func (s *clushSink) differences(set, text string) {
	edits := s.env.safe(fleet.Stdout, diff.Diff("", []byte(s.first.text), "", []byte(text)))
	number := 0
	for line := range strings.Lines(string(edits)) {
		number++
		color := map[byte]string{'@': "96", '+': "92", '-': "91"}[line[0]]
		switch {
		case number == 1: // of diff(1)
			continue
		case number < 4:
			line, color = line[:4]+[]string{s.first.hosts[0], set}[number-2]+"\n", "1"
		case line[0] == '@':
			line = strings.ReplaceAll(line, ",1 ", " ")
		}
		s.add(fleet.Stdout, "%s\n", terminal.Paint(s.colored && color != "", color, line[:len(line)-1]))
	}
}
