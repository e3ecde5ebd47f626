package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// Rules with large parameters come in more pages, and none is left out.
func testRULE_9_LargeRulesInPages(t *testing.T, h *fixture) {
	h.createNews()
	large := map[string]semantics.Value{"p": semantics.String(strings.Repeat("x", 30_000)), "q": semantics.String(strings.Repeat("y", 30_000))}
	const all = 90
	for i := range all {
		h.createRule(eu, semantics.Rule{
			Name:   fmt.Sprintf("large%02d", i),
			Filter: semantics.RuleFilter{SQL: &semantics.SQLText{Expression: "a = @p OR a = @q", Parameters: large}},
		})
	}
	seen, token := 0, ""
	for {
		rules, next, err := h.broker.ListRules(t.Context(), eu.Path, 100, token)
		h.ok(err)
		bytes := 0
		for _, rule := range rules {
			if sql := rule.Filter.SQL; sql != nil && sql.Parameters != nil {
				seen, bytes = seen+1, bytes+60_000
			}
		}
		if bytes > semantics.MaxAnswerBytes {
			t.Fatalf("a page has %d bytes", bytes)
		}
		if token = next; token == "" {
			break
		}
	}
	h.same(seen, all)
}
