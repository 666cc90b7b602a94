package format

import (
	"errors"
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
func nothingCommon(files []related, results [][]compare.MethodResult) error {
	const hint = "compare results with the same --only, --cipher, --files and path; one run compares ciphers: transfer --only scp --cipher aes128-gcm,chacha20-poly1305; --pair names pairs of programs"
	a, b := compare.Nearest(results[0], results[1])
	if a == nil {
		return fault.Usage(hint, "%s or %s has no figures of any method", files[0].label, files[1].label)
	}
	return fault.Usage(hint, "no method is in both: %s has %s, and %s has %s", files[0].label, document.MethodAndCipher(a.Method), files[1].label, document.MethodAndCipher(b.Method))
}

// related is a file of a comparison, with its name in commands.
type related struct {
	path, label, word string
	*record.File
}

// Related returns the comparison of files: of logins or transfer methods, if they hold those,
// otherwise of the cells that allowed accepts, all or only the changed ones. pairs selects pairs of
// implementations of each file. Commands use the names by which s finds the files.
func (o *Output) Related(s store.Store, paths, pairs []string, allowed func(*rank.Ranking) *rank.Ranking, options compare.Options, all bool) (*Compared, error) {
	files, kind, err := load(s, paths)
	if err != nil {
		return nil, err
	}
	var c *compare.Comparison
	switch {
	case kind == methods:
		c, err = relateMethods(files, pairs)
	case kind == surveys:
		err = fault.Usage("sshpace report "+shell.Word(paths[1])+" --against "+shell.Word(paths[0]), "surveys are compared by their report")
	case len(pairs) > 0:
		err = fault.Usage("leave it out", "--pair is for results of programs")
	case kind == logins:
		c, err = relateLogins(files)
	default:
		c, err = relateRankings(files, allowed, options)
	}
	if err != nil {
		return nil, err
	}
	return o.compared(c, files, all), nil
}

// load reads the files, which must be of one kind; "" for cells.
func load(s store.Store, paths []string) (all []related, kind string, err error) {
	for _, path := range paths {
		f, err := store.Load(path)
		if err != nil {
			return nil, "", err
		}
		own := contentOf(f).name
		if own == limits { // its measurements are compared as those beside combinations are
			own = ""
		}
		if len(all) == 0 {
			kind = own
		}
		switch {
		case own == kind:
		case kind != "":
			return nil, "", fault.Usage("compare results of one command", "%s holds %s, %s does not", paths[0], kind, path)
		default:
			return nil, "", fault.Usage("compare results of one command", "%s holds %s, %s does not", path, own, paths[0])
		}
		all = append(all, related{path, store.Label(paths, path), s.Word(path), f})
	}
	return all, kind, nil
}

// inputs returns the files for a comparison.
func inputs(all []related) (out []compare.Input) {
	for _, f := range all {
		out = append(out, compare.Input{Label: f.label, Campaign: f.Campaign, Environment: f.Environment})
	}
	return out
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

// relateRankings compares the cells and logins that allowed accepts.
func relateRankings(all []related, allowed func(*rank.Ranking) *rank.Ranking, o compare.Options) (*compare.Comparison, error) {
	ranked := inputs(all)
	for i, f := range all {
		r, err := compare.RankRecords(f.path, f.File, o.By)
		if err != nil {
			return nil, err
		}
		ranked[i].Ranking = allowed(r)
	}
	c, err := compare.Of(ranked, o)
	if errors.Is(err, compare.ErrNoReference) {
		return nil, fault.Usage("all files have cells of: "+strings.Join(compare.CommonCiphers(ranked), ", "), "%s", err)
	}
	return c, err
}

func relateLogins(all []related) (*compare.Comparison, error) {
	var kinds [][]compare.LoginKind
	for _, f := range all {
		kinds = append(kinds, findings.LoginOf(f.File).Kinds())
	}
	c := compare.OfLogins(inputs(all), kinds)
	if len(c.Lines) == 0 {
		return nil, fault.Usage("measure both with the same --only", "the files have no kind of login in common")
	}
	return c, nil
}

func relateMethods(all []related, pairs []string) (*compare.Comparison, error) {
	var results [][]compare.MethodResult
	compared := inputs(all)
	for i, f := range all {
		own := compare.MethodResults(f.File)
		if len(pairs) > 0 {
			var names []string
			switch own, names = compare.Between(pairs[i], own); len(names) {
			case 0:
				return nil, fault.Usage("sshpace report "+shell.Word(f.path)+" lists its pairs", "%s has no figures of a pair %s", f.label, pairs[i])
			case 1:
				all[i].label += ", " + names[0]
				compared[i].Label = all[i].label
				compared[i].Environment.Client, compared[i].Environment.Server, _ = strings.Cut(names[0], ":")
			default:
				return nil, fault.Usage("name the versions: --pair "+shell.Word(names[0])+" or "+shell.Word(names[1]), "%s has several pairs %s", f.label, pairs[i])
			}
		}
		results = append(results, own)
	}
	c := compare.OfMethods(compared, results, document.MethodLabel)
	if len(c.Lines) == 0 {
		return nil, nothingCommon(all, results)
	}
	return c, nil
}
