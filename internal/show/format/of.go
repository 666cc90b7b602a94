package format

import (
	"cmp"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/record/anonymize"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
)

// Wanted says how to report a result.
type Wanted struct {
	Ranking          // as far as the user set it
	Policy    string // allowed in the advice
	By        rank.By
	Machine   string // the file of its limits; "" for the newest of this machine
	Anonymous bool   // without its results
	Against   string // of a survey: the file of an earlier one; "" for none
}

// Of returns the report of a result in a file of s, which may be the newest there.
func Of(s store.Store, path string, newest bool, w Wanted) (Report, error) {
	policy, err := advise.Load(w.Policy)
	if err != nil {
		return nil, err
	}
	disguise := func(f *record.File) *record.File { return f }
	if w.Anonymous {
		disguise = anonymize.File
	}
	records, err := store.Load(path)
	if err != nil {
		return nil, err
	}
	records, commands := disguise(records), Commands(s, path, newest, w.Policy, leading(records)...)
	if commands.Resume = resume(records, s.Word(path)); w.Anonymous {
		commands = document.Standard
	}
	c := contentOf(records)
	switch {
	case c.name == surveys:
		before, err := Earlier(w.Against)
		if err != nil {
			return nil, err
		}
		return Survey(s, records, before, w.Options.All, w.Output), nil
	case w.Against != "":
		return nil, fault.Usage("leave it out, or use sshpace compare", "--against is for results of sshpace survey")
	case c.show != nil:
		return c.show(records, w.Options.All, commands, w.Output), nil
	}
	r, err := compare.RankRecords(path, records, w.By)
	if err != nil {
		return nil, err
	}
	x := w.Ranking
	if x.Options.Ceilings, err = compare.CeilingsOf(s, r, w.Machine, disguise); err != nil {
		return nil, err
	}
	x.Ranking, x.Records = r, records
	x.Options.Choice, x.Options.Limit, x.Options.Columns = advise.Of(r, advise.Options{Policy: policy}), x.Output.Limit, x.Output.Columns
	x.Options.File, x.Options.Shown, x.Options.Commands = path, s.Shown(path), commands
	if w.Anonymous {
		x.Options.File, x.Options.Shown = "", ""
	}
	return &x, nil
}

// leading returns the options that led ssh to the host of a result.
func leading(f *record.File) (options []string) {
	for _, config := range f.Campaign.Asked["config"] {
		options = append(options, configOption, config)
	}
	return options
}

// resume returns the command that resumes the measurement of a file; word names the file. Programs
// outside this machine's search path must be named again: no file decides which programs to start.
func resume(f *record.File, word string) string {
	line := shell.Line(slices.Concat([]string{"sshpace", cmp.Or(f.Campaign.Command, "bench")}, leading(f), []string{"--resume"})...) + " " + word
	versions := map[string]bool{}
	for _, m := range f.Methods() {
		if strings.HasPrefix(m.Server, "openssh ") {
			versions[m.Server] = true
		}
	}
	if len(versions) > 1 {
		line += " --ssh " + shell.Word(cmp.Or(f.Environment.ClientPath, "PATH")) + " --sshd " + shell.Word(cmp.Or(f.Environment.ServerPath, "PATH"))
	}
	return line
}
