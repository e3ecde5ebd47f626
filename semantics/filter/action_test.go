package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func TestACT_1_Statements(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET fresh = 1`, "fresh int64 1"},
		{`set fresh = 1`, "fresh int64 1"},
		{`SET fresh=1;`, "fresh int64 1"},
		{`SET fresh=1,`, "fresh int64 1"},
		{`SET a = 1; SET b = 2`, "a int64 1; b int64 2"},
		{`SET a = 1, SET b = 2`, "a int64 1; b int64 2"},
		{"SET a = 1;\n\tREMOVE Color ,\nSET b = 2 ; ", "-Color; a int64 1; b int64 2"},
		{`REMOVE color`, "-Color"},
		{`rEmOvE user.Color`, "-Color"},
		{`SET set = 1; SET remove = 2`, "remove int64 2; set int64 1"},
		{`REMOVE remove; REMOVE set`, ""},
		{`SET [a b] = 1; SET "c-d" = 2; SET user.[sys] = 3`, "a b int64 1; c-d int64 2; sys int64 3"},
		{`SET fresh = (1 + 2) * -qty`, "fresh int64 -9"},
		{`SET fresh = color + '!'`, "fresh string red!"},
		{`SET fresh = p('col' + 'or')`, "fresh string red"},
		{`SET sys.Label = property('sys.To') + '/' + color`, "sys.Label S5/red"},
	})
}

func TestACT_1_CanonicalText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`set a=1`, `SET a = 1`},
		{`SET a=1,remove b;`, `SET a = 1; REMOVE b`},
		{`SET user.[a]=-(b)+@x`, `SET a = -b + @x`},
		{`SET [a b]=(1+2)*3, REMOVE [SET]`, `SET [a b] = (1 + 2) * 3; REMOVE SET`},
		{`REMOVE sys.subject`, `REMOVE sys.Label`},
		{`SET sys.[messageid]=newid()`, `SET sys.MessageId = newid()`},
		{`SET a=p('b')`, `SET a = property('b')`},
		{`SET a=NULL,SET b='it''s'`, `SET a = NULL; SET b = 'it''s'`},
	} {
		a, err := filter.ParseAction(c.text, authorParameters)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if a.String() != c.want {
			t.Errorf("%s is printed as %s, want %s", c.text, a, c.want)
		}
		again := parseAction(t, c.want, authorParameters)
		if again == nil || !filter.SameStatements(a, again) {
			t.Errorf("%s parsed again is %v", c.want, again)
		}
	}
}

func TestACT_1_ParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, message string }{
		{``, `column 1: expected SET or REMOVE, found the end`},
		{`;`, `column 1: expected SET or REMOVE, found ;`},
		{`SET a = 1;;`, `column 11: expected SET or REMOVE, found ;`},
		{`SET a = 1;,`, `column 11: expected SET or REMOVE, found ,`},
		{`a = 1`, `column 1: expected SET or REMOVE, found a`},
		{`[SET] a = 1`, `column 1: expected SET or REMOVE, found [SET]`},
		{`'SET' a = 1`, `column 1: expected SET or REMOVE, found 'SET'`},
		{`DELETE a`, `column 1: expected SET or REMOVE, found DELETE`},
		{`SET`, `column 4: expected the name of a property, found the end`},
		{`SET = 1`, `column 5: expected the name of a property, found =`},
		{`SET 'a' = 1`, `column 5: expected the name of a property, found 'a'`},
		{`SET @x = 1`, `column 5: expected the name of a property, found @x`},
		{`SET p('a') = 1`, `column 5: expected a value, found p; write [p] for a property of that name`},
		{`SET a`, `column 6: expected =, found the end`},
		{`SET a 1`, `column 7: expected =, found 1`},
		{`SET a <> 1`, `column 7: expected =, found <>`},
		{`SET a =`, `column 8: expected a value, found the end`},
		{`SET a = ;`, `column 9: expected a value, found ;`},
		{`SET a = 1 SET b = 2`, `column 11: expected a semicolon or the end, found SET`},
		{`SET a = 1 AND b`, `column 11: expected a semicolon or the end, found AND`},
		{`SET a = b = 1`, `column 11: expected a semicolon or the end, found =`},
		{`SET a = b IS NULL`, `column 11: expected a semicolon or the end, found IS`},
		{`SET a = (b = 1)`, `column 9: expected a value, found a condition`},
		{`SET a = (NOT b)`, `column 9: expected a value, found a condition`},
		{`SET a = EXISTS(b)`, `column 9: expected a value, found EXISTS; write [EXISTS] for a property of that name`},
		{`SET a = @lost`, `column 9: parameter @lost has no value; pass one with the rule`},
		{`SET a = sys.Color`, `column 13: Color is not a system property`},
		{`SET a = 1; SET sys.Color = 1`, `column 20: Color is not a system property`},
		{`SET a.b = 1`, `column 5: expected sys or user before a dot, found a; write [ ] around a name with a dot in it`},
		{`REMOVE`, `column 7: expected the name of a property, found the end`},
		{`REMOVE a = 1`, `column 10: expected a semicolon or the end, found =`},
		{`REMOVE a b`, `column 10: expected a semicolon or the end, found b`},
		{`SET a = 'x`, `column 9: the string is not closed, expected '`},
		{`SET a = 1 §`, `column 11: unexpected character '§'`},
		{`SET a = 9223372036854775808`, `column 9: integer 9223372036854775808 does not fit 64 bits (-9223372036854775808 to 9223372036854775807)`},
		{`SET [` + strings.Repeat("ä", 129) + `] = 1`, `column 5: the name of a property has at most 128 characters`},
		{`SET a = ` + strings.Repeat("(", 65), `column 73: more than 64 parentheses are open`},
	} {
		wantActionInvalid(t, c.text, nil, c.message)
	}
	if _, err := filter.ParseAction(`SET [`+strings.Repeat("ä", 128)+`] = 1`, nil); err != nil {
		t.Errorf("a name of 128 characters is refused: %v", err)
	}
}

func wantActionInvalid(t *testing.T, text string, parameters values, message string) {
	t.Helper()
	a, err := filter.ParseAction(text, parameters)
	if err == nil {
		t.Errorf("%s is taken as %s, want: %s", text, a, message)
		return
	}
	e := semantics.AsError(err)
	if e.Code != semantics.ActionInvalid || e.Message != message || e.Details[semantics.DetailField] != "action" || a != nil {
		t.Errorf("%s\n gives %s: %s %v\n want ACTION_INVALID: %s", text, e.Code, e.Message, e.Details, message)
	}
}

func TestRULE_4_ActionLimits(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("REMOVE a;", 32)
	if _, err := filter.ParseAction(most, nil); err != nil {
		t.Errorf("32 statements are refused: %v", err)
	}
	wantActionInvalid(t, most+"SET a = 1", nil, "column 289: the action has more than 32 statements")
	_, err := filter.ParseAction(most+"SET a = 1", nil)
	if e := semantics.AsError(err); e.Details[semantics.DetailLimit] != "32" {
		t.Errorf("details are %v", e.Details)
	}
	fits := `SET a = '` + strings.Repeat("ä", 1024-10) + `'`
	if _, err := filter.ParseAction(fits, nil); err != nil {
		t.Errorf("1,024 characters are refused: %v", err)
	}
	wantActionInvalid(t, fits+";", nil, "column 1025: the text is 1025 characters long, at most 1024 are allowed")
	large := values{"a": semantics.String(strings.Repeat("x", 40<<10)), "b": semantics.String(strings.Repeat("x", 40<<10))}
	wantActionInvalid(t, `SET a = 1`, large, "the parameters are 81922 bytes with their names, at most 65536 are allowed")
	wantInvalid(t, `a = 1`, large, "the parameters are 81922 bytes with their names, at most 65536 are allowed")
	wantActionInvalid(t, `SET a = 1`, values{"x": semantics.Bytes(nil)}, `parameter "x" must be a string, number, bool, datetime or timespan, got bytes`)
}

func TestACT_2_LaterStatementsSeeEarlierOnes(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET a = 1; SET a = a + 1; SET b = A * 10`, "a int64 2; b int64 20"},
		{`SET x = color; SET color = sys.To; SET sys.To = x; REMOVE x`, "Color string S5; sys.To red"},
		{`REMOVE color; SET fresh = color`, "-Color; fresh null"},
		{`REMOVE color; SET COLOR = 5`, "-Color; COLOR int64 5"},
		{`SET sys.Label = 'x'; SET fresh = sys.Subject + sys.Label`, "fresh string xx; sys.Label x"},
		{`SET sys.Label = ''; SET x = sys.Size; SET sys.Label = '12'; SET y = sys.Size - x`, "sys.Label 12; x int64 " + sizeWithoutLabel() + "; y int64 11"},
		{`SET sys.TimeToLive = '1h30m'; SET fresh = sys.TimeToLive`, "fresh timespan 54000000000; sys.TimeToLive 1h30m0s"},
		{`SET qty = 7; SET qty = 1 / zero`, E}, // all or nothing
	})
}

