package cli

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/text"
)

// pages are what people read of each command, see page.
//
//go:embed pages/*.txt
var pages embed.FS

// page gives a command the text of its page: its use line, a short description, a long one,
// examples.
func page(name string, cmd *cobra.Command) *cobra.Command {
	text, err := pages.ReadFile("pages/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	words, examples, _ := strings.Cut(string(text), "\nExamples:\n")
	head, long, _ := strings.Cut(words, "\n\n")
	cmd.Use, cmd.Short, _ = strings.Cut(strings.TrimSpace(head), "\n")
	cmd.Long, cmd.Example = strings.TrimSpace(long), strings.TrimRight(examples, "\n")
	return cmd
}

// flagRow is a flag with the same name in every command: its letter, the word for its value where
// the description has none, and its description if several commands have the flag, each with its
// own words.
type flagRow struct{ name, letter, value, says string }

// flagRows are the flags below a heading of the help.
type flagRows struct {
	title string
	flags []flagRow
}

// flagTable lists all flags, as they stand on their page: a name means one thing in every command.
var flagTable = sync.OnceValue(func() (table []flagRows) {
	text, _ := pages.ReadFile("pages/flags.txt")
	for group := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		title, lines, _ := strings.Cut(group, "\n")
		rows := flagRows{title: title}
		for line := range strings.SplitSeq(lines, "\n") {
			var row flagRow
			line, row.says, _ = strings.Cut(line, ": ")
			for word := range strings.FieldsSeq(line) {
				switch {
				case strings.HasPrefix(word, "--"):
					row.name = word[2:]
				case strings.HasPrefix(word, "-"):
					row.letter = word[1:]
				default:
					row.value = word
				}
			}
			rows.flags = append(rows.flags, row)
		}
		table = append(table, rows)
	}
	return table
})

// rowOf returns the row of a flag, and its heading.
func rowOf(name string) (row flagRow, title string) {
	for _, g := range flagTable() {
		for _, r := range g.flags {
			if r.name == name {
				return r, g.title
			}
		}
	}
	return flagRow{}, ""
}

// placeholderOf returns the word after a flag; "" for a switch.
func placeholderOf(f *pflag.Flag) string {
	if kind := f.Value.Type(); kind == "bool" || kind == "count" {
		return ""
	}
	if name, _ := pflag.UnquoteUsage(f); strings.Contains(f.Usage, "`") {
		return name
	}
	if row, _ := rowOf(f.Name); row.value != "" {
		return row.value
	}
	return strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(f.Value.Type(), "Array"), "Slice"))
}

// flagGroup is a heading and the flags below it.
type flagGroup struct {
	title string
	flags []*pflag.Flag
}

// groupFlags sorts a command's flags into groups; a command with few flags has one group without a
// title.
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
	for _, g := range flagTable() {
		in := slices.DeleteFunc(slices.Clone(all), func(f *pflag.Flag) bool { _, title := rowOf(f.Name); return title != g.title })
		if len(in) > 0 {
			groups = append(groups, flagGroup{g.title, in})
		}
	}
	return groups
}

// groupedFlags returns the help of a command's flags.
func groupedFlags(cmd *cobra.Command) string {
	groups, widest := groupFlags(cmd), 0
	for _, g := range groups {
		for _, f := range g.flags {
			widest = max(widest, len(flagHead(f)))
		}
	}
	var out strings.Builder
	for _, g := range groups {
		out.WriteString("\n" + cmp.Or(g.title, "Flags") + ":\n")
		for _, f := range g.flags {
			head := flagHead(f)
			for _, line := range text.Wrap("", meaning(f), text.Columns-1-widest-2) {
				out.WriteString(text.Pad(head, widest) + "  " + line + "\n")
				head = ""
			}
		}
	}
	return out.String()
}

// flagHead returns a flag as it is typed, such as " -F, --config FILE".
func flagHead(f *pflag.Flag) string {
	head := "      --" + f.Name
	if f.Shorthand != "" {
		head = "  -" + f.Shorthand + ", --" + f.Name
	}
	return head + flagValue(f)
}

// flagValue returns the text after a flag's name: " FILE", or "[=HOST]" where it may be left out.
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

// meaning describes a flag, with its default.
func meaning(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	if d := strings.TrimSpace(f.DefValue); d != "" && d != "false" && d != "0" && d != "[]" && !strings.Contains(usage, "default") {
		usage += fmt.Sprintf(" (default %s)", d)
	}
	return usage
}

// commandGroup is a heading and the commands below it.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// groupCommands returns the subcommands in the order of the tables; without groups they are one.
func groupCommands(cmd *cobra.Command) (all []commandGroup) {
	titles, order := []string{""}, map[string]int{"help": len(groups())}
	for _, g := range groups() {
		titles = append(titles, g.title)
		for i, c := range g.commands {
			order[c.name] = i
		}
	}
	for _, title := range titles {
		g := commandGroup{title: cmp.Or(title, "Commands")}
		for _, child := range cmd.Commands() {
			if child.GroupID == title && (child.IsAvailableCommand() || child.Name() == "help") {
				g.commands = append(g.commands, child)
			}
		}
		if title != "" {
			slices.SortStableFunc(g.commands, func(a, b *cobra.Command) int { return order[a.Name()] - order[b.Name()] })
		}
		if len(g.commands) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// usage prints the help of a command, with the most wanted parts on the first screen: use line,
// examples, description, and flags in groups.
func usage(cmd *cobra.Command) error {
	out := cmd.OutOrStderr()
	if !cmd.HasParent() { // its text lists the commands
		_, err := fmt.Fprintf(out, "%s\n\nExamples:\n%s\n", cmd.Long, cmd.Example)
		return err
	}
	if !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	}
	t := text.Table{Columns: make([]text.Column, 2)}
	var titles []string // above which row; "" for none
	for _, g := range groupCommands(cmd) {
		title := "\n" + g.title + ":\n"
		for _, child := range g.commands {
			t.Rows, titles = append(t.Rows, []string{"  " + child.Name(), child.Short}), append(titles, title)
			title = ""
		}
	}
	for i, line := range t.Lines(0) {
		fmt.Fprint(out, titles[i], line, "\n")
	}
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	fmt.Fprintf(out, "\n%s\n", cmp.Or(cmd.Long, cmd.Short))
	_, err := fmt.Fprint(out, groupedFlags(cmd))
	if cmd.HasAvailableSubCommands() {
		_, err = fmt.Fprintf(out, "\n\"%s COMMAND --help\" explains a command.\n", cmd.CommandPath())
	}
	return err
}
