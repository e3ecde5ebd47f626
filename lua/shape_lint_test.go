package lua

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// shape is a kind of table that the scripts pass around, as a file of shapes declares it.
type shape struct {
	name      string
	parents   []string        // whose fields it has besides
	fields    map[string]bool // whether a script uses it
	variables []string        // what scripts call a table of this shape
}

var (
	classLine    = regexp.MustCompile(`^---@class (\w+)(?: : ([\w, ]+))?$`)
	fieldLine    = regexp.MustCompile(`^---@field (\w+) (\S+) \S`)
	variableLine = regexp.MustCompile(`^-- Variables: ([\w ]+)$`)
)

// readShapes reads what the files of shapes declare.
func readShapes(t *testing.T) map[string]*shape {
	t.Helper()
	files, err := filepath.Glob("shapes/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shapes: %v", err)
	}
	shapes := map[string]*shape{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s *shape
		for number, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			switch class, field, variables := classLine.FindStringSubmatch(line), fieldLine.FindStringSubmatch(line), variableLine.FindStringSubmatch(line); {
			case class != nil:
				s = &shape{name: class[1], fields: map[string]bool{}}
				if class[2] != "" {
					s.parents = strings.Split(class[2], ", ")
				}
				shapes[s.name] = s
			case field != nil && s != nil:
				if _, twice := s.fields[field[1]]; twice {
					t.Errorf("%s:%d: %s is declared twice", file, number+1, field[1])
				}
				s.fields[field[1]] = false
			case variables != nil && s != nil:
				s.variables = strings.Fields(variables[1])
			case strings.HasPrefix(line, "---"):
				t.Errorf("%s:%d: %q is neither a class nor a field with its type and what it is", file, number+1, line)
			}
		}
	}
	return shapes
}

// use marks a field of a shape or of its parents as used, and reports whether there is one.
func use(shapes map[string]*shape, name, field string) bool {
	s := shapes[name]
	if s == nil {
		return false
	}
	if _, ok := s.fields[field]; ok {
		s.fields[field] = true
		return true
	}
	return slices.ContainsFunc(s.parents, func(parent string) bool { return use(shapes, parent, field) })
}

// wordOrLetter are keys of tables that are no shapes: status words, and letters that stand for something.
var wordOrLetter = regexp.MustCompile(`^([A-Z_]+|[a-z])$`)

// libraries are the tables of Lua and Redis.
var libraries = []string{"string", "table", "math", "redis"}

// Every field that a script reads or writes is declared by the shape of its table, so that a wrong name is an error and
// not nil.
func TestFieldsAreDeclared(t *testing.T) {
	t.Parallel()
	shapes := readShapes(t)
	var undeclared []string
	report := func(format string, args ...any) { undeclared = append(undeclared, fmt.Sprintf(format, args...)) }
	for name, source := range sources(t) {
		chunk, err := parse.Parse(strings.NewReader(source), name)
		if err != nil {
			t.Fatal(err)
		}
		walk(chunk, func(node any) {
			switch e := node.(type) {
			case *ast.AttrGetExpr:
				field, ok := e.Key.(*ast.StringExpr)
				of := variable(e.Object)
				if !ok || of == "" || slices.Contains(libraries, of) {
					return
				}
				known, found := false, false
				for _, s := range shapes {
					if slices.Contains(s.variables, of) {
						known = true
						found = use(shapes, s.name, field.Value) || found
					}
				}
				if !known {
					report("no shape says what the variable %s is (field %s, %s:%d)", of, field.Value, name, e.Line())
				} else if !found {
					report("no shape of the variable %s has a field %s (%s:%d)", of, field.Value, name, e.Line())
				}
			case *ast.TableExpr:
				for _, f := range e.Fields {
					key, ok := f.Key.(*ast.StringExpr)
					if !ok || wordOrLetter.MatchString(key.Value) {
						continue
					}
					found := false
					for _, s := range shapes {
						if _, has := s.fields[key.Value]; has {
							found, s.fields[key.Value] = true, true
						}
					}
					if !found {
						report("no shape has a field %s (%s:%d)", key.Value, name, e.Line())
					}
				}
			}
		})
	}
	slices.Sort(undeclared)
	for _, text := range undeclared {
		t.Error(text)
	}
	for _, s := range shapes {
		for _, parent := range s.parents {
			if shapes[parent] == nil {
				t.Errorf("%s is a %s, which no file declares", s.name, parent)
			}
		}
		for field, used := range s.fields {
			if !used {
				t.Errorf("no script uses %s.%s", s.name, field)
			}
		}
	}
}

// variable returns the last name of a, a.b or a.b.c, "" of anything else.
func variable(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.AttrGetExpr:
		if key, ok := e.Key.(*ast.StringExpr); ok {
			return key.Value
		}
	}
	return ""
}
