package account

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"
)

// An exported method locks the mutex first. An unexported one does not touch it. No method calls an exported one, which
// would lock the mutex a second time.
func TestExportedMethodsLock(t *testing.T) {
	t.Parallel()
	all := methods(t)
	exported := map[string]bool{}
	for _, m := range all {
		exported[m.Name.Name] = m.Name.IsExported()
	}
	for _, m := range all {
		name, first := m.Name.Name, m.Body.List
		if m.Name.IsExported() {
			if len(first) < 2 || !calls(first[0], "mu.Lock") || !calls(first[1], "mu.Unlock") {
				t.Errorf("%s does not begin with mu.Lock and defer mu.Unlock", name)
			} else {
				first = first[2:]
			}
		}
		for _, statement := range first {
			ast.Inspect(statement, func(node ast.Node) bool {
				selector, ok := node.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if selector.Sel.Name == "mu" {
					t.Errorf("%s uses the mutex in its midst", name)
				}
				of := types.ExprString(selector.X)
				if isOurs := of == "a" || of == "p" || strings.HasSuffix(of, ".account"); isOurs && exported[selector.Sel.Name] &&
					!strings.HasSuffix(types.ExprString(selector), ".IdleOut") { // a timer calls that
					t.Errorf("%s calls %s, which locks the mutex a second time", name, selector.Sel.Name)
				}
				return true
			})
		}
	}
	if len(all) < 40 {
		t.Errorf("there are %d methods; has the package moved?", len(all))
	}
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
