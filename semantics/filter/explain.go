package filter

import "github.com/sidebus/sidebus/semantics"

// Step is the outcome of one condition inside a filter.
type Step struct {
	Depth int    // 0 is the whole filter, 1 its terms, and so on
	Text  string // the condition in canonical text
	Truth Truth  // False if Err is set
	Err   error  // an *EvaluationError, or nil
	Seen  []Seen // the properties the condition asks for, for one that is not made of others
}

// Explain evaluates every condition of the filter on its own and returns the outcomes, each condition before its terms,
// in the order they are written. Unlike Evaluate it also looks at terms that do not count any more, so one may fail
// although the filter does not. It is for testing a rule, not for deliveries.
func (f *Filter) Explain(p Properties) []Step { return explain(nil, f.root, 0, p) }

func (f *Filter) explain(m *semantics.Message) []Step { return f.Explain(Of(m)) }

func explain(steps []Step, c condition, depth int, p Properties) []Step {
	truth, err := c.truth(p)
	step := Step{Depth: depth, Text: textOf(c), Truth: truth, Err: err}
	parts := terms(c)
	if parts == nil {
		step.Seen = seenBy(c, p)
	}
	steps = append(steps, step)
	for _, term := range parts {
		steps = explain(steps, term, depth+1, p)
	}
	return steps
}

// terms returns the conditions a condition is made of.
func terms(c condition) []condition {
	switch c := c.(type) {
	case *or:
		return c.terms
	case *and:
		return c.terms
	case *not:
		return []condition{c.term}
	default:
		return nil
	}
}

// Explain returns for each field of the filter whether the message matches it. The first step is the whole filter.
func (c *Correlation) Explain(m *semantics.Message) []Step {
	whole := Step{Text: c.String(), Truth: truthOf(c.Matches(m))}
	steps := []Step{whole}
	for i := range c.fields {
		f := &c.fields[i]
		steps = append(steps, Step{
			Depth: 1, Text: f.String(), Truth: truthOf(f.holds(m)),
			Seen: []Seen{seen(&property{system: f.system}, (*live)(m))},
		})
	}
	for i := range c.properties {
		e := &c.properties[i]
		steps = append(
			steps,
			Step{Depth: 1, Text: e.String(), Truth: truthOf(e.holds(m)), Seen: []Seen{seen(e.property, (*live)(m))}},
		)
	}
	return steps
}

func (c *Correlation) explain(m *semantics.Message) []Step { return c.Explain(m) }

func (e every) explain(*semantics.Message) []Step {
	if e {
		return []Step{{Text: "every message", Truth: True}}
	}
	return []Step{{Text: "no message", Truth: False}}
}
