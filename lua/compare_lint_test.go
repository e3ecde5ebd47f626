package lua

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Lua compares two texts by the locale that Redis runs in, and a number with a text not at all. So every comparison by
// order must have a side that is evidently a number: a literal, a length, arithmetic, tonumber, or one of these names,
// which stand for numbers wherever they are used.
var numbers = strings.Fields(`
	actual active alarm at bound byte bytes chunked copies_bytes count cursor ends ends_ms expected expires first free_keys from held largest last left limit max_batch_bytes max_bytes
	max_delivery_count max_message_bytes max_message_count most most_bytes now pause sequence total ttl_ms updated weight`)

// evident reports whether an expression is a number by its form or by its name.
func evident(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryLenOpExpr, *ast.UnaryMinusOpExpr:
		return true
	case *ast.FuncCallExpr:
		switch f := e.Func.(type) {
		case *ast.IdentExpr:
			return f.Value == "tonumber"
		case *ast.AttrGetExpr:
			of, ok := f.Object.(*ast.IdentExpr)
			return ok && of.Value == "math"
		}
	case *ast.IdentExpr:
		return slices.Contains(numbers, e.Value)
	case *ast.AttrGetExpr:
		key, ok := e.Key.(*ast.StringExpr)
		return ok && slices.Contains(numbers, key.Value)
	}
	return false
}

func TestTextIsComparedByBytes(t *testing.T) {
	t.Parallel()
	for name, source := range sources(t) {
		chunk, err := parse.Parse(strings.NewReader(source), name)
		if err != nil {
			t.Fatal(err)
		}
		walk(chunk, func(node any) {
			switch e := node.(type) {
			case *ast.RelationalOpExpr:
				if strings.ContainsAny(e.Operator, "<>") && !evident(e.Lhs) && !evident(e.Rhs) {
					t.Errorf("%s:%d: nothing shows that %s compares numbers: compare texts with lib/base/is_before, or name the number in this test", name, e.Line(), e.Operator)
				}
			case *ast.FuncCallExpr:
				f, ok := e.Func.(*ast.AttrGetExpr)
				if !ok {
					return
				}
				if key, ok := f.Key.(*ast.StringExpr); ok && key.Value == "sort" && len(e.Args) < 2 {
					t.Errorf("%s:%d: table.sort without a function compares texts by the locale", name, e.Line())
				}
			}
		})
	}
}
