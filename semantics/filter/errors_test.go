package filter_test

import (
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// wantInvalid checks that a filter is refused with FILTER_INVALID, exactly that message, and the field.
func wantInvalid(t *testing.T, text string, parameters values, message string) {
	t.Helper()
	f, err := filter.Parse(text, parameters)
	if err == nil {
		t.Errorf("%s is taken as %s, want: %s", text, f, message)
		return
	}
	e := semantics.AsError(err)
	if e.Code != semantics.FilterInvalid || e.Message != message || e.Details[semantics.DetailField] != "filter" || f != nil {
		t.Errorf("%s\n gives %s: %s %v\n want FILTER_INVALID: %s", text, e.Code, e.Message, e.Details, message)
	}
}

func TestSQL_1_ParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, message string }{
		{``, `column 1: expected a value, found the end`},
		{`   `, `column 4: expected a value, found the end`},
		{`a =`, `column 4: expected a value, found the end`},
		{`= 1`, `column 1: expected a value, found =`},
		{`a = 1 b`, `column 7: expected AND, OR or the end, found b`},
		{`a = 1 = 1`, `column 7: expected AND, OR or the end, found =`},
		{`a == 1`, `column 4: expected a value, found =`},
		{`a = 1 AND`, `column 10: expected a value, found the end`},
		{`a = 1 OR OR b = 2`, `column 10: expected a value, found OR; write [OR] for a property of that name`},
		{`AND a = 1`, `column 1: expected a value, found AND; write [AND] for a property of that name`},
		{`NOT`, `column 4: expected a value, found the end`},
		{`NOT NOT a`, `column 5: expected a condition, found NOT; write NOT (NOT ...)`},
		{`a = NOT b`, `column 5: expected a value, found NOT; write [NOT] for a property of that name`},
		{`(a = 1`, `column 7: expected ), found the end`},
		{`a = 1)`, `column 6: expected AND, OR or the end, found )`},
		{`()`, `column 2: expected a value, found )`},
		{`(a = 1) = TRUE`, `column 1: expected a value, found a condition`},
		{`TRUE = (a = 1)`, `column 8: expected a value, found a condition`},
		{`(a = 1) + 1 = 2`, `column 1: expected a value, found a condition`},
		{`1 + (a = 1) = 2`, `column 5: expected a value, found a condition`},
		{`1 * 2 * (NOT a) = 2`, `column 9: expected a value, found a condition`},
		{`-(a = 1)`, `column 2: expected a value, found a condition`},
		{`(a OR b) LIKE 'x'`, `column 1: expected a value, found a condition`},
		{`(a AND b) IN (1)`, `column 1: expected a value, found a condition`},
		{`a IN (1, (b = 1))`, `column 10: expected a value, found a condition`},
		{`a LIKE (b = 1)`, `column 8: expected a value, found a condition`},
		{`a LIKE 'b' ESCAPE (b = 1)`, `column 19: expected a value, found a condition`},
		{`EXISTS(a) = TRUE`, `column 11: expected AND, OR or the end, found =`},
		{`TRUE = EXISTS(a)`, `column 8: expected a value, found EXISTS; write [EXISTS] for a property of that name`},
		{`EXISTS a`, `column 8: expected (, found a`},
		{`EXISTS()`, `column 8: expected the name of a property, found )`},
		{`EXISTS(1)`, `column 8: expected the name of a property, found 1`},
		{`EXISTS('a')`, `column 8: expected the name of a property, found 'a'`},
		{`EXISTS((a))`, `column 8: expected the name of a property, found (`},
		{`EXISTS(a, b)`, `column 9: expected ), found ,`},
		{`1 IS NULL`, `column 1: expected the name of a property before IS`},
		{`(a) IS NULL`, `column 1: expected the name of a property before IS`},
		{`a + b IS NULL`, `column 1: expected the name of a property before IS`},
		{`p('a') IS NULL`, `column 1: expected the name of a property before IS`},
		{`b = 1 AND @x IS NULL`, `column 11: parameter @x has no value; pass one with the rule`},
		{`a IS 1`, `column 6: expected NULL, found 1`},
		{`a IS NOT`, `column 9: expected NULL, found the end`},
		{`a IS NOT NOT NULL`, `column 10: expected NULL, found NOT`},
		{`a NOT = 1`, `column 7: expected IN or LIKE after NOT, found =`},
		{`a NOT`, `column 6: expected IN or LIKE after NOT, found the end`},
		{`a IN`, `column 5: expected (, found the end`},
		{`a IN 1`, `column 6: expected (, found 1`},
		{`a IN ()`, `column 7: expected a value, found )`},
		{`a IN (1,)`, `column 9: expected a value, found )`},
		{`a IN (1 2)`, `column 9: expected ), found 2`},
		{`a LIKE`, `column 7: expected a value, found the end`},
		{`a LIKE 'x' ESCAPE`, `column 18: expected a value, found the end`},
		{`a + = 1`, `column 5: expected a value, found =`},
		{`a - - 1 = 1 AND - - a = 1`, `column 19: expected a value, found -`},
		{`+-1 = 1`, `column 2: expected a value, found -`},
		{`--1 = 1`, `column 2: expected a value, found -`},
		{`a;b`, `column 2: expected AND, OR or the end, found ;`},
		{`a, b`, `column 2: expected AND, OR or the end, found ,`},
		{`a # 1`, `column 3: unexpected character '#'`},
		{`a ! 1`, `column 3: unexpected character '!'`},
		{`größe = 'ä' §`, `column 13: unexpected character '§'`},
		{"a\u00a0=\n\t§", `column 6: unexpected character '§'`},
		{`_a = 1`, `column 1: unexpected character '_'`},
		{`$a = 1`, `column 1: unexpected character '$'`},
		{`my-prop = 1 AND 5.a`, `column 19: a number runs into a letter`},
		{`'a`, `column 1: the string is not closed, expected '`},
		{`a = 'it's'`, `column 9: expected AND, OR or the end, found s`},
		{`a = 'x' AND 'it''`, `column 13: the string is not closed, expected '`},
		{`[a = 1`, `column 1: the name is not closed, expected ]`},
		{`[a]] = 1`, `column 1: the name is not closed, expected ]`},
		{`"a = 1`, `column 1: the name is not closed, expected "`},
		{`[] = 1`, `column 1: a name must not be empty`},
		{`"" = 1`, `column 1: a name must not be empty`},
		{"a = \xff", `column 5: the text is not valid UTF-8`},
		{"a = '\xff'", `column 5: the string is not valid UTF-8`},
		{"[\xff] = 1", `column 1: the name is not valid UTF-8`},
		{`a = @`, `column 5: expected the name of a parameter after @`},
		{`a = @ x`, `column 5: expected the name of a parameter after @`},
		{`a = @1`, `column 5: expected the name of a parameter after @`},
		{`a = 1x`, `column 6: a number runs into a letter`},
		{`a = 1_0`, `column 6: a number runs into a letter`},
		{`a = 1E`, `column 7: expected digits after E`},
		{`a = 1.5e+ 1`, `column 10: expected digits after E`},
		{`a = 1E5x`, `column 8: a number runs into a letter`},
		{`a = .`, `column 5: expected a value, found .`},
		{`1 = a . b`, `column 5: expected sys or user before a dot, found a; write [ ] around a name with a dot in it`},
		{`[user].b = 1`, `column 1: expected sys or user before a dot, found [user]; write [ ] around a name with a dot in it`},
		{`user.a.b = 1`, `column 7: expected AND, OR or the end, found .`},
		{`'a'.b = 1`, `column 4: expected AND, OR or the end, found .`},
		{`user. = 1`, `column 7: expected a name after user., found =`},
		{`sys.'a' = 1`, `column 5: expected a name after sys., found 'a'`},
		{`sys.sys.To = 1`, `column 5: expected a name after sys., found sys`},
		{`a 'bbbbbbbbbbbbbbbbbbbbbbbbbbbb'`, `column 3: expected AND, OR or the end, found 'bbbbbbbbbbbbbbbbbbbbbbbbbbbb'`},
		{`a = 'aaaaaaaaaaaaaaaaaaaa' 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'`, `column 28: expected AND, OR or the end, found 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbb...`},
	} {
		wantInvalid(t, c.text, nil, c.message)
	}
}

