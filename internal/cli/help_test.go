package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/text"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
)

// each calls do for a command and all below it.
func each(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Name() == "help" { // which shows the help of others
		return
	}
	do(cmd)
	for _, child := range cmd.Commands() {
		each(child, do)
	}
}

func allCommands(t *testing.T, do func(*cobra.Command)) {
	t.Helper()
	each(newRoot(System{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}, nil), func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		do(cmd)
	})
}

// A flag's name, and its letter, mean one thing in all commands: that of its row in the table,
// which has none that no command has.
func TestFlagsMeanOneThing(t *testing.T) {
	commands, letters, said := map[string]int{}, map[string]string{}, map[string]map[string]string{}
	allCommands(t, func(cmd *cobra.Command) {
		shown, visible := 0, 0
		for _, g := range groupFlags(cmd) {
			shown += len(g.flags)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			row, title := rowOf(f.Name)
			commands[f.Name]++
			if said[f.Name] == nil {
				said[f.Name] = map[string]string{}
			}
			said[f.Name][f.Usage] = cmd.CommandPath()
			if f.Hidden {
				return
			}
			visible++
			switch named := "-" + f.Shorthand; {
			case title == "":
				t.Errorf("%s --%s is in no row of the table", cmd.CommandPath(), f.Name)
			case f.Shorthand != row.letter:
				t.Errorf("%s --%s has the letter %q, elsewhere %q", cmd.CommandPath(), f.Name, f.Shorthand, row.letter)
			case f.Shorthand != "" && letters[named] != "" && letters[named] != f.Name:
				t.Errorf("%s %s is --%s, and --%s elsewhere", cmd.CommandPath(), named, f.Name, letters[named])
			case f.Shorthand != "":
				letters[named] = f.Name
			}
		})
		if shown != visible {
			t.Errorf("%s shows %d flags of %d", cmd.CommandPath(), shown, visible)
		}
	})
	for _, g := range flagTable() {
		for _, row := range g.flags {
			switch n := commands[row.name]; {
			case n == 0:
				t.Errorf("%s: no command has --%s", g.title, row.name)
			case len(said[row.name]) > 1 && row.says == "":
				t.Errorf("%d commands have --%s in other words, and the table does not say what it means", n, row.name)
			}
			for usage, path := range said[row.name] {
				if !strings.Contains(usage, row.says) {
					t.Errorf("%s --%s: %q does not say %q, as elsewhere", path, row.name, usage, row.says)
				}
			}
		}
	}
}

// The first screen of the help of commands for many hosts holds what is looked for most.
func TestHelpBegins(t *testing.T) {
	for _, name := range []string{"run", "copy", "fetch"} {
		var out strings.Builder
		root := newRoot(System{Stdout: &out, Stderr: os.Stderr, Getenv: os.Getenv}, []string{name})
		root.SetArgs([]string{name, "--help"})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		first := strings.Join(lines[:24], "\n")
		if lines[0] != "Usage:" || strings.Count(first, "\n  sshpace "+name) < 4 || !strings.Contains(first, "most used flags") || !strings.Contains(first, "--timeout") {
			t.Errorf("%s:\n%s", name, first)
		}
	}
}

// expected are flags that commands have, whatever else they have.
var expected = []struct{ commands, flags string }{
	{"bench, transfer, programs, login, limits, doctor, advise, known-hosts bench", "budget, rounds, quiet, json"},
	{"latency", "budget, count, quiet, json"},
	{"bench, transfer, programs, login, limits, doctor, run, copy, fetch", "list, quiet, json"},
	{"bench, transfer, programs, login, latency, limits, doctor, report, compare, import, known-hosts pin, known-hosts bench", "out"},
	{"transfer, programs, login, latency, limits, doctor, advise, report, compare", "only"},
	{"run, copy, fetch", "dir, rate, hosts, exclude-hosts, fanout"},
	{"bench, transfer, login, latency, doctor, advise, config, run, copy, fetch", "config, option, port, login, identity, jump, ipv4, ipv6"},
}

// silent are the commands without --json, and why.
var silent = map[string]string{
	"sshpace": "lists the commands", "sshpace known-hosts": "lists the commands", "sshpace man": "writes pages", "sshpace completion": "writes a script", "sshpace compat": "prints what another program prints",
	"sshpace work": "run --hub and jobs show what it does",
}

