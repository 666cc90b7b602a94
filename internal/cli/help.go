package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/text"
)

// flagGroups order the flags of a command's help. Every flag is in one; a word
// before its name is that of the command.
var flagGroups = []struct {
	title string
	names []string
}{
	{"What to measure", []string{
		"only", "cipher", "mac", "kex", "policy", "direction", "data", "figure", "normalise",
		"mode", "pairs", "load", "factor", "full", "files", "streams", "compression", "folder", "remote-folder", "disk-dir", "disk-size",
	}},
	{"How long", []string{"budget", "ping count", "interval", "precision", "rounds", "exhaustive", "size", "runs", "resume"}},
	{"What to do", []string{
		"prove", "write", "undo", "check", "strict", "include-insecure", "host", "dir", "force", "from", "to", "keep-unmatched", "no-resolve", "ignore", "known-hosts",
		"script", "stdin", "sudo", "ask-pass", "password-command", "login-log", "rerun", "history", "maxrc", "no-remote-kill", "checksum", "no-verify", "max-size",
		"hosts count", "expand", "fold", "autostep", "separator",
	}},
	{"Hosts", []string{"hosts", "exclude", "intersection", "xor", "hosts-file", "label", "groups", "groups-command", "inventory", "from-config"}},
	{"Pace", []string{
		"fanout", "batch", "canary", "then-confirm", "pause", "max-fail", "confirm-above", "yes", "timeout", "retry-for",
	}},
	{"Connection", []string{
		"config", "option", "port", "login", "identity", "jump", "ipv4", "ipv6", "connect-timeout", "connections", "accept-new", "rtt", "rate", "loss",
	}},
	{"Output", []string{
		"out", "format", "json", "all", "method", "limit", "table", "chart", "list", "long", "quiet", "verbose", "anonymize", "top", "worst", "fail-on", "pair",
		"gather", "diff", "sort", "group-by", "color", "raw", "outdir", "max-output", "no-record", "help", "version",
	}},
	{"Expert", []string{"seed", "engine", "server", "ssh", "sshd", "sshd-config", "openssl", "rank-by", "machine"}},
}

// placeholders say what a flag's value is, where its description does not.
var placeholders = map[string][]string{
	"GLOB":          {"only", "cipher", "mac", "kex", "figure", "normalise"},
	"FILE":          {"out", "resume", "config", "identity", "machine", "ssh", "sshd", "sshd-config", "openssl", "hosts-file", "known-hosts", "inventory", "script", "login-log"},
	"DIR":           {"folder", "remote-folder", "disk-dir", "dir", "outdir"},
	"FILE|DIR":      {"groups"},
	"COMMAND":       {"groups-command", "password-command"},
	"DURATION":      {"budget", "interval", "connect-timeout", "timeout", "pause", "retry-for", "rtt"},
	"SIZE":          {"size", "max-output", "disk-size"},
	"RATE":          {"rate"},
	"COUNTxSIZE":    {"files"},
	"NAME":          {"policy", "direction", "data", "format", "table", "chart", "sort", "group-by", "engine", "server", "rank-by", "mode", "from", "factor", "load", "label", "ignore"},
	"CLIENT:SERVER": {"pairs"},
	"SIDE":          {"write", "undo"},
	"WHEN":          {"color"},
	"HOST":          {"jump", "check", "diff", "to"},
	"SET":           {"hosts", "exclude", "intersection", "xor", "rerun"},
	"TEXT":          {"separator"},
	"OPTION":        {"option"},
	"USER":          {"login", "sudo"},
	"PATTERN":       {"host"},
	"N":             {"count", "rounds", "runs", "top", "connections", "seed", "port", "streams", "canary", "confirm-above", "fanout", "autostep"},
	"PERCENT":       {"precision", "loss"},
	"LIMIT":         {"fail-on"},
}

// placeholderOf is the word behind a flag; "" for a switch.
func placeholderOf(f *pflag.Flag) string {
	if kind := f.Value.Type(); kind == "bool" || kind == "count" {
		return ""
	}
	if name, _ := pflag.UnquoteUsage(f); strings.Contains(f.Usage, "`") {
		return name
	}
	for word, names := range placeholders {
		for _, name := range names {
			if name == f.Name {
				return word
			}
		}
	}
	return strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(f.Value.Type(), "Array"), "Slice"))
}

// flagGroup is a heading and the flags below it.
type flagGroup struct {
	title string
	flags []*pflag.Flag
}

// groupFlags sorts a command's flags into groups; those of a command with few are
// one without a title.
func groupFlags(cmd *cobra.Command) []flagGroup {
	var all []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, f)
		}
	})
	const few = 8
	if len(all) <= few {
		return []flagGroup{{"", all}}
	}
	var groups []flagGroup
	for _, g := range flagGroups {
		in := slices.DeleteFunc(slices.Clone(all), func(f *pflag.Flag) bool { return !groupHolds(g.names, cmd, f) })
		if len(in) > 0 {
			groups = append(groups, flagGroup{g.title, in})
		}
	}
	return groups
}

// groupHolds reports whether a group names a flag, or that flag of this command.
func groupHolds(names []string, cmd *cobra.Command, f *pflag.Flag) bool {
	return slices.Contains(names, f.Name) || slices.Contains(names, cmd.Name()+" "+f.Name)
}

// groupedFlags is the help of a command's flags.
func groupedFlags(cmd *cobra.Command) string {
	var out strings.Builder
	t := text.Table{Columns: make([]text.Column, 2)}
	var titles []string // above which row; "" for none
	for _, g := range groupFlags(cmd) {
		title := "\n" + cmp.Or(g.title, "Flags") + ":\n"
		for _, f := range g.flags {
			head := flagHead(f)
			for line := range strings.SplitSeq(meaning(f), "\n") {
				t.Rows, titles = append(t.Rows, []string{head, line}), append(titles, title)
				head, title = "", ""
			}
		}
	}
	for i, line := range t.Lines(0) {
		out.WriteString(titles[i] + line + "\n")
	}
	return out.String()
}

// flagHead is a flag as it is typed, such as "  -F, --config FILE".
func flagHead(f *pflag.Flag) string {
	head := "      --" + f.Name
	if f.Shorthand != "" {
		head = "  -" + f.Shorthand + ", --" + f.Name
	}
	return head + flagValue(f)
}

// flagValue is what follows a flag's name: " FILE", or "[=HOST]" where it may be
// left out.
func flagValue(f *pflag.Flag) string {
	switch word := placeholderOf(f); {
	case word == "":
		return ""
	case f.NoOptDefVal != "":
		return "[=" + word + "]"
	default:
		return " " + word
	}
}

// meaning is what a flag does, with its default.
func meaning(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && !strings.Contains(usage, "default") {
		usage += fmt.Sprintf(" (default %s)", d)
	}
	return usage
}

// usage prints how a command is called: cobra's own, with the flags in groups.
func usage(cmd *cobra.Command) error {
	out := cmd.OutOrStderr()
	fmt.Fprintf(out, "Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(out, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		t := text.Table{Columns: make([]text.Column, 2)}
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() || child.Name() == "help" {
				t.Rows = append(t.Rows, []string{"  " + child.Name(), child.Short})
			}
		}
		fmt.Fprint(out, "\nCommands:\n", t.Text(0))
	}
	_, err := fmt.Fprint(out, groupedFlags(cmd))
	if cmd.HasAvailableSubCommands() {
		_, err = fmt.Fprintf(out, "\n\"%s COMMAND --help\" tells more about a command.\n", cmd.CommandPath())
	}
	return err
}