func TestSQL_4_UnknownSystemProperty(t *testing.T) {
	t.Parallel()
	wantInvalid(t, `a = 1 AND sys.Color = 1`, nil, `column 15: Color is not a system property`)
	wantInvalid(t, `EXISTS(sys.LockToken)`, nil, `column 12: LockToken is not a system property`)
	wantInvalid(t, `sys.[] = 1`, nil, `column 5: a name must not be empty`)
	wantInvalid(t, `sys.[Label ] = 1`, nil, `column 5: [Label ] is not a system property`)
	wantInvalid(t, `p('sys.Color') = 1`, nil, `column 3: sys.Color is not a system property`)
	wantInvalid(t, `property(@name) = 1`, values{"name": semantics.String("SYS.Color")}, `column 10: SYS.Color is not a system property`)
}

func TestSQL_5_NumbersOutOfRange(t *testing.T) {
	t.Parallel()
	const bounds = ` does not fit 64 bits (-9223372036854775808 to 9223372036854775807)`
	wantInvalid(t, `a = 9223372036854775808`, nil, `column 5: integer 9223372036854775808`+bounds)
	wantInvalid(t, `a = -9223372036854775809`, nil, `column 6: integer -9223372036854775809`+bounds)
	wantInvalid(t, `a - 9223372036854775808 = 1`, nil, `column 5: integer 9223372036854775808`+bounds)
	wantInvalid(t, `-(9223372036854775808) = a`, nil, `column 3: integer 9223372036854775808`+bounds)
	wantInvalid(t, `a = 1E309`, nil, `column 5: number 1E309 does not fit a double`)
}

