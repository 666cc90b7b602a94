package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"sshpace/internal/base/text"
	"sshpace/internal/show/document"
)

// exitStatus are the exit codes for people; README.md has the same.
var exitStatus = []struct {
	code    int
	meaning string
}{
	{ExitOK, "ok"},
	{ExitFailed, "failed"},
	{ExitUsage, "usage or configuration"},
	{ExitFound, "ran well and found something, such as a regression"},
	{ExitUnreachable, "some hosts unreachable, nothing else wrong"},
	{ExitInconclusive, "not enough data to say what was asked, such as compare --fail-on"},
	{ExitHangup, "stopped by SIGHUP; what was measured is reported and saved"},
	{ExitInterrupted, "stopped by SIGINT, likewise"},
	{ExitQuit, "stopped by SIGQUIT, likewise"},
	{ExitUnread, "stopped because nobody reads the output any more, as after | head"},
	{ExitTerminated, "stopped by SIGTERM, likewise"},
}

// files are what sshpace reads and writes.
var files = [][2]string{
	{"~/.local/state/sshpace/results/", "results of bench, where --out names no file; $XDG_STATE_HOME/sshpace where that is set. A file is never written over: report and compare read them."},
	{"~/.local/state/sshpace/machines/", "limits that machine measured, one file for each machine; reports name what limits SSH by them."},
	{"~/.local/state/sshpace/runs/", "what run, copy and fetch did; --history lists it, and --no-record keeps nothing."},
	{"~/.cache/sshpace/openssh-*", "version, algorithms and defaults of the installed ssh; $XDG_CACHE_HOME/sshpace where that is set. ssh is asked again when it or its libraries change; these files may be deleted."},
	{"~/.config/sshpace/groups, groups.d", "groups of hosts for @group; $XDG_CONFIG_HOME/sshpace where that is set."},
	{"~/.ssh/config, /etc/ssh/ssh_config, ~/.ssh/known_hosts", "are read as ssh reads them. Only advise --write, known-hosts and --accept-new write there, and only when they are asked to."},
}

// glossaryOf are the commands whose pages explain the words of reports.
var glossaryOf = map[string]bool{"sshpace": true, "bench": true, "report": true, "compare": true, "advise": true}

// sections are those that do not come from a command's own text.
func sections(p *text.Manual, cmd *cobra.Command) {
	p.Line(".SH EXIT STATUS")
	for _, e := range exitStatus {
		p.Entry(strconv.Itoa(e.code), e.meaning)
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
