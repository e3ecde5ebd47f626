package lua

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// named calls a function for each place of a chunk that names the item of a list, such as KEYS[3]: a local variable, a
// variable or a field.
func named(chunk []ast.Stmt, list string, with func(name string, item, line int)) {
	pair := func(name string, value ast.Expr) {
		item, ok := value.(*ast.AttrGetExpr)
		if !ok {
			return
		}
		of, isIdent := item.Object.(*ast.IdentExpr)
		n, isNumber := item.Key.(*ast.NumberExpr)
		if !isIdent || !isNumber || of.Value != list {
			return
		}
		if at, err := strconv.Atoi(n.Value); err == nil {
			with(name, at, item.Line())
		}
	}
	walk(chunk, func(node any) {
		switch s := node.(type) {
		case *ast.LocalAssignStmt:
			for i, name := range s.Names {
				if i < len(s.Exprs) {
					pair(name, s.Exprs[i])
				}
			}
		case *ast.AssignStmt:
			for i, to := range s.Lhs {
				if field, ok := to.(*ast.AttrGetExpr); ok && i < len(s.Rhs) {
					if key, ok := field.Key.(*ast.StringExpr); ok {
						pair(key.Value, s.Rhs[i])
					}
				}
			}
		case *ast.Field:
			if key, ok := s.Key.(*ast.StringExpr); ok {
				pair(key.Value, s.Value)
			}
		}
	})
}

// A script calls a key by the name under which its header declares it, perhaps without the prefix.
func TestKeysAreNamedAsDeclared(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, source := range sources(t) {
		script, ok := scripts[name]
		if !ok {
			continue
		}
		chunk, err := parse.Parse(strings.NewReader(source), name)
		if err != nil {
			t.Fatal(err)
		}
		named(chunk, "KEYS", func(local string, at, line int) {
			found++
			if at > len(script.Keys) {
				return // one of those that repeat
			}
			if declared := script.Keys[at-1]; declared.Name != local && !strings.HasSuffix(declared.Name, "_"+local) && !declared.Repeats {
				t.Errorf("%s:%d: KEYS[%d] is %s, not %s", name, line, at, declared.Name, local)
			}
		})
	}
	if found < 100 {
		t.Errorf("only %d keys have names", found)
	}
}

// A call that passes on the keys from one to the last passes all that the header declares as repeating, and no other.
func TestRestOfTheKeysIsWhatRepeats(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, source := range sources(t) {
		for _, m := range regexp.MustCompile(`\(KEYS, (\d+), #KEYS\)`).FindAllStringSubmatch(source, -1) {
			found++
			if at, _ := strconv.Atoi(m[1]); at != len(scripts[name].Keys) || !scripts[name].Keys[at-1].Repeats {
				t.Errorf("%s: %s does not begin where the header says that keys repeat", name, m[0])
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d calls get the rest of the keys", found)
	}
}

// Functions that take a group of keys name them as the group does.
func TestGroupsAreNamedAsDeclared(t *testing.T) {
	t.Parallel()
	all := sources(t)
	cases := []struct {
		file, group string
		first       int // the place in the group of the first key that the function gets
	}{
		{"lib/entity/open_queue", "queue", 1},
		{"lib/session/open_sessions", "queue", 28},
		{"lib/session/open_target_sessions", "sessions", 1},
	}
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	groups := scripts["publish"].Groups
	for _, c := range cases {
		chunk, err := parse.Parse(strings.NewReader(all[c.file]), c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		named(chunk, "keys", func(local string, at, line int) {
			found++
			declared := groups[c.group][c.first+at-2]
			if declared != local && declared != "dead_"+local {
				t.Errorf("%s:%d: keys[%d] is %s, not %s", c.file, line, at, declared, local)
			}
		})
		if found < 5 {
			t.Errorf("%s names only %d keys", c.file, found)
		}
	}
	counts := fmt.Sprintf("{ p = %d, s = %d, w = %d }", len(groups["plain"])+len(groups["shared"]), len(groups["plain"])+len(groups["sessions"]), len(groups["queue"]))
	if !strings.Contains(all["lib/topic/open_copies"], counts) {
		t.Errorf("lib/topic/open_copies must count %s", counts)
	}
}
