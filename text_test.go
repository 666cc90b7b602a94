package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// layouts are the ways to lay text out that base/text has for all. A width in a verb
// of Printf is a column of somebody's own.
var (
	starred = regexp.MustCompile(`%(-?\*[sdv]|-?[0-9]+s)`)
	layouts = regexp.MustCompile(`(?i)^(wrap(ped|words|text|lines)?|fold(ed|lines|text)|hanging|clip[a-z]+|pad(left|right)?)$`)
)

// TestOneTableOneWrapper: no other package makes columns by itself or breaks lines. The
// formats of others (compat) are theirs, and pictures and workbooks have no columns of a
// terminal.
func TestOneTableOneWrapper(t *testing.T) {
	exempt := regexp.MustCompile(`^(base/text|dropin|show/picture)/`)
	parsed(t, func(s source) {
		if exempt.MatchString(s.pkg + "/") {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				if n.Path.Value == `"text/tabwriter"` {
					t.Errorf("%s: tables are made by base/text", s.at(n))
				}
			case *ast.FuncDecl:
				if layouts.MatchString(n.Name.Name) && returnsText(n.Type) {
					t.Errorf("%s: %s: base/text has it", s.at(n), n.Name.Name)
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && starred.MatchString(text) {
					t.Errorf("%s: %s: a column of its own: base/text has tables", s.at(n), n.Value)
				}
			}
			return true
		})
	})
}

// returnsText reports whether a function gives back a string, or several.
func returnsText(f *ast.FuncType) bool {
	if f.Results == nil {
		return false
	}
	for _, r := range f.Results.List {
		at := r.Type
		if list, ok := at.(*ast.ArrayType); ok {
			at = list.Elt
		}
		if name, ok := at.(*ast.Ident); ok && name.Name == "string" {
			return true
		}
	}
	return false
}
