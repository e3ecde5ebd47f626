package filter

import (
	"fmt"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Explanation is what a rule does with one message, and why. It is for testing a rule.
type Explanation struct {
	Rule    string
	Matches bool
	Steps   []Step   // of the filter, the whole first
	Changes []Change // of the action, up to the statement that fails; none unless the rule matches
	// what the subscription gets: the message itself unless there is an action; nil if nothing
	Copy *semantics.Message
	// why filter or action has no result (RULE-8), or why the copy is too large (ACT-9); or nil
	Failure error
}

// Change is what one statement of an action does.
type Change struct {
	Statement     string // in canonical text
	Before, After Seen   // the property the statement is about
}

// Explain compiles a rule and shows step by step what it does with a message, which must have passed Validate and stays
// as it is. The error is that of Compile.
func Explain(r semantics.Rule, m *semantics.Message) (*Explanation, error) {
	compiled, err := compile(r)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Rule: r.Name, Steps: compiled.filter.explain(m)}
	if e.Matches, e.Failure = compiled.Matches(m, semantics.NewBudget()); !e.Matches {
		return e, nil
	}
	e.Copy = m
	if compiled.HasAction() {
		e.act(compiled, m)
	}
	return e, nil
}

// act does what rule.Act does, one statement after the other.
func (e *Explanation) act(r *rule, m *semantics.Message) {
	draft := draftOf(m, len(r.action.statements)+1)
	e.Copy = nil
	for _, s := range r.action.statements {
		before := seen(s.on(), (*live)(draft))
		if e.Failure = s.run(draft); e.Failure != nil {
			return
		}
		e.Changes = append(e.Changes, Change{Statement: textOf(s), Before: before, After: seen(s.on(), (*live)(draft))})
	}
	name := userProperty(PropertyRuleName)
	before := seen(name, (*live)(draft))
	signRule(draft, r.name)
	e.Changes = append(
		e.Changes, Change{Statement: "the name of the rule", Before: before, After: seen(name, (*live)(draft))},
	)
	if e.Failure = draft.CheckHeaders(); e.Failure == nil {
		e.Copy = draft
	}
}

// String returns the explanation as indented lines.
func (e *Explanation) String() string {
	var w strings.Builder
	fmt.Fprintf(&w, "rule %s: %s\n", e.Rule, e.verdict())
	for i, s := range e.Steps {
		isLeaf := i+1 == len(e.Steps) || e.Steps[i+1].Depth <= s.Depth
		fmt.Fprintf(&w, "  %s%-7s  %s%s\n", strings.Repeat("  ", s.Depth), s.outcome(), s.Text, s.because(isLeaf))
	}
	for _, c := range e.Changes {
		fmt.Fprintf(&w, "  %s  -- %s: %s -> %s\n", c.Statement, c.Before.Property, c.Before, c.After)
	}
	if e.Failure != nil {
		fmt.Fprintf(&w, "  %v\n", e.Failure)
	}
	return w.String()
}

func (e *Explanation) verdict() string {
	switch {
	case e.Failure != nil && e.Matches:
		return "matches, but its action fails"
	case e.Failure != nil:
		return "fails"
	case e.Matches:
		return "matches"
	default:
		return "does not match"
	}
}

func (s Step) outcome() string {
	if s.Err != nil {
		return "FAILURE"
	}
	return s.Truth.String()
}

// because returns what a step saw, and why it failed unless one of its terms has the reason.
func (s Step) because(isLeaf bool) string {
	var parts []string
	for _, seen := range s.Seen {
		parts = append(parts, seen.Property+" is "+seen.String())
	}
	if s.Err != nil && isLeaf {
		parts = append(parts, s.Err.Error())
	}
	if len(parts) == 0 {
		return ""
	}
	return "  -- " + strings.Join(parts, "; ")
}
