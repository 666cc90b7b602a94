package dropin

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/terminal"
)

// pdshSink prints as pdsh does: each line after the label of its host.
type pdshSink struct {
	fleet.Nothing
	*pdshSession
	labels  []string
	lines   output.HostLines
	largest int
	failed  int
	connect []time.Duration
	took    []time.Duration
	buf     []byte
}

func newPdshSink(s *pdshSession) *pdshSink {
	return &pdshSink{pdshSession: s, labels: pdshLabels(s.hosts), lines: output.HostLines{Lines: output.Lines{Max: pdshLine, OnlyLF: true}}}
}

// pdshLabels are names without their domain, unless hosts have different ones.
func pdshLabels(hosts []pdshHost) []string {
	domain, same := "", true
	labels := make([]string, len(hosts))
	for i, h := range hosts {
		labels[i] = h.Name
		_, rest, found := strings.Cut(h.Name, ".")
		if !found {
			continue
		}
		same = same && (domain == "" || domain == rest)
		domain = rest
	}
	for i, h := range hosts {
		if same && !startsWithDigit(h.Name) {
			labels[i], _, _ = strings.Cut(h.Name, ".")
		}
	}
	return labels
}

func startsWithDigit(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || name[0] >= '0' && name[0] <= '9'
}

// pdshLine is the length at which lines are split, in bytes.
const pdshLine = 64 << 10

// Output prints the complete lines.
func (s *pdshSink) Output(e fleet.Event) error {
	s.buf = s.buf[:0]
	s.lines.Feed(e, func(p output.Piece) { s.line(e.Index, e.Stream, p.Text) })
	return s.flush(e.Stream)
}

func (s *pdshSink) line(index int, stream fleet.Stream, text []byte) {
	if !s.NoLabels {
		s.buf = append(append(s.buf, s.labels[index]...), ": "...)
	}
	s.buf = append(append(s.buf, s.env.safe(stream, text)...), '\n')
}

func (s *pdshSink) flush(stream fleet.Stream) error { return s.env.flush(stream, &s.buf) }

// Done prints held output, ssh's message, and the end of a failed host.
func (s *pdshSink) Done(r fleet.Result, _ fleet.Summary) error {
	var err error
	s.lines.End(r.Index, func(stream fleet.Stream, p output.Piece) {
		s.line(r.Index, stream, p.Text)
		err = cmp.Or(err, s.flush(stream))
	})
	s.connect, s.took = append(s.connect, r.Elapsed-r.Spent[fleet.PhaseExec]), append(s.took, r.Spent[fleet.PhaseExec])
	s.ended(&r, s.hosts[r.Index].rcmd == "exec")
	return cmp.Or(err, s.flush(fleet.Stderr))
}

func (s *pdshSink) ended(r *fleet.Result, program bool) {
	v := judge(r, program)
	what := "ssh"
	if program {
		what = filepath.Base(s.argv[0])
	}
	switch {
	case r.Class == fleet.CommandTimeout:
		s.say(r.Index, "command timeout")
		s.largest = max(s.largest, 254)
		if !program {
			v = verdict{code: 255}
		} else {
			v = verdict{signal: 15}
		}
	case r.Class == fleet.Cancelled:
		return
	case v.exec != 0:
		s.line(r.Index, fleet.Stderr, []byte(pdshName(s.env)+"execvp "+s.argv[0]+" failed: "+fault.Strerror(v.exec)))
		v.code = 255
	}
	for _, line := range heard(s.options, v.message) {
		s.line(r.Index, fleet.Stderr, []byte(line))
	}
	switch {
	case v.signal != 0:
		s.say(r.Index, fmt.Sprintf("%s killed by signal %d", what, v.signal))
	case v.code != 0:
		s.say(r.Index, fmt.Sprintf("%s exited with exit code %d", what, v.code))
	}
	s.largest = max(s.largest, v.code)
	if r.Status() == fleet.Unreachable {
		s.failed++
	}
}

// say adds a message of the program about a host.
func (s *pdshSink) say(index int, text string) {
	s.buf = append(s.buf, pdshName(s.env)+s.labels[index]+": "+text+"\n"...)
}

