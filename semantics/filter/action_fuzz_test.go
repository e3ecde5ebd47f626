package filter_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

var actionSeeds = []string{
	``, `;`, `SET a = 1`, `SET a=1,REMOVE b;`, `REMOVE sys.Label; SET sys.To = 'x' + @x`, `SET sys.TimeToLive = span`, `SET n = f`, `SET u = t; SET f = a`, `SET span = t`,
	`SET [a b] = -(n + 1) * 2.5E-3`, `SET sys.Size = 1`, `SET CorrelationId = newid()`, `SET sys.MessageId = t + t + t`, `SET a = p('sys.' + t); SET b = P(a)`, `SET rulename = NULL`,
	`SET sys.ScheduledEnqueueTimeUtc = a`, `SET set = remove; REMOVE set`, strings.Repeat("REMOVE a;", 33), `SET a = b; SET b = a, SET sys.SessionId = b`, `SET b = 'true'; SET x = 1 / n`,
}

// mostTime is beyond any doubt: what is bounded takes less than a millisecond.
const mostTime = 5 * time.Second

func FuzzParseAction(f *testing.F) {
	for _, seed := range actionSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		parsed, err := filter.ParseAction(text, authorParameters)
		if err != nil {
			e := semantics.AsError(err)
			column := columnOf.FindStringSubmatch(e.Message)
			if e.Code != semantics.ActionInvalid || e.Details[semantics.DetailField] != "action" || column == nil {
				t.Fatalf("%q gives %v", text, err)
			}
			if n, _ := strconv.Atoi(column[1]); n < 1 || n > utf8.RuneCountInString(text)+1 {
				t.Fatalf("%q has no column %d: %v", text, n, err)
			}
			return
		}
		again, err := filter.ParseLongAction(parsed.String(), authorParameters)
		if err != nil || !filter.SameStatements(parsed, again) || again.String() != parsed.String() {
			t.Fatalf("%q is printed as %q, which is %v, %v", text, parsed, again, err)
		}
		if took := time.Since(began); took > mostTime {
			t.Fatalf("%q takes %v", text, took)
		}
	})
}

func FuzzAction(f *testing.F) {
	for _, seed := range actionSeeds {
		f.Add(seed, "a%", int64(3), 0.5, "2026-01-02T03:04:05Z")
		f.Add(seed, "90s", int64(-1)<<63, 1e300, "-1.5")
	}
	f.Fuzz(func(t *testing.T, text, s string, n int64, d float64, other string) {
		r := ruleOf(`1=1`, "")
		r.Action = &semantics.SQLText{Expression: text, Parameters: authorParameters}
		compiled, err := filter.Compile(r)
		m := &fuzzMessage(s, n, d, other).Message
		if err != nil || m.Validate() != nil {
			return
		}
		before, began := clone(m), time.Now()
		made, err := compiled.Act(m)
		if took := time.Since(began); took > mostTime {
			t.Fatalf("%q takes %v", text, took)
		}
		if !sameMessage(before, m) {
			t.Fatalf("%q changes the original", text)
		}
		var failure *filter.EvaluationError
		if err != nil && (!errors.As(err, &failure) || made != nil || utf8.RuneCountInString(err.Error()) > semantics.MaxDeadLetterText) {
			t.Fatalf("%q gives %v, %v", text, made, err)
		}
		if err == nil {
			checkMade(t, text, made)
		}
		if e, _ := filter.Explain(r, m); !strings.Contains(text, "(") && (e.Copy == nil) != (err != nil || made.CheckHeaders() != nil) {
			t.Fatalf("%q gives %v, %v but is explained as\n%s", text, made, err, e)
		}
	})
}

// checkMade checks that a copy keeps the rules of messages but for those that Apply says it may not.
func checkMade(t *testing.T, text string, made *semantics.Message) {
	t.Helper()
	switch code := semantics.CodeOf(made.Validate()); code {
	case "", semantics.MessageSizeExceeded, semantics.PartitionKeyMismatch:
	default:
		t.Fatalf("%q makes an invalid message: %v", text, made.Validate())
	}
	if made.Properties["RuleName"] != semantics.String("a-rule") {
		t.Fatalf("%q makes a copy with RuleName %v", text, made.Properties["RuleName"])
	}
}

// sameMessage takes a NaN for the same as itself.
func sameMessage(a, b *semantics.Message) bool {
	return reflect.DeepEqual(fields(a), fields(b))
}

// What is printed must parse to the same structure, and printing that must give the same text.
func TestACT_1_PrintedActionsParseToThemselves(t *testing.T) {
	t.Parallel()
	parsed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a := author{t: t, left: rapid.IntRange(0, 3).Draw(t, "depth")}
		text := a.list(a.statement, ";", ",") + a.pick("", ";", " , ")
		action, err := filter.ParseLongAction(text, authorParameters)
		if err != nil {
			refused++
			for _, expected := range []string{"as a string", "is not a system property", "cannot be changed"} {
				if strings.Contains(err.Error(), expected) {
					return
				}
			}
			t.Fatalf("%s is refused: %v", text, err)
		}
		parsed++
		again, err := filter.ParseLongAction(action.String(), authorParameters)
		if err != nil {
			t.Fatalf("%s is printed as %s, which is refused: %v", text, action, err)
		}
		if !filter.SameStatements(action, again) || again.String() != action.String() {
			t.Fatalf("%s is printed as %s, which is read as %s", text, action, again)
		}
	})
	if parsed < refused {
		t.Errorf("%d random actions were refused, only %d taken", refused, parsed)
	}
}

func (a *author) statement() string {
	if a.pick("set", "remove") == "remove" {
		return a.pick("REMOVE ", "remove\n") + a.property()
	}
	return a.pick("SET ", "set\t") + a.property() + a.pick("=", " = ") + a.expr()
}

func TestACT_1_SameStatementsSeesDifferences(t *testing.T) {
	t.Parallel()
	texts := []string{
		`SET a = 1`, `SET a = 2`, `SET b = 1`, `SET A = 1`, `SET a = 1.0`, `SET sys.To = 1`, `SET sys.Label = 1`, `REMOVE a`, `REMOVE b`, `REMOVE sys.To`,
		`SET a = 1; SET a = 1`, `SET a = 1; REMOVE a`, `REMOVE a; SET a = 1`, `SET a = b`, `SET a = p('b')`, `SET a = -b`, `SET a = @x`, `SET a = @p_1`,
	}
	for i, a := range texts {
		for j, b := range texts {
			if same := filter.SameStatements(parseAction(t, a, authorParameters), parseAction(t, b, authorParameters)); same != (i == j) {
				t.Errorf("%s and %s are the same: %v", a, b, same)
			}
		}
	}
	if reflect.TypeFor[filter.Action]().NumField() != 2 {
		t.Error("an action has a field that SameStatements may not look at")
	}
}
