package sshtest

import (
	"maps"
	"slices"
	"strings"

	"sshpace/internal/ssh/conf"
)

// shown gives a line of ssh -G one form where releases have two.
func shown(name, rest string) (key, value string, ok bool) {
	k, known := conf.KeywordOf(name)
	if !known {
		return "", "", false
	}
	switch rest {
	case "yes":
		rest = "true"
	case "no":
		rest = "false"
	case "none:": // of CanonicalizePermittedCNAMEs behind a list of algorithms that comes to nothing
		rest = "none"
	}
	return k.String(), rest, true
}

// Table is a configuration as ssh -G shows it: the values of each keyword.
type Table map[string][]string

// TableOfDump reads the output of ssh -G.
func TableOfDump(text string) Table {
	t := Table{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if key, value, ok := shown(name, rest); ok {
			t[key] = append(t[key], value)
		}
	}
	return t
}

// Read leaves out the keywords of which nothing but the text is kept.
func (t Table) Read() Table {
	read := maps.Clone(t)
	maps.DeleteFunc(read, func(name string, _ []string) bool {
		k, _ := conf.KeywordOf(name)
		return k.Text()
	})
	return read
}

// TableOf shows a resolution as ssh -G would.
func TableOf(r *conf.Resolved) Table {
	t := Table{}
	for k, v := range r.Settings() {
		separator := " "
		if slices.Contains(conf.AlgorithmLists, k) {
			separator = ","
		}
		rests := []string{strings.Join(v.Args, separator)}
		if k == conf.SetEnv {
			rests = v.Args
		}
		for _, rest := range rests {
			if key, value, ok := shown(k.String(), rest); ok {
				t[key] = append(t[key], value)
			}
		}
	}
	if len(t["ProxyJump"]) > 0 {
		delete(t, "ProxyCommand") // ssh -G prints one of the two
	}
	return t
}
