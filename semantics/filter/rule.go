package filter

import "github.com/sidebus/sidebus/semantics"

// Compile is the semantics.CompileRule that knows the language: it refuses what can be known to be wrong with a rule
// without a message (RULE-7), and makes the rest ready for use. The name of the rule is for others to check.
func Compile(r semantics.Rule) (semantics.CompiledRule, error) {
	compiled, err := compile(r)
	if err != nil {
		return nil, err // not a rule that is nil inside
	}
	return compiled, nil
}

var _ semantics.CompileRule = Compile

// rule is a compiled rule.
type rule struct {
	name   string
	filter selector
	action *Action // nil: none
}

// selector is a filter of any kind (RULE-6).
type selector interface {
	matches(m *semantics.Message, budget *semantics.Budget) (bool, error)
	Warnings() []string
	explain(m *semantics.Message) []Step
}

func compile(r semantics.Rule) (*rule, error) {
	compiled := &rule{name: r.Name}
	var err error
	if compiled.filter, err = compileFilter(r.Filter); err != nil {
		return nil, err
	}
	if r.Action != nil {
		if compiled.action, err = ParseAction(r.Action.Expression, r.Action.Parameters); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

// compileFilter takes exactly one kind of filter (RULE-6).
func compileFilter(f semantics.RuleFilter) (selector, error) {
	kinds := 0
	for _, given := range []bool{f.All, f.None, f.Correlation != nil, f.SQL != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return nil, filterInvalid(
			"a rule has exactly one filter, this one has %d: specify all, none, correlation or sql", kinds,
		)
	case f.Correlation != nil:
		return CompileCorrelation(*f.Correlation)
	case f.SQL != nil:
		return Parse(f.SQL.Expression, f.SQL.Parameters)
	default:
		return every(f.All), nil
	}
}

func filterInvalid(format string, args ...any) *semantics.Error {
	return semantics.Errorf(semantics.FilterInvalid, format, args...).With(semantics.DetailField, field)
}

// Matches implements semantics.CompiledRule.
func (r *rule) Matches(m *semantics.Message, budget *semantics.Budget) (bool, error) {
	return r.filter.matches(m, budget)
}

// HasAction implements semantics.CompiledRule.
func (r *rule) HasAction() bool { return r.action != nil }

// Act implements semantics.CompiledRule.
func (r *rule) Act(m *semantics.Message) (*semantics.Message, error) {
	if r.action == nil {
		return m, nil
	}
	draft, err := r.action.Apply(m)
	if err != nil {
		return nil, err
	}
	signRule(draft, r.name)
	return draft, nil
}

// Warnings implements semantics.CompiledRule. Each starts with "filter: " or "action: ".
func (r *rule) Warnings() []string {
	var all []string
	for _, warning := range r.filter.Warnings() {
		all = append(all, field+": "+warning)
	}
	if r.action != nil {
		for _, warning := range r.action.warnings {
			all = append(all, actionField+": "+warning)
		}
	}
	return all
}

// every is the filter that selects all messages, or none.
type every bool

func (e every) matches(*semantics.Message, *semantics.Budget) (bool, error) { return bool(e), nil }

// Warnings has nothing to say.
func (e every) Warnings() []string { return nil }

func (f *Filter) matches(m *semantics.Message, budget *semantics.Budget) (bool, error) {
	if !f.reads || budget == nil { // the rest costs an allocation
		return f.Matches(once(m))
	}
	return f.Matches(&metered{once(m), budget})
}
