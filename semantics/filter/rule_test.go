package filter_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// ruleOf is a rule with an SQL filter, and an action if there is one.
func ruleOf(where, action string) semantics.Rule {
	r := semantics.Rule{Name: "a-rule", Filter: semantics.RuleFilter{SQL: &semantics.SQLText{Expression: where}}}
	if action != "" {
		r.Action = &semantics.SQLText{Expression: action}
	}
	return r
}

func compile(t *testing.T, r semantics.Rule) semantics.CompiledRule {
	t.Helper()
	compiled, err := filter.Compile(r)
	if err != nil {
		t.Fatalf("%+v is refused: %v", r, err)
	}
	return compiled
}

func TestRULE_6_FilterKinds(t *testing.T) {
	t.Parallel()
	m := order().Message
	for name, c := range map[string]struct {
		filter semantics.RuleFilter
		want   bool
	}{
		"all":             {semantics.RuleFilter{All: true}, true},
		"none":            {semantics.RuleFilter{None: true}, false},
		"true":            {semantics.RuleFilter{SQL: &semantics.SQLText{Expression: "1=1"}}, true},
		"false":           {semantics.RuleFilter{SQL: &semantics.SQLText{Expression: "1=0"}}, false},
		"sql":             {semantics.RuleFilter{SQL: &semantics.SQLText{Expression: "qty = @n", Parameters: values{"@N": semantics.Int64(3)}}}, true},
		"sql unknown":     {semantics.RuleFilter{SQL: &semantics.SQLText{Expression: "NOT lost = 1"}}, false},
		"correlation":     {semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{To: ptr("S5")}}, true},
		"correlation not": {semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{To: ptr("S6")}}, false},
	} {
		r := compile(t, semantics.Rule{Name: "r", Filter: c.filter})
		if got, err := r.Matches(&m, nil); got != c.want || err != nil {
			t.Errorf("%s gives %v, %v", name, got, err)
		}
	}
}

func TestRULE_6_ExactlyOneKind(t *testing.T) {
	t.Parallel()
	sql, correlation := &semantics.SQLText{Expression: "1=1"}, &semantics.CorrelationFilter{To: ptr("x")}
	for set := range 1 << 4 {
		f, kinds := semantics.RuleFilter{}, 0
		if set&1 != 0 {
			f.All, kinds = true, kinds+1
		}
		if set&2 != 0 {
			f.None, kinds = true, kinds+1
		}
		if set&4 != 0 {
			f.SQL, kinds = sql, kinds+1
		}
		if set&8 != 0 {
			f.Correlation, kinds = correlation, kinds+1
		}
		compiled, err := filter.Compile(semantics.Rule{Name: "r", Filter: f})
		if kinds == 1 && err == nil {
			continue
		}
		want := fmt.Sprintf("a rule has exactly one filter, this one has %d: specify all, none, correlation or sql", kinds)
		if e := semantics.AsError(err); e == nil || e.Code != semantics.FilterInvalid || e.Message != want || e.Details[semantics.DetailField] != "filter" || compiled != nil {
			t.Errorf("%d kinds give %v, %v", kinds, compiled, err)
		}
	}
}

func TestRULE_7_BadRulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		where, action string
		code          semantics.Code
		field, text   string
	}{
		{`a = `, ``, semantics.FilterInvalid, "filter", "column 5: expected a value, found the end"},
		{``, ``, semantics.FilterInvalid, "filter", "column 1: expected a value, found the end"},
		{`sys.Color = 1`, `SET`, semantics.FilterInvalid, "filter", "column 5: Color is not a system property"},
		{`a = @x`, ``, semantics.FilterInvalid, "filter", "column 5: parameter @x has no value; pass one with the rule"},
		{`a = 1`, `SET sys.Size = 1`, semantics.ActionInvalid, "action", "column 5: sys.Size is assigned by the broker and cannot be changed"},
		{`a = 1`, `SET a = @x`, semantics.ActionInvalid, "action", "column 9: parameter @x has no value; pass one with the rule"},
		{`a = 1`, ` `, semantics.ActionInvalid, "action", "column 2: expected SET or REMOVE, found the end"},
	} {
		compiled, err := filter.Compile(ruleOf(c.where, c.action))
		if e := semantics.AsError(err); e == nil || e.Code != c.code || e.Message != c.text || e.Details[semantics.DetailField] != c.field || compiled != nil {
			t.Errorf("%q %q gives %v, %v, want %s", c.where, c.action, compiled, err, c.text)
		}
		if _, again := filter.Explain(ruleOf(c.where, c.action), &semantics.Message{}); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%q %q: Explain gives %v, Compile %v", c.where, c.action, again, err)
		}
	}
	bare := ruleOf(`a = 1`, `SET a = @x`)
	bare.Filter.SQL.Parameters = values{"x": semantics.Int64(1)} // of the filter, not of the action
	if _, err := filter.Compile(bare); semantics.CodeOf(err) != semantics.ActionInvalid {
		t.Errorf("an action uses the parameters of the filter: %v", err)
	}
}

