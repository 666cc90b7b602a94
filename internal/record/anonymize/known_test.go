package anonymize

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// places of constants that have no type of their own, by how their names begin, and in which file
// they stand.
var untyped = map[string]string{"Limit": "Limit.What", "measurement.go": "Measurement.Name"}

// Every word that the record format has for something is kept: no list here is older than the
// format.
func TestWordsOfTheFormatAreKept(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]int{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			for _, s := range block.Specs {
				spec := s.(*ast.ValueSpec)
				value, ok := spec.Values[0].(*ast.BasicLit)
				if !ok || value.Kind != token.STRING {
					continue
				}
				place := untyped[filepath.Base(file)]
				if of, typed := spec.Type.(*ast.Ident); typed {
					place = of.Name
				} else if strings.HasPrefix(spec.Names[0].Name, "Limit") {
					place = untyped["Limit"]
				}
				word, _ := strconv.Unquote(value.Value)
				if rule := rules()[place]; rule != nil {
					tried[place]++
					if got := rule(&veil{names: map[string]string{}, count: map[string]int{}}, word); word != "" && got != word {
						t.Errorf("%s: %s %q becomes %q", file, place, word, got)
					}
				}
			}
		}
	}
	for place, least := range map[string]int{"Mode": 10, "Phase": 15, "Limit.What": 13, "Outcome": 9, "Role": 4, "Workload": 3, "Direction": 2, "Engine": 2, "ServerKind": 3, "RunKind": 3, "Unit": 6, "Measurement.Name": 7} {
		if tried[place] < least {
			t.Errorf("%s: %d words were tried", place, tried[place])
		}
	}
}
