package main

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// Whether a ratio is better, equal or not told yet is decided in base/stats alone: elsewhere no end
// of an interval is held against 1, the margin, or an end of another one.
func TestOneVerdict(t *testing.T) {
	judges := map[token.Token]bool{token.LSS: true, token.LEQ: true, token.GTR: true, token.GEQ: true}
	parsed(t, func(s source) {
		if s.pkg == "base/stats" {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && judges[b.Op] {
				x, y := endOf(b.X), endOf(b.Y)
				if x != "" && (y != "" && x != y || unity(b.Y)) || y != "" && unity(b.X) {
					t.Errorf("%s: an interval is judged by itself: use stats.Interval.Verdict", s.at(b))
				}
			}
			return true
		})
	})
}

// What arithmetic makes of an interval stands in base/stats alone (Interval.Mapped, Plus, Less):
// elsewhere none is put together from the ends of another.
func TestOneArithmeticOfIntervals(t *testing.T) {
	parsed(t, func(s source) {
		if s.pkg == "base/stats" {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if end, ok := n.(*ast.KeyValueExpr); ok && endKey(end) && computed(end.Value) {
				t.Errorf("%s: an interval is computed by hand: use the methods of stats.Interval", s.at(n))
			}
			return true
		})
	})
}

// endKey reports whether a value is for an end of an interval.
func endKey(e *ast.KeyValueExpr) bool {
	key, ok := e.Key.(*ast.Ident)
	return ok && (key.Name == "Lo" || key.Name == "Hi")
}

// computed reports whether an expression is arithmetic, or a function, of an end.
func computed(e ast.Expr) (yes bool) {
	if endOf(e) != "" {
		return false
	}
	ast.Inspect(e, func(n ast.Node) bool {
		own, ok := n.(ast.Expr)
		yes = yes || ok && endOf(own) != ""
		return true
	})
	return yes
}

// endOf says whose Lo or Hi an expression is; "" for none.
func endOf(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Lo" && s.Sel.Name != "Hi" {
		return ""
	}
	var name strings.Builder
	ast.Inspect(s.X, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			name.WriteString(id.Name + ".")
		}
		return true
	})
	return name.String()
}

// unity reports whether an expression is 1, or has to do with the margin.
func unity(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			yes = yes || n.Value == "1"
		case *ast.Ident:
			yes = yes || n.Name == "Margin"
		}
		return true
	})
	return yes
}
