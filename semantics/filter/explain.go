package filter

// Step is the outcome of one condition inside a filter.
type Step struct {
	Depth int    // 0 is the whole filter, 1 its terms, and so on
	Text  string // the condition in canonical text
	Truth Truth  // False if Err is set
	Err   error  // an *EvaluationError, or nil
}

// Explain evaluates every condition of the filter by itself and gives the outcomes, each condition before its terms, in
// the order they are written. Unlike Evaluate it also looks at terms that do not count any more, so one may fail although
// the filter does not. It is meant for people who test a rule, not for the way of a message.
func (f *Filter) Explain(p Properties) []Step { return explain(nil, f.root, 0, p) }

func explain(steps []Step, c condition, depth int, p Properties) []Step {
	truth, err := c.truth(p)
	steps = append(steps, Step{Depth: depth, Text: textOf(c), Truth: truth, Err: err})
	for _, term := range terms(c) {
		steps = explain(steps, term, depth+1, p)
	}
	return steps
}

// terms gives the conditions a condition is made of.
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
