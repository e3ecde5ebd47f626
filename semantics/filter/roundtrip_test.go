package filter_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// author writes random filters after the grammar of SQL-1.
type author struct {
	t    *rapid.T
	left int // how deep it may still go
}

func (a *author) pick(choices ...string) string {
	return rapid.SampledFrom(choices).Draw(a.t, "choice")
}

// maybe is false where the author must come to an end.
func (a *author) maybe() bool { return a.left > 0 && rapid.Bool().Draw(a.t, "more") }

func (a *author) deeper(write func() string) string {
	a.left--
	defer func() { a.left++ }()
	return write()
}

// space goes between tokens; it is never empty, so that words stay apart.
func (a *author) space() string { return a.pick(" ", "  ", "\n", "\t ") }

func (a *author) list(item func() string, between ...string) string {
	text := item()
	for range rapid.IntRange(0, 2).Draw(a.t, "more") {
		text += a.space() + a.pick(between...) + a.space() + item()
	}
	return text
}

func (a *author) predicate() string { return a.list(a.and, "OR", "or") }

func (a *author) and() string { return a.list(a.not, "AND", "aNd") }

func (a *author) not() string {
	prefix := a.pick("", "", "NOT ", "not\n")
	if a.maybe() {
		return prefix + a.deeper(func() string { return "(" + a.predicate() + ")" })
	}
	return prefix + a.test()
}

func (a *author) test() string {
	negated := a.pick("", "NOT ")
	switch rapid.IntRange(0, 5).Draw(a.t, "test") {
	case 0:
		return a.expr() + a.pick("=", " <>", "!= ", ">", " >= ", "<", "<=") + a.expr()
	case 1:
		return a.property() + " IS " + negated + "NULL"
	case 2:
		return a.expr() + " " + negated + "IN (" + a.list(a.expr, ",") + ")"
	case 3:
		return a.expr() + " " + negated + "LIKE " + a.expr() + a.pick("", " ESCAPE '!'", " escape '''' ", " ESCAPE a")
	case 4:
		return "EXISTS(" + a.property() + ")"
	default:
		return a.expr()
	}
}

func (a *author) expr() string { return a.list(a.term, "+", "-") }

func (a *author) term() string { return a.list(a.factor, "*", "/", "%") }

func (a *author) factor() string {
	sign := a.pick("", "", "", "-", "+ ")
	if a.maybe() {
		return sign + a.deeper(func() string {
			return a.pick("(", "p(", "PROPERTY ( a + ") + a.expr() + ")"
		})
	}
	switch rapid.IntRange(0, 5).Draw(a.t, "factor") {
	case 0:
		return sign + a.constant()
	case 1:
		return sign + a.pick("newid()", "NEWID( )", "p('a')", "p('sys.To')", "property('user.a b')")
	case 2:
		return sign + a.pick("@x", "@ÄÖ", "@P_1")
	default:
		return sign + a.property()
	}
}

func (a *author) constant() string {
	switch rapid.IntRange(0, 3).Draw(a.t, "constant") {
	case 0:
		return strconv.FormatInt(rapid.Int64Range(0, math.MaxInt64).Draw(a.t, "integer"), 10)
	case 1:
		f := strconv.FormatFloat(math.Abs(rapid.Float64().Draw(a.t, "double")), a.pick("E", "f", "e")[0], -1, 64)
		if !strings.ContainsAny(f, ".eE") {
			f += "."
		}
		return f
	case 2:
		return "'" + strings.ReplaceAll(rapid.String().Draw(a.t, "string"), "'", "''") + "'"
	default:
		return a.pick("TRUE", "false", "NULL")
	}
}

func (a *author) property() string {
	name := rapid.StringN(1, 5, -1).Draw(a.t, "name")
	switch rapid.IntRange(0, 4).Draw(a.t, "property") {
	case 0:
		return a.pick("", "user.", "USER .") + "[" + strings.ReplaceAll(name, "]", "]]") + "]"
	case 1:
		return a.pick("", "user.") + `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	case 2:
		return a.pick("sys.", "SYS . ") + a.pick("Label", "subject", "[To]", "TimeToLive", "sequenceNumber")
	default:
		return a.pick("", "user.") + a.pick("a", "Bc_1", "Größe", "[in]", "e5")
	}
}

var authorParameters = values{"x": semantics.Int64(5), "äö": semantics.String("a%"), "p_1": semantics.Bool(true)}

// What is printed must parse to the same structure, and printing that must give the same text. A random text may end a
// pattern in its escape character, and a random name of a property may be empty, so errors are let pass.
func TestSQL_1_PrintedFiltersParseToThemselves(t *testing.T) {
	t.Parallel()
	parsed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a := author{t: t, left: rapid.IntRange(0, 4).Draw(t, "depth")}
		text := a.predicate()
		f, err := filter.ParseLong(text, authorParameters)
		if err != nil {
			refused++
			for _, expected := range []string{"escape character", "as a string", "is not a system property", "at most 1024"} {
				if strings.Contains(err.Error(), expected) {
					return
				}
			}
			t.Fatalf("%s is refused: %v", text, err)
		}
		parsed++
		again, err := filter.ParseLong(f.String(), authorParameters)
		if err != nil {
			t.Fatalf("%s is printed as %s, which is refused: %v", text, f, err)
		}
		if !filter.SameTree(f, again) || again.String() != f.String() {
			t.Fatalf("%s is printed as %s, which is read as %s", text, f, again)
		}
	})
	if parsed < refused {
		t.Errorf("%d random filters were refused, only %d taken", refused, parsed)
	}
}

func TestSQL_1_SameTreeSeesDifferences(t *testing.T) {
	t.Parallel()
	texts := []string{
		`a = 1`, `a = 2`, `a = 1.0`, `A = 1`, `b = 1`, `a <> 1`, `a = '1'`, `sys.To = 1`, `a IS NULL`, `a IS NOT NULL`, `EXISTS(a)`, `a`, `-a`, `+a`, `a IN (1)`, `a NOT IN (1)`, `a IN (1, 1)`,
		`a LIKE '1'`, `a NOT LIKE '1'`, `a LIKE '1' ESCAPE '!'`, `a LIKE '1%'`, `a + b`, `a - b`, `b + a`, `a + b + c`, `a + (b + c)`, `a AND b`, `a OR b`, `(a AND b) AND c`, `a AND b AND c`, `NOT a`, `NOT (NOT a)`,
		`p('a')`, `p(a)`, `newid()`, `@x`, `@p_1`, `TRUE`, `FALSE`, `NULL`, `-(1)`, `-1`, `1`,
	}
	for i, a := range texts {
		for j, b := range texts {
			if same := filter.SameTree(parse(t, a, authorParameters), parse(t, b, authorParameters)); same != (i == j) {
				t.Errorf("%s and %s are the same: %v", a, b, same)
			}
		}
	}
}
