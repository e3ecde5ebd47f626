package amqp

import (
	"context"
	"maps"
	"slices"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/internal/paging"
	"github.com/sidebus/sidebus/semantics"
)

// Descriptors of the parts of a rule.
const (
	ruleDescription   = uint64(0x0000013700000004)
	emptyAction       = uint64(0x0000013700000005)
	sqlAction         = uint64(0x0000013700000006)
	sqlFilter         = uint64(0x0000001370000006) // com.microsoft:sql-filter:list
	trueFilter        = uint64(0x0000001370000007)
	falseFilter       = uint64(0x0000001370000008)
	correlationFilter = uint64(0x0000001370000009)

	compatibility = int32(20) // level of the SQL
)

// correlationFields are the fields of a correlation filter under the names of a request, in the order of an answer.
func correlationFields(f *semantics.CorrelationFilter) []struct {
	name string
	at   **string
} {
	return []struct {
		name string
		at   **string
	}{
		{"correlation-id", &f.CorrelationID},
		{"message-id", &f.MessageID},
		{"to", &f.To},
		{"reply-to", &f.ReplyTo},
		{"label", &f.Subject},
		{"session-id", &f.SessionID},
		{"reply-to-session-id", &f.ReplyToSessionID},
		{"content-type", &f.ContentType},
	}
}

func (m *management) addRule(ctx context.Context, args *arguments) (codec.Map, error) {
	name := args.text("rule-name")
	description, ok := args.Get("rule-description").(codec.Map)
	if name == nil || !ok {
		return nil, semantics.InvalidField("rule", "needs rule-name and rule-description")
	}
	rule := semantics.Rule{Name: *name}
	sql, hasSQL := description.Get("sql-filter").(codec.Map)
	correlation, hasCorrelation := description.Get("correlation-filter").(codec.Map)
	switch {
	case hasSQL:
		expression, _ := codec.Text(sql.Get("expression"))
		rule.Filter.SQL = &semantics.SQLText{Expression: expression}
	case hasCorrelation:
		var filter semantics.CorrelationFilter
		for _, one := range correlationFields(&filter) {
			*one.at = (&arguments{Map: correlation}).text(one.name)
		}
		properties, _ := correlation.Get("properties").(codec.Map)
		var err error
		if filter.Properties, err = convert.Properties(properties); err != nil {
			return nil, err
		}
		rule.Filter.Correlation = &filter
	default:
		return nil, semantics.InvalidField("rule-description", "needs sql-filter or correlation-filter")
	}
	if action, ok := description.Get("sql-rule-action").(codec.Map); ok {
		if expression, ok := codec.Text(action.Get("expression")); ok && expression != "" {
			rule.Action = &semantics.SQLText{Expression: expression}
		}
	}
	if _, _, err := m.connection.server.Broker.CreateRule(ctx, m.at.path, rule); err != nil {
		return nil, err
	}
	return codec.Map{}, nil
}

func (m *management) removeRule(ctx context.Context, args *arguments) (codec.Map, error) {
	name := args.text("rule-name")
	if name == nil {
		return nil, semantics.InvalidField("rule-name", "must be a string")
	}
	if err := m.connection.server.Broker.DeleteRule(ctx, m.at.path, *name); err != nil {
		return nil, err
	}
	return codec.Map{}, nil
}

// listRules returns a page of the rules.
func (m *management) listRules(ctx context.Context, args *arguments) (codec.Map, error) {
	skip, err := args.count("skip", 0)
	if err != nil {
		return nil, err
	}
	top, err := args.count("top", semantics.MaxPageSize)
	if err != nil {
		return nil, err
	}
	rules, err := paging.Window(skip, top, func(token string) ([]semantics.Rule, string, error) {
		return m.connection.server.Broker.ListRules(ctx, m.at.path, semantics.MaxPageSize, token)
	})
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	list := make(codec.List, len(rules))
	for i, rule := range rules {
		list[i] = codec.Map{codec.Entry("rule-description", encodeRule(rule))}
	}
	return codec.Map{codec.Entry("rules", list)}, nil
}

func described(code uint64, fields ...any) codec.Described {
	return codec.Described{Descriptor: code, Value: codec.List(fields)}
}

func encodeRule(rule semantics.Rule) codec.Described {
	action := described(emptyAction)
	if rule.Action != nil {
		action = described(sqlAction, rule.Action.Expression, compatibility)
	}
	return described(ruleDescription, encodeFilter(rule.Filter), action, rule.Name, convert.Timestamp(rule.CreatedAt))
}

func encodeFilter(filter semantics.RuleFilter) codec.Described {
	switch {
	case filter.SQL != nil:
		return described(sqlFilter, filter.SQL.Expression, compatibility)
	case filter.Correlation != nil:
		var fields codec.List
		for _, one := range correlationFields(filter.Correlation) {
			var value any
			if *one.at != nil {
				value = **one.at
			}
			fields = append(fields, value)
		}
		properties := codec.Map{}
		for _, name := range slices.Sorted(maps.Keys(filter.Correlation.Properties)) {
			properties = append(properties, codec.Entry(name, convert.FromValue(filter.Correlation.Properties[name])))
		}
		return codec.Described{Descriptor: correlationFilter, Value: append(fields, properties)}
	case filter.None:
		return described(falseFilter)
	default:
		return described(trueFilter)
	}
}