func TestRULE_8_FailuresHaveNoResult(t *testing.T) {
	t.Parallel()
	m := order().Message
	failing := compile(t, ruleOf(`10 / zero > 1`, `SET a = 1`))
	if matches, err := failing.Matches(&m, nil); matches || err == nil || err.Error() != "cannot evaluate 10 / zero: division of an integer by zero" {
		t.Errorf("gives %v, %v", matches, err)
	}
	for action, text := range map[string]string{
		`SET a = max + 1`:             "cannot evaluate max + 1: the result does not fit 64 bits",
		`SET a = 1; SET qty = color`:  "cannot evaluate SET qty = color: a string of this value does not convert to int32",
		`SET sys.TimeToLive = 5`:      "cannot evaluate SET sys.TimeToLive = 5: an int64 of this value does not convert to timespan",
		`SET sys.MessageId = big`:     "cannot evaluate SET sys.MessageId = big: the text is 200 characters long, at most 128 are allowed",
		`SET a = p('sys.' + color)`:   "cannot evaluate property('sys.' + color): the name is that of no system property",
		`SET sys.TimeToLive = '-10s'`: "cannot evaluate SET sys.TimeToLive = '-10s': the time to live is not at least 1ms",
	} {
		m := order().Message
		m.Properties["big"] = semantics.String(strings.Repeat("x", 200))
		before := clone(&m)
		made, err := compile(t, ruleOf(`1=1`, action)).Act(&m)
		var failure *filter.EvaluationError
		if made != nil || !errors.As(err, &failure) || err.Error() != text {
			t.Errorf("%s gives %v, %v, want %s", action, made, err, text)
		}
		if !reflect.DeepEqual(before, &m) {
			t.Errorf("%s changes the original", action)
		}
	}
}

func TestRULE_8_FailuresFitADeadLetterDescription(t *testing.T) {
	t.Parallel()
	long := "1E20" + strings.Repeat("+1E20", 200) // each number is 23 characters in canonical text
	m := order().Message
	_, matchErr := compile(t, ruleOf(`1 / zero = p('sys.' + color) AND a = 1`, "")).Matches(&m, nil)
	_, actErr := compile(t, ruleOf(`1=1`, `SET qty = `+long)).Act(&m)
	for _, err := range []error{matchErr, actErr} {
		if n := utf8.RuneCountInString(err.Error()); n > semantics.MaxDeadLetterText || n < 20 || !strings.Contains(err.Error(), ": ") {
			t.Errorf("is %d characters long: %.100v", n, err)
		}
	}
	if !strings.HasSuffix(actErr.Error(), "...: a double of this value does not convert to int32") {
		t.Errorf("the end of a long failure is lost: %v", actErr)
	}
}

func TestTOPIC_6_ActionCopiesAreSigned(t *testing.T) {
	t.Parallel()
	m := order().Message
	for _, c := range []struct {
		action, was, want string
	}{
		{`REMOVE lost`, "", "RuleName string a-rule"},
		{`SET RuleName = 'x'; SET fresh = RuleName`, "", "RuleName string a-rule; fresh string x"},
		{`REMOVE RuleName`, "", "RuleName string a-rule"},
		{`SET fresh = RuleName`, "RULENAME", "-RULENAME; RuleName string a-rule; fresh string before"},
		{`SET rulename = 5`, "RuleName", "RuleName string a-rule"},
	} {
		m := clone(&m)
		if c.was != "" {
			m.Properties[c.was] = semantics.String("before")
		}
		before := clone(m)
		r := compile(t, ruleOf(`1=1`, c.action))
		made, err := r.Act(m)
		if err != nil || !r.HasAction() {
			t.Fatalf("%s: %v, has an action: %v", c.action, err, r.HasAction())
		}
		if got := difference(m, made); got != c.want {
			t.Errorf("%s changes %s, want %s", c.action, got, c.want)
		}
		if err := made.Validate(); err != nil {
			t.Errorf("%s makes a message that is not valid: %v", c.action, err)
		}
		if !reflect.DeepEqual(before, m) {
			t.Errorf("%s changes the original", c.action)
		}
	}
}

func TestTOPIC_6_PlainCopiesAreNot(t *testing.T) {
	t.Parallel()
	m := order().Message
	r := compile(t, ruleOf(`1=1`, ""))
	made, err := r.Act(&m)
	if made != &m || err != nil || r.HasAction() {
		t.Errorf("a rule without action makes %p of %p, %v, has an action: %v", made, &m, err, r.HasAction())
	}
	if _, signed := made.Properties["RuleName"]; signed {
		t.Error("a plain copy has a RuleName")
	}
}

func TestCORR_6_CorrelationRulesMayAct(t *testing.T) {
	t.Parallel()
	m := order().Message
	r := compile(t, semantics.Rule{
		Name:   "to-S5",
		Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{To: ptr("S5")}},
		Action: &semantics.SQLText{Expression: `SET sys.To = @to`, Parameters: values{"to": semantics.String("S6")}},
	})
	matches, err := r.Matches(&m, nil)
	made, actErr := r.Act(&m)
	if !matches || err != nil || actErr != nil || difference(&m, made) != "RuleName string to-S5; sys.To S6" {
		t.Errorf("gives %v, %v, %v, %v", matches, err, made, actErr)
	}
}

func TestSQL_12_WarningsOfARule(t *testing.T) {
	t.Parallel()
	r := compile(t, ruleOf(`a = NULL`, `SET To = 'x'`))
	want := []string{
		`filter: column 1: a = NULL is always unknown, because nothing compares with NULL; write IS NULL`,
		`action: column 1: SET To = 'x' is about an application property; write sys.To for that of the broker`,
	}
	if got := r.Warnings(); !reflect.DeepEqual(got, want) {
		t.Errorf("warns\n%q, want\n%q", got, want)
	}
	if got := compile(t, semantics.Rule{Filter: semantics.RuleFilter{All: true}}).Warnings(); len(got) != 0 {
		t.Errorf("all warns %q", got)
	}
}
