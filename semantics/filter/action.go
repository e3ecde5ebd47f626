package filter

import (
	"maps"

	"github.com/sidebus/sidebus/semantics"
)

// PropertyRuleName is the application property in which a copy that an action made carries the name of the rule
// (TOPIC-6).
const PropertyRuleName = "RuleName"

// Action is a parsed SQL action: statements that change a copy of a message, in order (ACT-1, ACT-2). It is immutable
// and safe for concurrent use; make one with ParseAction.
type Action struct {
	statements []statement
	warnings   []string
}

// ParseAction reads an action of at most MaxTextLength characters and semantics.MaxActionExpressions statements (ACT-1,
// RULE-4, RULE-7). Parameters are as for Parse. An error is ACTION_INVALID with details.field "action" and starts
// "column N: " unless it is about the parameters as given.
func ParseAction(text string, parameters map[string]semantics.Value) (*Action, error) {
	if err := checkLength(semantics.ActionInvalid, actionField, text); err != nil {
		return nil, err
	}
	return parseAction(text, parameters)
}

// parseAction is ParseAction for a text of any length.
func parseAction(text string, parameters map[string]semantics.Value) (*Action, error) {
	p := newParser(semantics.ActionInvalid, actionField, text)
	if err := p.bind(parameters); err != nil {
		return nil, err
	}
	statements, err := p.statements()
	if err != nil {
		return nil, err
	}
	return &Action{statements: statements, warnings: p.warnings}, nil
}

// Apply returns the copy that the action makes of a message, which must have passed Validate and stays as it is; the
// copy has the same Body. The error is an *EvaluationError, without a copy (RULE-8).
//
// The copy keeps all rules of a message but two. Its headers may be over their limit, see
// semantics.Message.CheckHeaders. And its SessionID and PartitionKey may differ, because the partition was chosen
// before (ACT-8). It may have no MessageID.
func (a *Action) Apply(m *semantics.Message) (*semantics.Message, error) {
	draft := draftOf(m, len(a.statements)+1)
	for _, s := range a.statements {
		if err := s.run(draft); err != nil {
			return nil, err
		}
	}
	return draft, nil
}

// draftOf copies a message, all except the bytes of its Body, with capacity for some more properties.
func draftOf(m *semantics.Message, more int) *semantics.Message {
	draft := *m
	draft.Properties = make(map[string]semantics.Value, len(m.Properties)+more)
	maps.Copy(draft.Properties, m.Properties)
	if m.TimeToLive != nil {
		lifetime := *m.TimeToLive
		draft.TimeToLive = &lifetime
	}
	return &draft
}

// signRule puts the name of the rule into its copy, whatever the action did to the property (TOPIC-6).
func signRule(draft *semantics.Message, rule string) {
	if name, _, ok := lookUp(draft.Properties, fold(PropertyRuleName)); ok {
		delete(draft.Properties, name) // which may differ in case
	}
	draft.Properties[PropertyRuleName] = semantics.String(rule)
}

// String returns the action in canonical text: parsed again with the same parameters it is the same action. It may be
// longer than what was parsed, even over MaxTextLength.
func (a *Action) String() string {
	var w writer
	for i, s := range a.statements {
		if i > 0 {
			w.add("; ")
		}
		s.write(&w)
	}
	return w.text.String()
}

// Warnings returns, one sentence each, what is valid but probably not intended. Each starts "column N: ".
func (a *Action) Warnings() []string { return append([]string(nil), a.warnings...) }
