package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/text"
	"sshpace/internal/show/document"
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

// Commands with their own exit codes.
const (
	measuring = "bench transfer programs login latency limits doctor advise known-hosts-bench"
	fleets    = "run copy fetch"
)

// exitStatus lists the exit codes for people, and the commands that have them; "" means all.
// README.md has the same.
var exitStatus = []struct {
	code        int
	meaning, of string
}{
	{ExitOK, "ok", ""},
	{ExitFailed, "failed", ""},
	{ExitUsage, "usage or configuration", ""},
	{ExitFound, "succeeded, and found something, such as a regression", "compare doctor known-hosts-lint known-hosts-scan"},
	{ExitUnreachable, "some hosts unreachable, nothing else wrong", fleets + " known-hosts-scan"},
	{ExitInconclusive, "not enough data for an answer, such as that of compare --fail-on", "compare"},
	{ExitHangup, "stopped by SIGHUP; measurements so far are reported and saved", measuring},
	{ExitHangup, "stopped by SIGHUP; the commands on the hosts are ended", fleets},
	{ExitInterrupted, "stopped by SIGINT, likewise", measuring + " " + fleets},
	{ExitQuit, "stopped by SIGQUIT, likewise", measuring + " " + fleets},
	{ExitUnread, "stopped because nobody reads the output any more, as after | head", ""},
	{ExitTerminated, "stopped by SIGTERM, likewise", measuring + " " + fleets},
}

// exitCodes writes the exit codes of a command. The page of all commands has each code once.
func exitCodes(p *text.Manual, cmd *cobra.Command) {
	name, before := strings.TrimPrefix(pageName(cmd), "sshpace-"), -1
	for _, e := range exitStatus {
		if all := e.of == "" || !cmd.HasParent() && e.code != before; all || slices.Contains(strings.Fields(e.of), name) {
			p.Entry(strconv.Itoa(e.code), e.meaning)
			before = e.code
		}
	}
}

// environment lists the variables that sshpace reads, besides those that ssh_config names.
var environment = [][2]string{
	{"HOME", "the home directory: ~ in file names, and the place of the directories below."},
	{"XDG_STATE_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR", "directories for results, for groups of hosts, for caches, and for sockets (~/.local/state, ~/.config, ~/.cache)."},
	{"TMPDIR", "directory for temporary files (/tmp)."},
	{"SSHPACE_CONFIRM_ABOVE", "run, copy and fetch ask before they reach more hosts than this number, as with --confirm-above."},
	{"SSH_AUTH_SOCK", "socket of the agent, as for ssh."},
	{"RES_OPTIONS", "options of resolv.conf(5): trust-ad counts for known-hosts scan with VerifyHostKeyDNS."},
	{"SSH_ASKPASS, SSH_ASKPASS_REQUIRE, DISPLAY, WAYLAND_DISPLAY", "say when and how a passphrase or PIN is asked for, as for ssh."},
	{"SHELL", "runs ProxyCommand and Match exec of ssh_config, as for ssh."},
	{"USER", "the user's name in the drop-in modes of compat."},
	{"NO_COLOR, CLICOLOR_FORCE", "no colors, or colors in pipes and files, too."},
	{"TERM", "dumb is a terminal without progress."},
	{"GOMAXPROCS, GOGC, GOMEMLIMIT", "limits of every Go program; where they are set, run does not choose its own."},
	{"PSSH_OPTIONS, PSSH_HOSTS, WCOLL, FANOUT, DSHPATH, PDSH_*, CLUSTERSHELL_CFGDIR", "are read by the drop-in modes as by the programs whose names they have."},
}

// files lists the files that sshpace reads and writes.
var files = [][2]string{
	{"~/.local/state/sshpace/results/", "results of bench, where --out names no file; $XDG_STATE_HOME/sshpace where that is set. A file is never written over: report and compare read them."},
	{"~/.local/state/sshpace/machines/", "limits that machine measured, one file for each machine; reports compare SSH with them."},
	{"~/.local/state/sshpace/runs/", "the runs of run, copy and fetch; --history lists them, and --no-record keeps none."},
	{"~/.cache/sshpace/openssh-*", "version, algorithms and defaults of the installed ssh; $XDG_CACHE_HOME/sshpace where that is set. ssh is asked again when it or its libraries change; these files may be deleted."},
	{"~/.config/sshpace/groups, groups.d", "groups of hosts for @group; $XDG_CONFIG_HOME/sshpace where that is set."},
	{"~/.ssh/config, /etc/ssh/ssh_config, ~/.ssh/known_hosts", "are read as ssh reads them. Only advise --write, known-hosts and --accept-new write there, and only when they are asked to."},
}

// glossaryOf lists the commands whose pages explain the words of reports.
var glossaryOf = map[string]bool{"sshpace": true, "bench": true, "report": true, "compare": true, "advise": true}

// sections writes the sections that do not come from a command's own text.
func sections(p *text.Manual, cmd *cobra.Command) {
	p.Line(".SH EXIT STATUS")
	exitCodes(p, cmd)
	p.Line(".SH ENVIRONMENT")
	for _, v := range environment {
		p.Entry(v[0], v[1])
	}
	p.Line(".SH FILES")
	for _, f := range files {
		p.Entry(f[0], f[1])
	}
	if !glossaryOf[cmd.Name()] {
		return
	}
	p.Line(".SH GLOSSARY")
	for _, word := range document.Glossary {
		p.Entry(word.Name, word.Value)
	}
}