// Flags that several commands should have are in all of them, by one name.
func TestFlagsAreEverywhere(t *testing.T) {
	all := map[string]*cobra.Command{}
	allCommands(t, func(cmd *cobra.Command) {
		all[strings.TrimPrefix(cmd.CommandPath(), "sshpace ")] = cmd
		if cmd.Flags().Lookup("json") == nil != (silent[cmd.CommandPath()] != "") {
			t.Errorf("%s: --json", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch word := placeholderOf(f); {
			case slices.Contains([]string{"pairs", "factor", "runs", "table", "chart", "directory", "outdir", "repeat", "seconds"}, f.Name):
				t.Errorf("%s --%s is called something else in other commands", cmd.CommandPath(), f.Name)
			case word == "DIR" && f.Name != "dir" && f.Name != "remote-dir":
				t.Errorf("%s --%s names a directory, which is --dir", cmd.CommandPath(), f.Name)
			}
		})
	})
	for _, e := range expected {
		for path := range strings.SplitSeq(e.commands, ", ") {
			for flag := range strings.SplitSeq(e.flags, ", ") {
				if flag == "rate" && path == "run" { // it moves no files
					continue
				}
				if all[path].Flags().Lookup(flag) == nil {
					t.Errorf("%s has no --%s", path, flag)
				}
			}
		}
	}
}

// The help fits on a screen, with the line below it that the shell types; it names every command
// and begins examples of jobs. Texts of commands fit in its width.
func TestHelpFitsOnAScreen(t *testing.T) {
	var out strings.Builder
	if err := Main(t.Context(), System{Stdout: &out, Stderr: &out, Getenv: os.Getenv}, []string{"sshpace"}); err != ExitOK {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n > 23 {
		t.Errorf("%d lines:\n%s", n, &out)
	}
	commands, examples, _ := strings.Cut(out.String(), "\nExamples:\n")
	if strings.Count(examples, "  sshpace ") != 6 || !strings.Contains(examples, "sshpace doctor") {
		t.Errorf("examples:\n%s", examples)
	}
	for _, g := range groups() {
		for _, c := range g.commands {
			if !regexp.MustCompile(`(?m)(^| {2,}|More: .*)\b`+c.name+`\b`).MatchString(commands) || !strings.Contains(commands, g.title) {
				t.Errorf("%s is not in the help", c.name)
			}
		}
	}
	allCommands(t, func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Short + "\n" + cmd.Long + groupedFlags(cmd)) {
			if len(strings.TrimSuffix(line, "\n")) > text.Columns-1 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line)-1, line)
			}
		}
		if len(cmd.Short) > 60 && cmd.HasParent() {
			t.Errorf("%s: %q has more than 60 characters", cmd.CommandPath(), cmd.Short)
		}
	})
}

// Whatever is wrong with a line is said in our words, is a usage error, and comes with what to type
// instead; every count and duration is bounded, by one table.
func TestOurWords(t *testing.T) {
	foreign := regexp.MustCompile(`arg\(s\)|unknown (shorthand|command .* for)|flag needs|invalid argument|required flag|bad flag syntax|strconv`)
	bounded := map[string]bool{}
	allCommands(t, func(cmd *cobra.Command) {
		words := strings.Fields(cmd.CommandPath())
		lines := [][]string{{"--nonsense"}, {"-Z"}, {"-h=x"}, {"--=x"}, {"a", "b", "c", "d", "--nonsense"}}
		if cmd.HasParent() && !cmd.HasAvailableSubCommands() && cmd.Args != nil && cmd.Args(cmd, []string{"a", "b"}) != nil {
			lines = append(lines, []string{"a", "b"})
		}
		if cmd.HasParent() && cmd.Args != nil && cmd.Args(cmd, nil) != nil {
			lines = append(lines, nil)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" {
				lines = append(lines, []string{"--" + f.Name})
			}
			a, is := amounts[f.Name]
			_, number := amountOf(f.Value)
			if number != is && f.Name != "limit" && !(is && f.Value.Type() == "string") {
				t.Errorf("%s --%s is a number that the table of amounts does not bound", cmd.CommandPath(), f.Name)
			}
			if !number || !is {
				return
			}
			bounded[f.Name] = true
			lines = append(lines, []string{"--" + f.Name + "=-1"}, []string{"--" + f.Name + "=x"})
			if !a.zero {
				lines = append(lines, []string{"--" + f.Name + "=0"})
			}
		})
		if cmd.Name() == "compat" { // which has the flags of others
			return
		}
		for _, line := range lines {
			var out strings.Builder
			args := slices.Concat(words, line)
			sys := System{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}
			switch exit, said := Main(t.Context(), sys, args), out.String(); {
			case exit != ExitUsage || !strings.Contains(said, "sshpace: error: ") || !strings.Contains(said, "\nsshpace: hint: "):
				t.Errorf("%q: exit %d, %s", args, exit, said)
			case foreign.MatchString(said):
				t.Errorf("%q: not our words: %s", args, said)
			}
		}
	})
	for name := range amounts {
		if !bounded[name] {
			t.Errorf("no command has --%s as a number", name)
		}
	}
}

