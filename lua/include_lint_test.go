package lua

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

var localFunction = regexp.MustCompile(`(?m)^\s*local function (\w+)\(`)

// A file includes what it calls and nothing else: each function that a script includes is made again by every call of
// it.
func TestIncludesAreThoseUsed(t *testing.T) {
	t.Parallel()
	all := sources(t)
	functions := map[string]string{} // file of each function that others can call
	for file := range all {
		if strings.HasPrefix(file, "lib/") {
			functions[path.Base(file)] = strings.TrimPrefix(file, "lib/")
		}
	}
	for file, source := range all {
		chunk, err := parse.Parse(strings.NewReader(source), file)
		if err != nil {
			t.Fatal(err)
		}
		called := map[string]bool{}
		walk(chunk, func(node any) {
			if e, ok := node.(*ast.IdentExpr); ok {
				called[e.Value] = true
			}
		})
		var own []string
		for _, m := range localFunction.FindAllStringSubmatch(source, -1) {
			own = append(own, m[1])
		}
		included := includesOf(source)
		for _, include := range included {
			used := false
			for _, m := range localFunction.FindAllStringSubmatch(all["lib/"+include], -1) {
				used = used || called[m[1]]
			}
			if !used {
				t.Errorf("%s includes %s and does not call it", file, include)
			}
		}
		for name := range called {
			if home, ok := functions[name]; ok && !slices.Contains(own, name) && !slices.Contains(included, home) && !isVariable(source, name) {
				t.Errorf("%s calls %s and does not include %s", file, name, home)
			}
		}
	}
}

// isVariable reports whether a file has a variable of that name, which is then not the function.
func isVariable(source, name string) bool { return !strings.Contains(source, name+"(") }