func TestSQL_6_WordsAreNotNames(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"and", "OR", "Is", "in", "LIKE", "escape", "exists"} {
		_, err := filter.Parse("a = "+word, nil)
		if err == nil || !strings.Contains(err.Error(), "column 5: expected a value, found "+word+"; write ["+word+"]") {
			t.Errorf("%s as a name gives %v", word, err)
		}
		if _, err := filter.Parse("a = ["+word+"] AND \""+word+"\" = user.["+word+"]", nil); err != nil {
			t.Errorf("%s in brackets gives %v", word, err)
		}
	}
	for _, word := range []string{"p", "Property", "newid"} {
		wantInvalid(t, word+` = 1`, nil, `column `+map[int]string{1: "3", 8: "10", 5: "7"}[len(word)]+`: expected ( after `+word+`, found =; write [`+word+`] for a property of that name`)
	}
	wantInvalid(t, `user = 1`, nil, `column 6: expected . after user, found =; write [user] for a property of that name`)
	wantInvalid(t, `user.in = 1`, nil, `column 6: expected a name after user., found in`)
}

func TestSQL_15_FunctionArity(t *testing.T) {
	t.Parallel()
	wantInvalid(t, `newid(1) = 1`, nil, `column 7: expected ), found 1; newid takes no argument`)
	wantInvalid(t, `newid = 1`, nil, `column 7: expected ( after newid, found =; write [newid] for a property of that name`)
	wantInvalid(t, `p() = 1`, nil, `column 3: expected the name of a property, found ); property takes one argument`)
	wantInvalid(t, `p('a', 'b') = 1`, nil, `column 6: expected ), found ,; property takes one argument`)
	wantInvalid(t, `property('a' = 1`, nil, `column 14: expected ), found =`)
	wantInvalid(t, `property(5) = 1`, nil, `column 10: expected the name of a property as a string`)
	wantInvalid(t, `property(NULL) = 1`, nil, `column 10: expected the name of a property as a string`)
	wantInvalid(t, `property('') = 1`, nil, `column 10: expected the name of a property as a string`)
	wantInvalid(t, `length('a') = 1`, nil, `column 7: expected AND, OR or the end, found (`)
}

