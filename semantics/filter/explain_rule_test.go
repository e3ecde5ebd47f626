package filter_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// explained checks what Explain prints about a rule and the order, and that it agrees with the compiled rule.
func explained(t *testing.T, r semantics.Rule, want string) {
	t.Helper()
	m := order().Message
	m.Properties["big"] = semantics.String(strings.Repeat("x", 32<<10))
	before := clone(&m)
	e, err := filter.Explain(r, &m)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.String(); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("explained as\n%s\nwant\n%s", got, want)
	}
	if !reflect.DeepEqual(before, &m) {
		t.Error("Explain changes the message")
	}
	agrees(t, e, compile(t, r), &m)
}

func agrees(t *testing.T, e *filter.Explanation, compiled semantics.CompiledRule, m *semantics.Message) {
	t.Helper()
	matches, err := compiled.Matches(m, nil)
	if matches != e.Matches || (err != nil) != (e.Failure != nil && !e.Matches) {
		t.Errorf("Matches gives %v, %v, but is explained as %v, %v", matches, err, e.Matches, e.Failure)
	}
	var made *semantics.Message
	if matches {
		if made, err = compiled.Act(m); err == nil && made.CheckHeaders() != nil {
			made = nil
		}
	}
	if !reflect.DeepEqual(made, e.Copy) {
		t.Errorf("Act gives %v, but is explained as %v", made, e.Copy)
	}
}

func TestRULE_6_ExplainSQL(t *testing.T) {
	t.Parallel()
	explained(t, ruleOf(`price*qty > 10 AND (color <> 'red' OR lost = 1)`, ""), `
rule a-rule: does not match
  UNKNOWN  price * qty > 10 AND (color <> 'red' OR lost = 1)
    TRUE     price * qty > 10  -- price is 4.5 (double); qty is 3 (int32)
    UNKNOWN  color <> 'red' OR lost = 1
      FALSE    color <> 'red'  -- color is 'red' (string)
      UNKNOWN  lost = 1  -- lost is missing
`)
	explained(t, ruleOf(`five = 5 OR NOT yes`, ""), `
rule a-rule: does not match
  UNKNOWN  five = 5 OR NOT yes
    UNKNOWN  five = 5  -- five is '5' (string)
    FALSE    NOT yes
      TRUE     yes  -- yes is TRUE (bool)
`)
	explained(t, ruleOf(`p('sys.' + which2) = 1 OR p(which) = 'red'`, ""), `
rule a-rule: fails
  FAILURE  property('sys.' + which2) = 1 OR property(which) = 'red'
    FAILURE  property('sys.' + which2) = 1  -- which2 is 'sys.To' (string); cannot evaluate property('sys.' + which2): the name is that of no system property
    TRUE     property(which) = 'red'  -- which is 'color' (string); color is 'red' (string)
  cannot evaluate property('sys.' + which2): the name is that of no system property
`)
	explained(t, ruleOf(`-took + at > at AND color IN (lost, color, 'x') AND color LIKE which ESCAPE empty AND EXISTS(raw) AND nothing IS NULL`, ""), `
rule a-rule: does not match
  FALSE    -took + at > at AND color IN (lost, color, 'x') AND color LIKE which ESCAPE empty AND EXISTS(raw) AND nothing IS NULL
    FALSE    -took + at > at  -- took is '90s' (timespan); at is '2026-01-02T03:04:05.6789Z' (datetime)
    TRUE     color IN (lost, color, 'x')  -- color is 'red' (string); lost is missing
    UNKNOWN  color LIKE which ESCAPE empty  -- color is 'red' (string); which is 'color' (string); empty is '' (string)
    TRUE     EXISTS(raw)  -- raw is bytes of length 1
    TRUE     nothing IS NULL  -- nothing is NULL
`)
	explained(t, ruleOf(`sys.ReplyTo = [my-prop]`, ""), `
rule a-rule: does not match
  UNKNOWN  sys.ReplyTo = [my-prop]  -- sys.ReplyTo is NULL; [my-prop] is 'it''s' (string)
`)
	explained(t, ruleOf(`big = 'x'`, ""), `
rule a-rule: does not match
  FALSE    big = 'x'  -- big is '`+strings.Repeat("x", 60)+`...' (string)
`)
}

