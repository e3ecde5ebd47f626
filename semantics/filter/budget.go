package filter

import "github.com/sidebus/sidebus/semantics"

// budgetSpent is the problem of an evaluation that ended because the rules looked at too much text (RULE-8).
const budgetSpent = "the rules of the topic look at more than 8 MiB of text for this message"

// metered are properties that come with a budget. Only what reads through texts, LIKE and +, asks for it.
type metered struct {
	Properties
	budget *semantics.Budget
}

// budgetOf returns the budget of an evaluation, nil if it has none.
func budgetOf(p Properties) *semantics.Budget {
	if m, ok := p.(*metered); ok {
		return m.budget
	}
	return nil
}
