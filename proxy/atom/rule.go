package atom

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// correlationFields are the fields of a correlation filter under the names of their elements, in the order of Service
// Bus.
func correlationFields(f *semantics.CorrelationFilter) []struct {
	name string
	at   **string
} {
	return []struct {
		name string
		at   **string
	}{
		{"CorrelationId", &f.CorrelationID},
		{"MessageId", &f.MessageID},
		{"To", &f.To},
		{"ReplyTo", &f.ReplyTo},
		{"Label", &f.Subject},
		{"SessionId", &f.SessionID},
		{"ReplyToSessionId", &f.ReplyToSessionID},
		{"ContentType", &f.ContentType},
	}
}

func (x *exchange) getRule(ctx context.Context) (int, []byte, error) {
	rule, err := x.Broker.GetRule(ctx, x.route.path, x.route.rule)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, x.single(x.ruleResource(rule)), nil
}

func (x *exchange) ruleResource(rule semantics.Rule) resource {
	topic, name, _ := semantics.SplitSubscription(x.route.path)
	return resource{
		id: semantics.SubscriptionPath(topic, name) + "/Rules/" + rule.Name, title: rule.Name,
		created: rule.CreatedAt, updated: rule.CreatedAt, describe: func(d *document) { writeRule(d, rule) },
	}
}

// putRule creates a rule, or replaces one.
func (x *exchange) putRule(ctx context.Context) (int, []byte, error) {
	description, isUpdate, err := x.read()
	if err != nil {
		return 0, nil, err
	}
	if description.name != "RuleDescription" {
		return 0, nil, semantics.InvalidField("entry", "must have a RuleDescription")
	}
	rule, err := parseRule(description)
	if err != nil {
		return 0, nil, err
	}
	rule.Name = x.route.rule
	status, put := http.StatusCreated, x.Broker.CreateRule
	if isUpdate {
		status, put = http.StatusOK, x.Broker.ReplaceRule
	}
	rule, _, err = put(ctx, x.route.path, rule)
	if err != nil {
		return 0, nil, err
	}
	return status, x.single(x.ruleResource(rule)), nil
}

func (x *exchange) deleteRule(ctx context.Context) (int, []byte, error) {
	return http.StatusOK, nil, x.Broker.DeleteRule(ctx, x.route.path, x.route.rule)
}

func (x *exchange) listRules(ctx context.Context) (int, []byte, error) {
	return list(x, "Rules", func(token string) ([]semantics.Rule, string, error) {
		return x.Broker.ListRules(ctx, x.route.path, semantics.MaxPageSize, token)
	}, func(rule semantics.Rule) (resource, error) { return x.ruleResource(rule), nil })
}

// firstRules returns the rule that a new subscription begins with, none for the default one (RULE-1).
func firstRules(description *element) ([]semantics.Rule, error) {
	first := description.child("DefaultRuleDescription")
	if first == nil {
		return nil, nil
	}
	rule, err := parseRule(first)
	if rule.Name == "" {
		rule.Name = semantics.DefaultRule
	}
	return []semantics.Rule{rule}, err
}

// parseRule returns the rule of a description.
func parseRule(description *element) (rule semantics.Rule, err error) {
	rule.Name, _ = description.textOf("Name")
	if rule.Filter, err = parseFilter(description.child("Filter")); err != nil {
		return rule, err
	}
	action := description.child("Action")
	if action == nil || action.kind == "EmptyRuleAction" {
		return rule, nil
	}
	if action.kind != "SqlRuleAction" {
		return rule, semantics.InvalidField("Action", "has the type %q, which is not supported", semantics.Shorten(action.kind))
	}
	text, err := parseSQL(action)
	if text.Expression != "" {
		rule.Action = text
	}
	return rule, err
}