func TestSQL_14_ConstantPatternErrors(t *testing.T) {
	t.Parallel()
	wantInvalid(t, `a LIKE 'x!' ESCAPE '!'`, nil, `column 8: the pattern ends in its escape character`)
	wantInvalid(t, `a LIKE 'x!!!' ESCAPE '!'`, nil, `column 8: the pattern ends in its escape character`)
	wantInvalid(t, `a NOT LIKE '%' ESCAPE '%'`, nil, `column 12: the pattern ends in its escape character`)
	for _, escape := range []string{`'ab'`, `''`, `5`, `NULL`, `TRUE`, `@two`, `'ää'`} {
		wantInvalid(t, `a LIKE 'x' ESCAPE `+escape, values{"two": semantics.String("!!")}, `column 19: expected a string of one character after ESCAPE`)
		wantInvalid(t, `a LIKE b ESCAPE `+escape, values{"two": semantics.String("!!")}, `column 17: expected a string of one character after ESCAPE`)
	}
	wantInvalid(t, `a LIKE @p ESCAPE @e`, values{"p": semantics.String("!"), "e": semantics.String("!")}, `column 8: the pattern ends in its escape character`)
	wantInvalid(t, `a LIKE @p`, values{"p": semantics.String(strings.Repeat("x", 1025))}, `column 8: the pattern is 1025 characters long, at most 1024 are allowed`)
}

func TestRULE_4_TextLength(t *testing.T) {
	t.Parallel()
	fits := `a = '` + strings.Repeat("ä", 1024-6) + `'`
	if _, err := filter.Parse(fits, nil); err != nil {
		t.Errorf("1,024 characters are refused: %v", err)
	}
	wantInvalid(t, fits+" ", nil, "column 1025: the text is 1025 characters long, at most 1024 are allowed")
	_, err := filter.Parse(fits+"  ", nil)
	if e := semantics.AsError(err); e.Details[semantics.DetailLimit] != "1024" || e.Details[semantics.DetailActual] != "1026" {
		t.Errorf("details are %v", e.Details)
	}
}

func TestSQL_18_Depth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, middle, after string }{
		{"(", "a", ")"}, {"NOT (", "a", ")"}, {"-(", "a", ")"}, {"p(", "a", ")"}, {"a IN (1, (", "a", "))"}, {"(a + ", "1", ")"}, {"(a OR (b AND ", "c", "))"},
	} {
		times := 64 / strings.Count(c.before, "(")
		deepest := strings.Repeat(c.before, times) + c.middle + strings.Repeat(c.after, times)
		if strings.Contains(c.before, "IN") { // conditions do not nest in lists
			deepest = "a IN (" + strings.Repeat("(", 63) + "a" + strings.Repeat(")", 64)
		}
		if _, err := filter.Parse(deepest, nil); err != nil {
			t.Errorf("%s is refused: %v", deepest, err)
		}
		deeper := "(" + deepest + ")"
		if _, err := filter.Parse(deeper, nil); semantics.CodeOf(err) != semantics.FilterInvalid || !strings.Contains(err.Error(), "more than 64 parentheses are open") {
			t.Errorf("%s gives %v", deeper, err)
		}
	}
	wantInvalid(t, strings.Repeat("(", 1000), nil, "column 65: more than 64 parentheses are open")
	// length alone is no depth
	for _, long := range []string{"a" + strings.Repeat(" OR a", 200), "1" + strings.Repeat("+1", 500), strings.Repeat("(a) AND ", 100) + "a", "a IN (1" + strings.Repeat(",1", 500) + ")"} {
		if _, err := filter.Parse(long, nil); err != nil {
			t.Errorf("%s is refused: %v", long, err)
		}
	}
}