func TestRULE_6_ExplainAllAndNone(t *testing.T) {
	t.Parallel()
	explained(t, semantics.Rule{Name: "$Default", Filter: semantics.RuleFilter{All: true}}, `
rule $Default: matches
  TRUE     every message
`)
	explained(t, semantics.Rule{Name: "off", Filter: semantics.RuleFilter{None: true}}, `
rule off: does not match
  FALSE    no message
`)
}

func TestCORR_4_ExplainWantAndHave(t *testing.T) {
	t.Parallel()
	explained(t, semantics.Rule{Name: "c", Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{
		Subject: ptr("the bus trip"), ReplyTo: ptr("r"),
		Properties: values{"five": semantics.Int64(5), "COLOR": semantics.String("red"), "lost": semantics.Null(), "nothing": semantics.Null()},
	}}}, `
rule c: does not match
  FALSE    sys.ReplyTo = 'r' (string) AND sys.Label = 'the bus trip' (string) AND COLOR = 'red' (string) AND five = 5 (int64) AND lost = NULL AND nothing = NULL
    FALSE    sys.ReplyTo = 'r' (string)  -- sys.ReplyTo is NULL
    TRUE     sys.Label = 'the bus trip' (string)  -- sys.Label is 'the bus trip' (string)
    TRUE     COLOR = 'red' (string)  -- COLOR is 'red' (string)
    FALSE    five = 5 (int64)  -- five is '5' (string)
    FALSE    lost = NULL  -- lost is missing
    TRUE     nothing = NULL  -- nothing is NULL
`)
}

func TestACT_2_ExplainActions(t *testing.T) {
	t.Parallel()
	explained(t, ruleOf(`1=1`, `SET qty = qty * 2; REMOVE COLOR; SET sys.TimeToLive = '90s', SET fresh = raw; REMOVE lost; SET sys.Label = NULL; SET sys.CorrelationId = id`), `
rule a-rule: matches
  TRUE     1 = 1
  SET qty = qty * 2  -- qty: 3 (int32) -> 6 (int32)
  REMOVE COLOR  -- COLOR: 'red' (string) -> missing
  SET sys.TimeToLive = '90s'  -- sys.TimeToLive: '3600s' (timespan) -> '90s' (timespan)
  SET fresh = raw  -- fresh: missing -> bytes of length 1
  REMOVE lost  -- lost: missing -> missing
  SET sys.Label = NULL  -- sys.Label: 'the bus trip' (string) -> NULL
  SET sys.CorrelationId = id  -- sys.CorrelationId: NULL -> '`+orderID+`' (string)
  the name of the rule  -- RuleName: missing -> 'a-rule' (string)
`)
	explained(t, ruleOf(`1=1`, `SET a = 1; SET qty = color; SET b = 2`), `
rule a-rule: matches, but its action fails
  TRUE     1 = 1
  SET a = 1  -- a: missing -> 1 (int64)
  cannot evaluate SET qty = color: a string of this value does not convert to int32
`)
	explained(t, ruleOf(`1=0`, `SET a = 1`), `
rule a-rule: does not match
  FALSE    1 = 0
`)
}

func TestACT_9_ExplainHeadersOverTheLimit(t *testing.T) {
	t.Parallel()
	big := "'" + strings.Repeat("x", 60) + "...' (string)"
	explained(t, ruleOf(`1=1`, `SET sys.To = big + big`), `
rule a-rule: matches, but its action fails
  TRUE     1 = 1
  SET sys.To = big + big  -- sys.To: 'S5' (string) -> `+big+`
  the name of the rule  -- RuleName: missing -> 'a-rule' (string)
  MESSAGE_SIZE_EXCEEDED: headers and properties is `+headersOverTheLimit()+` bytes, at most 65536 are allowed
`)
}

// headersOverTheLimit is the size of the copy of the test above.
func headersOverTheLimit() string {
	m := order().Message
	m.To = ""
	n := semantics.Message{To: strings.Repeat("x", 96<<10), Properties: values{"big": semantics.Null(), "RuleName": semantics.String("a-rule")}}
	return show(semantics.Int64(m.HeaderSize() + n.HeaderSize()))[len("int64 "):]
}