// parseFilter returns a filter. None is that of all messages.
func parseFilter(filter *element) (parsed semantics.RuleFilter, err error) {
	if filter == nil {
		return semantics.RuleFilter{All: true}, nil
	}
	switch filter.kind {
	case "TrueFilter":
		return semantics.RuleFilter{All: true}, nil
	case "FalseFilter":
		return semantics.RuleFilter{None: true}, nil
	case "SqlFilter":
		parsed.SQL, err = parseSQL(filter)
		return parsed, err
	case "CorrelationFilter":
		parsed.Correlation = &semantics.CorrelationFilter{}
		for _, one := range correlationFields(parsed.Correlation) {
			if text, isGiven := filter.textOf(one.name); isGiven {
				*one.at = &text
			}
		}
		parsed.Correlation.Properties, err = parseValues(filter.child("Properties"))
		return parsed, err
	default:
		return parsed, semantics.InvalidField(
			"Filter", "has the type %q, which is not supported", semantics.Shorten(filter.kind),
		)
	}
}

func parseSQL(e *element) (text *semantics.SQLText, err error) {
	text = &semantics.SQLText{}
	text.Expression, _ = e.textOf("SqlExpression")
	text.Parameters, err = parseValues(e.child("Parameters"))
	return text, err
}

// writeRule writes the description of a rule. There always is an action: the SDK for Go needs it.
func writeRule(d *document, rule semantics.Rule) {
	d.description("RuleDescription", func() {
		writeFilter(d, rule.Filter)
		if rule.Action == nil {
			d.text("Action", "", "i:type", "EmptyRuleAction")
		} else {
			writeSQL(d, "Action", "SqlRuleAction", *rule.Action)
		}
		d.time("CreatedAt", rule.CreatedAt)
		d.text("Name", rule.Name)
	})
}

// writeFilter writes a filter. Those of all and of no messages have an expression: the SDK for JavaScript knows no
// others.
func writeFilter(d *document, filter semantics.RuleFilter) {
	switch {
	case filter.SQL != nil:
		writeSQL(d, "Filter", "SqlFilter", *filter.SQL)
	case filter.Correlation != nil:
		d.element("Filter", func() {
			for _, one := range correlationFields(filter.Correlation) {
				if *one.at != nil {
					d.text(one.name, **one.at)
				}
			}
			writeValues(d, "Properties", filter.Correlation.Properties)
		}, "i:type", "CorrelationFilter")
	case filter.None:
		writeSQL(d, "Filter", "FalseFilter", semantics.SQLText{Expression: "1=0"})
	default:
		writeSQL(d, "Filter", "TrueFilter", semantics.SQLText{Expression: "1=1"})
	}
}

func writeSQL(d *document, name, kind string, text semantics.SQLText) {
	d.element(name, func() {
		d.text("SqlExpression", text.Expression)
		d.text("CompatibilityLevel", "20")
		writeValues(d, "Parameters", text.Parameters)
	}, "i:type", kind)
}

// keyValue is the element of one value and its name.
const keyValue = "KeyValueOfstringanyType"

// writeValues writes named values, if there are any.
func writeValues(d *document, name string, values map[string]semantics.Value) {
	if len(values) == 0 {
		return
	}
	d.element(name, func() {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			d.element(keyValue, func() {
				d.text("Key", key)
				kind, text := formatValue(values[key])
				d.text("Value", text, "i:type", "d6p1:"+kind, "xmlns:d6p1", typesNamespace)
			})
		}
	})
}

// parseValues returns named values. e may be nil.
func parseValues(e *element) (map[string]semantics.Value, error) {
	if e == nil || len(e.children) == 0 {
		return nil, nil
	}
	values := map[string]semantics.Value{}
	for _, pair := range e.children {
		key, hasKey := pair.textOf("Key")
		value := pair.child("Value")
		if pair.name != keyValue || !hasKey || value == nil {
			return nil, semantics.InvalidField(e.name, "must have elements %s with Key and Value", keyValue)
		}
		parsed, err := parseValue(value.kind, value.text)
		if err != nil {
			return nil, err
		}
		values[key] = parsed
	}
	return values, nil
}
