package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups order the flags of a command's help: what is not named here stands
// first, under "Flags".
var flagGroups = []struct {
	title string
	names []string
}{
	{"What to measure", []string{"only", "cipher", "mac", "kex", "policy", "direction", "data", "figure", "normalise"}},
	{"How long", []string{"budget", "count", "interval", "precision", "rounds", "exhaustive", "size", "runs", "resume"}},
	{"Connection", []string{"config", "option", "port", "login", "identity", "jump", "ipv4", "ipv6", "connect-timeout", "connections"}},
	{"Output", []string{"out", "format", "json", "all", "method", "limit", "table", "chart", "list", "quiet", "anonymize", "top", "worst", "fail-on"}},
	{"Expert", []string{"seed", "engine", "server", "ssh", "sshd", "sshd-config", "rank-by", "machine"}},
}

// placeholders say what a flag's value is; others have the name of its type.
var placeholders = map[string][]string{
	"GLOB":     {"only", "cipher", "mac", "kex", "figure", "normalise"},
	"FILE":     {"out", "resume", "config", "identity", "machine", "ssh", "sshd", "sshd-config", "hosts-file", "known-hosts"},
	"DURATION": {"budget", "interval", "connect-timeout", "timeout"},
	"SIZE":     {"size", "max-output"},
	"NAME":     {"policy", "direction", "data", "format", "table", "chart", "engine", "server", "rank-by"},
	"HOST":     {"jump", "check"},
	"OPTION":   {"option"},
	"USER":     {"login"},
	"PATTERN":  {"host"},
	"N":        {"rounds", "runs", "top", "connections", "seed", "port"},
	"PERCENT":  {"precision"},
	"LIMIT":    {"fail-on"},
}

// placeholderOf is the word behind a flag; "" for a switch.
func placeholderOf(f *pflag.Flag) string {
	if f.Value.Type() == "bool" {
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

// groupedFlags is the help of a command's flags.
func groupedFlags(cmd *cobra.Command) string {
	group := map[string]int{}
	for i, g := range flagGroups {
		for _, name := range g.names {
			group[name] = i + 1
		}
	}
	lines := make([][]string, len(flagGroups)+1)
	width, all := 0, 0
	heads := map[*pflag.Flag]string{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		head := "      --" + f.Name
		if f.Shorthand != "" {
			head = "  -" + f.Shorthand + ", --" + f.Name
		}
		if word := placeholderOf(f); word != "" {
			head += " " + word
		}
		heads[f], width, all = head, max(width, len(head)), all+1
	})
	const few = 8 // flags that need no groups
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		at := group[f.Name]
		if all <= few {
			at = 0
		}
		lines[at] = append(lines[at], fmt.Sprintf("%-*s  %s\n", width, heads[f], meaning(f)))
	})
	var out strings.Builder
	for i, block := range lines {
		if len(block) == 0 {
			continue
		}
		title := "Flags"
		if i > 0 {
			title = flagGroups[i-1].title
		}
		fmt.Fprintf(&out, "\n%s:\n%s", title, strings.Join(block, ""))
	}
	return out.String()
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
		fmt.Fprint(out, "\nCommands:\n")
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() || child.Name() == "help" {
				fmt.Fprintf(out, "  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
	_, err := fmt.Fprint(out, groupedFlags(cmd))
	if cmd.HasAvailableSubCommands() {
		_, err = fmt.Fprintf(out, "\n\"%s COMMAND --help\" tells more about a command.\n", cmd.CommandPath())
	}
	return err
}
