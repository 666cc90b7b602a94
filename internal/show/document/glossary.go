package document

import (
	"strings"

	"sshpace/internal/base/stats"
)

// interval95 explains the brackets after a figure.
const interval95 = "95 % confidence interval"

// inBrackets explains them where runs are compared.
const inBrackets = "In brackets: 95 % intervals, run-to-run variation included."

// Brackets returns the remark below figures that explains their brackets, and other words.
func Brackets(words ...string) Remark {
	return Remark{Name: "(a-b)", Value: strings.Join(append([]string{interval95}, words...), "; ")}
}

// Glossary explains the words of the reports. The manual pages and doc/method.md have the same.
var Glossary = []Fact{
	{"cell", "one cipher with one MAC in one direction; each has its own speed"},
	{"CPU s/GB", "seconds of CPU time for 10^9 bytes, of client and server together unless a side is named; the same number as ns per byte"},
	{"group", "cells with one letter differ by less than " + stats.MarginWords + ", or not significantly in this run"},
	{"noise floor", "two equal cells differ by less than this in 95 % of runs"},
	{"(a-b)", "the " + interval95 + " of the figure before it"},
	{"A/A control", "one key exchange, measured under two names without the program knowing: any difference is noise of the machine"},
	{"held out", "measured, but kept from the fit, to see how good predictions are"},
	{"predicted", "not measured: computed from the costs of its cipher and its MAC"},
	{"harness", "sshpace's own programs at both ends of a transfer"},
	{"PQ", "post-quantum: a key exchange that is safe against quantum computers, too"},
}
