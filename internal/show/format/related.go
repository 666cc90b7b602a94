package format

import (
	"errors"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/findings"
)

// content is what the files of a comparison hold, if not combinations of algorithms.
type content struct {
	name   string
	holds  func(*record.File) bool
	relate func(labels []string, files []*record.File, pairs []string, out *Output) (Report, error)
}

var contents = []content{
	{"logins", func(f *record.File) bool { return len(f.LoginKinds) > 0 }, relateLogins},
	{"transfer methods", func(f *record.File) bool { return len(f.Methods) > 0 }, relateMethods},
}

// Related is the comparison of files with logins or with transfer methods; nil where
// the first holds neither. Pairs are those of implementations to take of each file, if
// not all.
func (o *Output) Related(paths, pairs []string) (Report, error) {
	var files []*record.File
	var labels []string
	var kind *content
	for _, path := range paths {
		f, err := store.Load(path)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			i := slices.IndexFunc(contents, func(c content) bool { return c.holds(f) })
			if i < 0 {
				return nil, nil
			}
			kind = &contents[i]
		}
		if !kind.holds(f) {
			return nil, fault.Usage("compare results of one command", "%s holds %s, %s does not", paths[0], kind.name, path)
		}
		files, labels = append(files, f), append(labels, store.Label(paths, path))
	}
	return kind.relate(labels, files, pairs, o)
}

func relateLogins(labels []string, files []*record.File, pairs []string, out *Output) (Report, error) {
	if len(pairs) > 0 {
		return nil, fault.Usage("leave --pair out", "--pair is for results of sshpace programs, and %s holds logins", labels[0])
	}
	var reports []*findings.Login
	for _, f := range files {
		reports = append(reports, findings.LoginOf(f))
	}
	return &LoginChanges{findings.CompareLogins(labels, reports), *out}, nil
}

func relateMethods(labels []string, files []*record.File, pairs []string, out *Output) (Report, error) {
	var results [][]compare.MethodResult
	for i, f := range files {
		own := compare.MethodResults(f)
		if len(pairs) > 0 {
			var names []string
			switch own, names = compare.Between(pairs[i], own); len(names) {
			case 0:
				return nil, fault.Usage("sshpace report "+shell.Word(labels[i])+" lists its pairs", "%s has no figures of a pair %s", labels[i], pairs[i])
			case 1:
				labels[i] += ", " + names[0]
			default:
				return nil, fault.Usage("name the versions: --pair "+shell.Word(names[0])+" or "+shell.Word(names[1]), "%s has several pairs %s", labels[i], pairs[i])
			}
		}
		results = append(results, own)
	}
	c := compare.Methods(labels, results)
	if len(c.Changes) == 0 {
		return nil, fault.WithHint(errors.New("the files have no method with figures in common"),
			"compare results with the same --only, --cipher and --files; one run compares ciphers: transfer --only scp --cipher aes128-gcm,chacha20-poly1305; --pair names pairs of programs")
	}
	return &MethodChanges{MethodComparison: c, Output: out}, nil
}
