package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/text"
)

// released is the month of Version; fixed, so that pages are reproducible.
const released = "November 2026"

// manPageOf returns the manual page of a command, in man(7).
func manPageOf(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	p := &text.Manual{}
	name := pageName(cmd)
	p.Line(".TH %s 1 %s %s %s", text.Quoted(strings.ToUpper(name)), text.Quoted(released), text.Quoted("sshpace "+Version), text.Quoted("sshpace manual"))
	p.Line(".SH NAME\n%s \\- %s", text.Escaped(name), text.Escaped(cmd.Short))
	p.Line(".SH SYNOPSIS\n.B %s", text.Escaped(cmd.UseLine()))
	p.Line(".SH DESCRIPTION")
	below := groupCommands(cmd)
	if cmd.HasParent() {
		p.Text(cmp.Or(cmd.Long, cmd.Short))
	} else { // its text lists the commands in columns
		p.Text(cmd.Short)
	}
	if len(below) > 0 {
		p.Line(".SH COMMANDS")
		for _, g := range below {
			if g.title != "Commands" {
				p.Line(".SS %s", text.Quoted(g.title))
			}
			for _, child := range g.commands {
				p.Entry(child.Name(), child.Short)
			}
		}
	}
	if cmd.LocalFlags().HasAvailableFlags() {
		p.Line(".SH OPTIONS")
		for _, group := range groupFlags(cmd) {
			if group.title != "" {
				p.Line(".SS %s", text.Quoted(group.title))
			}
			for _, f := range group.flags {
				flagEntry(p, f)
			}
		}
	}
	if cmd.HasExample() {
		p.Line(".SH EXAMPLES")
		p.Verbatim(strings.Split(cmd.Example, "\n"))
	}
	sections(p, cmd)
	if also := related(cmd); len(also) > 0 {
		p.Line(".SH SEE ALSO")
		p.Line("%s", strings.Join(also, ",\n"))
	}
	return p.String()
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// related returns the pages of the parent command and of the subcommands.
func related(cmd *cobra.Command) (also []string) {
	if cmd.HasParent() {
		also = append(also, ".BR "+text.Escaped(pageName(cmd.Parent()))+" (1)")
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			also = append(also, ".BR "+text.Escaped(pageName(child))+" (1)")
		}
	}
	return also
}

// flagEntry writes a flag as the help does.
func flagEntry(p *text.Manual, f *pflag.Flag) {
	head := `\fB\-\-` + text.Escaped(f.Name) + `\fR`
	if f.Shorthand != "" {
		head = `\fB\-` + f.Shorthand + `\fR, ` + head
	}
	if value := flagValue(f); value != "" {
		head += `\fI` + text.Escaped(value) + `\fR`
	}
	p.Line(".TP\n%s\n%s", head, text.Escaped(meaning(f)))
}
