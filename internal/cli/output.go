package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/show/format"
)

// outputFlags select the destination and the form of a report.
type outputFlags struct{ format.Output }

// add defines the flags of a command that shows one result, or else compares several.
func (o *outputFlags) add(cmd *cobra.Command, one bool) {
	for _, f := range format.All() {
		if one || !f.Alone {
			o.Names = append(o.Names, f.Name)
		}
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Format, "format", "", strings.Join(o.Names, ", ")+" (default: by the extension of --out, otherwise text)")
	flags.BoolVar(&o.JSON, "json", false, "print JSON, as --format json")
	flags.StringArrayVar(&o.Out, "out", nil, "write to this file instead of standard output; repeatable; the extension selects the format: "+format.Files())
	text := ""
	tables, charts := "cells, ciphers, macs, kex, overall, machines", "machines, ciphers, macs, cells, kex, all"
	if one {
		text = "in text as many as fit on a screen, "
		tables, charts = "ranking, kex, copies, failed, controls", "ranking, kex, heat, cost, answer, all"
	}
	flags.StringSliceVar(&o.Only, "only", nil, "only these, by `NAME`: tables ("+format.With(format.Tables)+": "+tables+") or charts ("+format.With(format.Charts)+": "+charts+"), and not the answer")
	flags.StringSliceVar(&o.Pick, "columns", nil, "only these columns of tables ("+format.With(format.Tables)+"), by `NAME` as in csv (default: in tex those that fit one column of a paper, otherwise all)")
	flags.IntVar(&o.Limit, "limit", 0, "at most `ROWS` in each table or chart (default: "+text+"in pictures 12, otherwise all; -1: all)")
	complete := func(flag, names string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(strings.Split(names, ", "), cobra.ShellCompDirectiveNoFileComp))
	}
	complete("only", tables+", "+charts)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(o.Names, cobra.ShellCompDirectiveNoFileComp))
}

// foundFlags select the destination of results without records.
type foundFlags struct{ format.Found }

func (f *foundFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Out, "out", "", "also write the result as JSON to this file")
	flags.BoolVar(&f.JSON, "json", false, "print one JSON object")
}

func (f *foundFlags) show(sys System, text, json func(io.Writer) error) error {
	return f.Show(sys.Stdout, sys.Stderr, text, json)
}

// splitLists returns the words of flags that may each hold several.
func splitLists(values []string) (all []string) {
	for _, v := range values {
		all = append(all, strings.Split(v, ",")...)
	}
	return all
}
