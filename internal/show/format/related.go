package format

import (
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/findings"
)

// nothingCommon says how the most similar methods of two files differ.
func nothingCommon(labels []string, results [][]compare.MethodResult) error {
	const hint = "compare results with the same --only, --cipher, --files and path; one run compares ciphers: transfer --only scp --cipher aes128-gcm,chacha20-poly1305; --pair names pairs of programs"
	a, b := compare.Nearest(results[0], results[1])
	if a == nil {
		return fault.Usage(hint, "%s or %s has no figures of any method", labels[0], labels[1])
	}
	return fault.Usage(hint, "no method is in both: %s has %s, and %s has %s", labels[0], document.MethodAndCipher(a.Method), labels[1], document.MethodAndCipher(b.Method))
}

// Related returns the comparison of files: of logins or transfer methods, if the first holds those,
// otherwise of the cells that allowed accepts, all or only the changed ones. pairs selects pairs of
// implementations of each file. Commands use the names by which s finds the files.
func (o *Output) Related(s store.Store, paths, pairs []string, allowed func(*rank.Ranking) *rank.Ranking, options compare.Options, all bool) (r Report, cells bool, err error) {
	if r, err = o.related(s, paths, pairs); r != nil || err != nil {
		return r, false, err
	}
	if len(pairs) > 0 {
		return nil, true, fault.Usage("leave it out", "--pair is for results of programs")
	}
	c, err := compare.CompareFiles(paths, allowed, options)
	if err != nil {
		return nil, true, err
	}
	return o.cells(s, c, paths, all), true, nil
}

// related is a file of a comparison, with its name in commands.
type related struct {
	path, label, word string
	*record.File
}

// labels returns the labels of files.
func labels(all []related) (out []string) {
	for _, f := range all {
		out = append(out, f.label)
	}
	return out
}

// related returns the comparison of files with logins or with transfer methods; nil where the first
// holds neither.
func (o *Output) related(s store.Store, paths, pairs []string) (Report, error) {
	var all []related
	var kind content
	for _, path := range paths {
		f, err := store.Load(path)
		if err != nil {
			return nil, err
		}
		own := contentOf(f)
		if own.relate == nil { // its measurements are compared as those beside combinations are
			own = content{}
		}
		if len(all) == 0 {
			kind = own
		}
		switch {
		case own.name == kind.name:
		case kind.name != "":
			return nil, fault.Usage("compare results of one command", "%s holds %s, %s does not", paths[0], kind.name, path)
		default:
			return nil, fault.Usage("compare results of one command", "%s holds %s, %s does not", path, own.name, paths[0])
		}
		all = append(all, related{path, store.Label(paths, path), s.Word(path), f})
	}
	if kind.relate == nil {
		return nil, nil
	}
	return kind.relate(all, pairs, o)
}

// Alone suggests comparisons for a single result: pairs within it, if it has several.
func Alone(path string) error {
	f, err := store.Load(path)
	if err != nil {
		return err
	}
	_, pairs := compare.Between(":", compare.MethodResults(f))
	if len(pairs) < 2 {
		return fault.Usage("name another result, too; one alone is shown by sshpace report "+shell.Word(path), "%s alone cannot be compared", path)
	}
	such := []string{"sshpace", "compare", path, "--pair", pairs[0], "--pair", pairs[1]}
	return fault.Usage("name two of them, such as: "+shell.Line(such...), "%s holds pairs of programs: %s", path, strings.Join(pairs, ", "))
}

func relateLogins(all []related, pairs []string, out *Output) (Report, error) {
	if len(pairs) > 0 {
		return nil, fault.Usage("leave --pair out", "--pair is for results of sshpace programs, and %s holds logins", all[0].label)
	}
	var reports []*findings.Login
	for _, f := range all {
		reports = append(reports, findings.LoginOf(f.File))
	}
	c := findings.CompareLogins(labels(all), reports)
	return &result{holds: logins, output: *out, json: c.JSON, document: c.Document}, nil
}

func relateMethods(all []related, pairs []string, out *Output) (Report, error) {
	var results [][]compare.MethodResult
	for i, f := range all {
		own := compare.MethodResults(f.File)
		if len(pairs) > 0 {
			var names []string
			switch own, names = compare.Between(pairs[i], own); len(names) {
			case 0:
				return nil, fault.Usage("sshpace report "+shell.Word(f.path)+" lists its pairs", "%s has no figures of a pair %s", f.label, pairs[i])
			case 1:
				all[i].label += ", " + names[0]
			default:
				return nil, fault.Usage("name the versions: --pair "+shell.Word(names[0])+" or "+shell.Word(names[1]), "%s has several pairs %s", f.label, pairs[i])
			}
		}
		results = append(results, own)
	}
	c := compare.Methods(labels(all), results)
	if len(c.Changes) == 0 {
		return nil, nothingCommon(labels(all), results)
	}
	return out.methods(c, all), nil
}