// statistics prints the final lines of -d, in whole seconds.
func (s *pdshSink) statistics() {
	for _, part := range []struct {
		name string
		list []time.Duration
	}{{"Connect time: ", s.connect}, {"Command time: ", s.took}} {
		var sum, least, most time.Duration
		for i, d := range part.list {
			if sum += d; i == 0 || d < least {
				least = d
			}
			most = max(most, d)
		}
		sec := func(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }
		fmt.Fprintf(s.env.Stderr, "%s Avg: %d sec, Min: %d sec,  Max: %d sec\n", part.name, sec(sum/time.Duration(max(len(part.list), 1))), sec(least), sec(most))
	}
	fmt.Fprintf(s.env.Stderr, "Failures:      %d\n", s.failed)
}

// interactive runs the commands on standard input, line by line; those that begin with ! run here.
func (s *pdshSession) interactive(ctx context.Context) error {
	in := bufio.NewScanner(s.env.Stdin)
	echo := !terminal.IsInput(s.env.Stdin) // as readline does it
	for {
		io.WriteString(s.env.Stdout, "pdsh> ")
		if !in.Scan() || ctx.Err() != nil {
			return in.Err()
		}
		line := strings.TrimSpace(in.Text())
		if echo {
			fmt.Fprintln(s.env.Stdout, line)
		}
		here, local := strings.CutPrefix(line, "!")
		switch {
		case line == "exit" || line == "quit":
			return nil
		case line == "":
		case local:
			c := exec.CommandContext(ctx, "/bin/sh", "-c", here)
			c.Stdout, c.Stderr, c.WaitDelay = s.env.Stdout, s.env.Stderr, proc.Grace
			if err := c.Run(); err != nil {
				fmt.Fprintf(s.env.Stderr, "%s%s\n", pdshName(s.env), termsafe.Line(err.Error()))
			}
		default:
			if _, err := s.command(ctx, strings.Fields(line)); err != nil {
				return err
			}
		}
	}
}

// list prints the hosts and options for -q.
func (p *pdsh) list(env Env, hosts []pdshHost) {
	yes := map[bool]string{true: "Yes", false: "No"}
	path, command := "none", "none"
	if dir := env.Getenv("DSHPATH"); dir != "" {
		path = "PATH=" + dir + ";"
	}
	if len(p.Command) > 0 {
		command = strings.Join(p.Command, " ")
	}
	program, err := os.Executable()
	if err != nil {
		program = "pdsh"
	}
	fmt.Fprintf(env.Stdout, "-- DSH-specific options --\nSeparate stderr/stdout\tYes\nPath prepended to cmd\t%s\nAppended to cmd         none\n"+
		"Command:\t\t%s\nFull program pathname\t%s\nRemote program path\t%s\n\n"+
		"-- Generic options --\nLocal username\t\t%s\nLocal uid     \t\t%d\nRemote username\t\t%s\nRcmd type\t\t%s\none ^C will kill pdsh   %s\n"+
		"Connect timeout (secs)\t%d\nCommand timeout (secs)\t%d\nFanout\t\t\t%d\nDisplay hostname labels\t%s\nDebugging       \t%s\n\n-- Target nodes --\n%s\n",
		path, termsafe.Line(command), program, program, env.User, os.Getuid(), p.User, p.Rcmd, yes[p.Batch],
		p.ConnectTimeout, p.CommandTimeout, p.Fanout, yes[!p.NoLabels], yes[p.Debug], p.targetNodes(hosts))
}

// targetNodes returns the hosts in the form of -q or -Q.
func (p *pdsh) targetNodes(hosts []pdshHost) string {
	if !p.Expand {
		return foldPdsh(hosts)
	}
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name
	}
	return strings.Join(names, ",")
}

// foldPdsh writes names as pdsh does: neighbors with the same text before their number share a pair
// of brackets.
func foldPdsh(hosts []pdshHost) string {
	var out strings.Builder
	for i := 0; i < len(hosts); {
		before, _ := splitNumber(hosts[i].Name)
		end := i + 1
		for end < len(hosts) && before != hosts[i].Name {
			other, digits := splitNumber(hosts[end].Name)
			if other != before || digits == "" {
				break
			}
			end++
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(foldNumbers(before, hosts[i:end]))
		i = end
	}
	return out.String()
}

func foldNumbers(before string, hosts []pdshHost) string {
	if len(hosts) == 1 {
		return hosts[0].Name
	}
	numbers := make([]string, len(hosts))
	for i, h := range hosts {
		_, numbers[i] = splitNumber(h.Name)
	}
	return before + "[" + ranges(numbers) + "]"
}