// sizeWithoutLabel is that of the order, in which y is 11 more: the property x has one character and 8 bytes, the label
// two.
func sizeWithoutLabel() string {
	m := order().Message
	m.Subject = ""
	return fmt.Sprint(m.Size())
}

func TestACT_2_OneCopyForEachRule(t *testing.T) {
	t.Parallel()
	m := order().Message
	a := parseAction(t, `SET qty = qty + 1; SET sys.TimeToLive = '90s'`, nil)
	first, err := a.Apply(&m)
	second, secondErr := a.Apply(&m)
	if err != nil || secondErr != nil {
		t.Fatal(err, secondErr)
	}
	first.Properties["qty"], *first.TimeToLive = semantics.Null(), 0
	if got, want := difference(&m, second), "qty int32 4; sys.TimeToLive 1m30s"; got != want {
		t.Errorf("after changes to another copy the second differs in %q, want %q", got, want)
	}
	if &first.Body[0] != &m.Body[0] {
		t.Error("the body is copied")
	}
	untouched, err := parseAction(t, `REMOVE lost`, nil).Apply(&m)
	if err != nil {
		t.Fatal(err)
	}
	if *untouched.TimeToLive = time.Second; *m.TimeToLive != time.Hour {
		t.Error("a change to the copy's time to live changes the original's")
	}
}
