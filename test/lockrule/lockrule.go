// Package lockrule checks a package whose types own a mutex: an exported method locks it, and an unexported one runs
// while it is locked.
package lockrule

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"
)

// Check checks the methods in the folder of the test, of which there must be at least so many. owners are the names of
// receivers and fields whose exported methods lock the mutex "mu". Such a method must lock it first. No other method
// may touch the mutex, and none may call such a method, which would lock the mutex a second time.
func Check(t *testing.T, atLeast int, owners ...string) {
	t.Helper()
	all := methods(t)
	locking := map[string]bool{}
	for _, m := range all {
		if m.Name.IsExported() && slices.Contains(owners, receiver(m)) {
			locking[m.Name.Name] = true
		}
	}
	for _, m := range all {
		name, body := m.Name.Name, m.Body.List
		if locking[name] && slices.Contains(owners, receiver(m)) {
			if len(body) < 2 || !calls(body[0], "mu.Lock") || !calls(body[1], "mu.Unlock") {
				t.Errorf("%s does not begin with mu.Lock and defer mu.Unlock", name)
			} else {
				body = body[2:]
			}
		}
		ast.Inspect(&ast.BlockStmt{List: body}, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.SelectorExpr:
				if node.Sel.Name == "mu" {
					t.Errorf("%s uses the mutex in its midst", name)
				}
			case *ast.CallExpr:
				called, ok := node.Fun.(*ast.SelectorExpr)
				if ok && locking[called.Sel.Name] && isOwner(types.ExprString(called.X), owners) {
					t.Errorf("%s calls %s, which locks the mutex a second time", name, called.Sel.Name)
				}
			}
			return true
		})
	}
	if len(all) < atLeast {
		t.Errorf("there are %d methods; has the package moved?", len(all))
	}
}

// isOwner reports whether an expression is one of the owners, or a field of such a name.
func isOwner(expression string, owners []string) bool {
	return slices.Contains(owners, expression[strings.LastIndexByte(expression, '.')+1:])
}

// receiver returns the name of the receiver of a method.
func receiver(m *ast.FuncDecl) string {
	if names := m.Recv.List[0].Names; len(names) > 0 {
		return names[0].Name
	}
	return ""
}

// methods returns all methods of the package.
func methods(t *testing.T) (all []*ast.FuncDecl) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil {
				all = append(all, m)
			}
		}
	}
	return all
}

// calls reports whether a statement calls a method of the mutex, at once or at the end.
func calls(s ast.Stmt, method string) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		return strings.HasSuffix(types.ExprString(s.X), "."+method+"()")
	case *ast.DeferStmt:
		return strings.HasSuffix(types.ExprString(s.Call), "."+method+"()")
	default:
		return false
	}
}
