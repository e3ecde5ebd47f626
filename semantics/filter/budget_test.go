package filter_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// Pieces that are longer than 64 characters, and characters that come often, in texts with broken ones between.
func TestSQL_14_LongLikeIsWhatARegexpSays(t *testing.T) {
	t.Parallel()
	like := parse(t, `a LIKE b`, nil)
	rapid.Check(t, func(t *rapid.T) {
		run := rapid.SampledFrom([]string{"a", "aa", "b", "ä", strings.Repeat("a", 63), strings.Repeat("ab", 33)})
		text := strings.Join(rapid.SliceOfN(run, 0, 6).Draw(t, "text"), "")
		parts := rapid.SampledFrom([]string{"a", "_", "_", "b", "ä", "%", strings.Repeat("a", 62), strings.Repeat("a_", 33), strings.Repeat("_", 65)})
		pattern := strings.Join(rapid.SliceOfN(parts, 0, 6).Draw(t, "pattern"), "")
		view := filter.Of(&semantics.Message{Properties: values{"a": semantics.String(text), "b": semantics.String(pattern)}})
		if got, err := like.Matches(view); err != nil || got != likeOracle(text, pattern, -1) {
			t.Fatalf("%q LIKE %q is %v, %v", text, pattern, got, err)
		}
	})
}

// However many rules there are and whatever they ask, all together look at so much text for one message and no more.
func TestSQL_18_TheRulesOfATopicShareABudget(t *testing.T) {
	t.Parallel()
	const size = 32 << 10
	m := &semantics.Message{Properties: values{"text": semantics.String(strings.Repeat("a", size)), "more": semantics.String("c")}}
	for name, c := range map[string]struct {
		filter string
		each   int // bytes that one rule looks at, at least
	}{
		"a piece with any characters": {`text LIKE '%` + strings.Repeat("_a", 20) + `b%'`, size},
		"a long piece":                {`text LIKE '%` + strings.Repeat("_a", 200) + `b%'`, size * 336},
		"many":                        {strings.Repeat(`text LIKE '%_b%' OR `, 20) + `1 = 2`, 20 * size},
		"a pattern of the message":    {`more LIKE text`, size},
		"joined texts":                {`text + text = more`, 2 * size},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule, err := filter.Compile(semantics.Rule{Name: "r", Filter: semantics.RuleFilter{SQL: &semantics.SQLText{Expression: c.filter}}})
			if err != nil {
				t.Fatal(err)
			}
			budget := semantics.NewBudget()
			var failed *filter.EvaluationError
			for rules := 0; ; rules++ {
				_, err = rule.Matches(m, budget)
				if errors.As(err, &failed) {
					break
				}
				if rules > semantics.FilterBudget/c.each {
					t.Fatalf("%d rules have a result", rules)
				}
			}
			if !strings.Contains(failed.Problem, "8 MiB") {
				t.Errorf("it fails with %q", failed.Problem)
			}
			if _, err := rule.Matches(m, budget); err == nil {
				t.Error("once it is spent there is more to spend")
			}
			small := &semantics.Message{Properties: values{"text": semantics.String("aab"), "more": semantics.String("c")}}
			if _, err := rule.Matches(small, semantics.NewBudget()); err != nil {
				t.Errorf("another message: %v", err)
			}
		})
	}
}
