package filter

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// Limits of a filter.
const (
	// characters (code points) of a filter's or action's text (RULE-4), and of a LIKE pattern
	MaxTextLength = semantics.MaxRuleText
	MaxDepth      = 64 // parentheses open at the same place (SQL-18)
	// bytes of a text made by +; all properties of a message together are not larger
	MaxJoinSize = 64 << 10
)

// details.field of every error of a filter and of an action.
const (
	field       = "filter"
	actionField = "action"
)

// Filter is a parsed SQL filter. It is immutable and safe for concurrent use; make one with Parse.
type Filter struct {
	root     condition
	warnings []string
	reads    bool // through texts, which a Budget bounds
}

// Parse reads a filter of at most MaxTextLength characters (SQL-1, RULE-4, RULE-7). Parameters are the values of @name,
// keyed by name with or without the @ and without case; a value is a string, number, bool, datetime or timespan
// (SQL-16). Unused parameters are allowed.
//
// An error is FILTER_INVALID with details.field "filter" and starts "column N: ", N counting characters from 1,
// unless it is about the parameters as given.
func Parse(text string, parameters map[string]semantics.Value) (*Filter, error) {
	if err := checkLength(semantics.FilterInvalid, field, text); err != nil {
		return nil, err
	}
	return parse(text, parameters)
}

func checkLength(code semantics.Code, field, text string) error {
	n := utf8.RuneCountInString(text)
	if n <= MaxTextLength {
		return nil
	}
	return semantics.Errorf(code, "column %d: the text is %d characters long, at most %d are allowed", MaxTextLength+1,
		n, MaxTextLength).
		With(semantics.DetailField, field).
		With(semantics.DetailLimit, strconv.Itoa(MaxTextLength)).
		With(semantics.DetailActual, strconv.Itoa(n))
}

// parse is Parse for a text of any length.
func parse(text string, parameters map[string]semantics.Value) (*Filter, error) {
	p := newParser(semantics.FilterInvalid, field, text)
	if err := p.bind(parameters); err != nil {
		return nil, err
	}
	root, err := p.predicate()
	if err != nil {
		return nil, err
	}
	if p.token.kind != tokenEnd {
		return nil, p.expected("AND, OR or the end")
	}
	return &Filter{root: root, warnings: p.warnings, reads: p.reads}, nil
}

// Matches reports whether the filter selects the message: whether its truth is True (SQL-7). The error is as for
// Evaluate, and with an error the answer is false.
func (f *Filter) Matches(p Properties) (bool, error) {
	truth, err := f.root.truth(p)
	return truth == True, err
}

// Evaluate returns the truth of the filter for one message. The error is an *EvaluationError, with truth False; what
// follows from it is for the subscription to decide (RULE-8). Only newid() makes two evaluations of the same
// properties differ (SQL-18).
func (f *Filter) Evaluate(p Properties) (Truth, error) { return f.root.truth(p) }

// String returns the filter in canonical text: parsed again with the same parameters it is the same filter. It may be
// longer than what was parsed, even over MaxTextLength, so keep what the user wrote as well.
func (f *Filter) String() string { return textOf(f.root) }

// Warnings returns, one sentence each, which parts of the filter are unknown or fail for every message because of their
// constants (SQL-12). Such a filter is valid but probably not intended. Each starts "column N: ".
func (f *Filter) Warnings() []string { return slices.Clone(f.warnings) }

// EvaluationError says that a filter or an action has no result for a message (RULE-8).
type EvaluationError struct {
	Expression string // the part that failed, in canonical text
	Problem    string // what is wrong with it; never a value out of the message
}

// Error returns expression and problem. It fits a dead-letter description (DLQ-11), although canonical text may be
// several times as long as what was parsed.
func (e *EvaluationError) Error() string {
	const most = semantics.MaxDeadLetterText / 2
	return fmt.Sprintf("cannot evaluate %s: %s", semantics.ShortenTo(e.Expression, most), e.Problem)
}