// Version names every schema that something prints.
func TestVersionNamesSchemas(t *testing.T) {
	name := regexp.MustCompile(`"(sshpace\.[a-z.-]+/[0-9]+)"`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range name.FindAllStringSubmatch(string(source), -1) {
			if !slices.Contains(schemas, found[1]) {
				t.Errorf("%s prints %s, which version --json does not name", path, found[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What stands behind a flag says what it is, not which type a program keeps it in.
func TestPlaceholders(t *testing.T) {
	allCommands(t, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			word := placeholderOf(f)
			for _, kind := range []string{"STRING", "INT", "FLOAT", "UINT", "ARRAY", "SLICE", "COUNT", "TIME"} {
				if strings.HasPrefix(strings.TrimSuffix(word, "64"), kind) && word != "COUNTxSIZE" {
					t.Errorf("%s --%s %s", cmd.CommandPath(), f.Name, word)
				}
			}
		})
	})
}

// README.md and the manual have the same exit codes, doc/method.md and the manual the same words,
// and the guide all formats that report has.
func TestManualAgreesWithTheDocuments(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitStatus[:5] {
		if row := fmt.Sprintf("| %d | %s |", e.code, e.meaning); !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row %q", row)
		}
	}
	method, err := os.ReadFile("../../doc/method.md")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(string(method)), " ")
	for _, word := range document.Glossary {
		if !strings.Contains(flat, word.Value) {
			t.Errorf("doc/method.md does not explain %q as the manual does: %s", word.Name, word.Value)
		}
	}
	guide, err := os.ReadFile("../../doc/guide/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range format.All() {
		if word := "`" + append(f.Endings, "--format "+f.Name)[0] + "`"; f.Name != "text" && !strings.Contains(string(guide), word) {
			t.Errorf("doc/guide/results.md does not tell of %s", word)
		}
	}
}

// The pages have the sections that man-pages(7) asks for.
func TestSectionsOfTheManual(t *testing.T) {
	allCommands(t, func(cmd *cobra.Command) {
		page := manPageOf(cmd)
		want := []string{"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"}
		if glossaryOf[cmd.Name()] {
			want = append(want, "GLOSSARY")
		}
		for _, section := range want {
			if strings.Count(page, "\n.SH "+section+"\n") != 1 {
				t.Errorf("%s: section %s", cmd.CommandPath(), section)
			}
		}
	})
}

// A page lists the exit codes that its command has, once each, and that of all commands all of
// them.
func TestExitCodesOfTheManual(t *testing.T) {
	code, want := regexp.MustCompile(`(?m)^\.TP\n\\fB(\d+)\\fR$`), map[string]string{
		"sshpace": "0 1 2 3 4 5 129 130 131 141 143", "sshpace run": "0 1 2 4 129 130 131 141 143", "sshpace fetch": "0 1 2 4 129 130 131 141 143",
		"sshpace bench": "0 1 2 129 130 131 141 143", "sshpace doctor": "0 1 2 3 129 130 131 141 143", "sshpace compare": "0 1 2 3 5 141",
		"sshpace known-hosts lint": "0 1 2 3 141", "sshpace hosts": "0 1 2 141", "sshpace completion": "0 1 2 141",
	}
	allCommands(t, func(cmd *cobra.Command) {
		_, section, _ := strings.Cut(manPageOf(cmd), ".SH EXIT STATUS\n")
		section, _, _ = strings.Cut(section, ".SH ")
		var codes []string
		for _, found := range code.FindAllStringSubmatch(section, -1) {
			codes = append(codes, found[1])
		}
		if got := strings.Join(codes, " "); want[cmd.CommandPath()] != "" && got != want[cmd.CommandPath()] || got == "" {
			t.Errorf("%s: %q, want %q\n%s", cmd.CommandPath(), got, want[cmd.CommandPath()], section)
		}
	})
}

// The manual names every variable of the environment that is read.
func TestEnvironmentOfTheManual(t *testing.T) {
	var known string
	for _, v := range environment {
		known += v[0] + ", "
	}
	read := regexp.MustCompile(`(?i:getenv|lookupenv|\benv)\("([A-Z_]+)"\)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range read.FindAllStringSubmatch(string(source), -1) {
			if name := found[1]; !strings.Contains(known, name+",") && !strings.HasPrefix(name, "PDSH_") && name != "PATH" {
				t.Errorf("%s reads %s, which the manual does not name", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Texts are ours, and a default that cannot be seen is named.
func TestHelpIsOurs(t *testing.T) {
	allCommands(t, func(cmd *cobra.Command) {
		if help := cmd.Long + groupedFlags(cmd); strings.Contains(help, "autocompletion") || strings.Contains(help, "(default )") || strings.Contains(help, "(default  )") {
			t.Errorf("%s:\n%s", cmd.CommandPath(), help)
		}
	})
}
