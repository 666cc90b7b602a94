package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// released is the month of Version; fixed, so that pages are reproducible.
const released = "November 2026"

// manPageOf is the manual page of a command, in man(7).
func manPageOf(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	p := &manPage{}
	name := pageName(cmd)
	p.line(".TH %s 1 %s %s %s", quoted(strings.ToUpper(name)), quoted(released), quoted("sshpace "+Version), quoted("sshpace manual"))
	p.line(".SH NAME\n%s \\- %s", roff(name), roff(cmd.Short))
	p.line(".SH SYNOPSIS\n.B %s", roff(cmd.UseLine()))
	p.line(".SH DESCRIPTION")
	p.text(cmp.Or(cmd.Long, cmd.Short))
	if cmd.LocalFlags().HasAvailableFlags() {
		p.line(".SH OPTIONS")
		cmd.LocalFlags().VisitAll(p.flag)
	}
	if cmd.HasExample() {
		p.line(".SH EXAMPLES")
		p.asItIs(strings.Split(cmd.Example, "\n"))
	}
	if also := related(cmd); len(also) > 0 {
		p.line(".SH SEE ALSO")
		p.line("%s", strings.Join(also, ",\n"))
	}
	return p.out.String()
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// related are the pages of the command above and of those below.
func related(cmd *cobra.Command) (also []string) {
	if cmd.HasParent() {
		also = append(also, ".BR "+roff(pageName(cmd.Parent()))+" (1)")
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			also = append(also, ".BR "+roff(pageName(child))+" (1)")
		}
	}
	return also
}

// manPage is a page that is being written.
type manPage struct{ out strings.Builder }

func (p *manPage) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// text writes paragraphs, which blank lines separate; indented ones as they are.
func (p *manPage) text(s string) {
	for block := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		p.line(".PP")
		if lines := strings.Split(block, "\n"); strings.HasPrefix(block, " ") {
			p.asItIs(lines)
		} else {
			p.line("%s", roff(block))
		}
	}
}

func (p *manPage) asItIs(lines []string) {
	p.line(".PP\n.nf\n.RS 2")
	for _, line := range lines {
		p.line("%s", roff(line))
	}
	p.line(".RE\n.fi")
}

// flag writes a flag as the help does.
func (p *manPage) flag(f *pflag.Flag) {
	if f.Hidden {
		return
	}
	head := `\fB\-\-` + roff(f.Name) + `\fR`
	if f.Shorthand != "" {
		head = `\fB\-` + f.Shorthand + `\fR, ` + head
	}
	if word := placeholderOf(f); word != "" {
		head += ` \fI` + roff(word) + `\fR`
	}
	p.line(".TP\n%s\n%s", head, roff(meaning(f)))
}

// roff makes text safe for man(7): no character is an escape, and no line a
// request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// quoted is one argument of a request.
func quoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `""`) + `"` }
