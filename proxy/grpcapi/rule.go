package grpcapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// rulesOf translates the first rules of a subscription. A failure carries the position of the bad one.
func rulesOf(all []*sidebusv1.Rule) ([]semantics.Rule, error) {
	rules := make([]semantics.Rule, len(all))
	for i, r := range all {
		var err error
		if rules[i], err = RuleOf(r); err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return rules, nil
}

// RuleOf translates a rule and checks nothing that semantics.CompileRule checks: one without a filter has none.
func RuleOf(r *sidebusv1.Rule) (semantics.Rule, error) {
	rule := semantics.Rule{Name: r.GetName()}
	for _, part := range []struct {
		field string
		from  proto.Message
	}{
		{"rule", r},
		{"filter", r.GetFilter()},
		{"filter.correlation", r.GetFilter().GetCorrelation()},
		{"action", r.GetAction()},
	} {
		if err := refuseUnknown(part.field, part.from); err != nil {
			return rule, err
		}
	}
	var err error
	switch f := r.GetFilter().GetKind().(type) {
	case *sidebusv1.Rule_Filter_All:
		rule.Filter.All = true
	case *sidebusv1.Rule_Filter_None:
		rule.Filter.None = true
	case *sidebusv1.Rule_Filter_Correlation:
		rule.Filter.Correlation, err = correlationOf(f.Correlation)
	case *sidebusv1.Rule_Filter_Sql:
		rule.Filter.SQL, err = sqlOf("filter.sql", f.Sql)
	}
	if err == nil && r.GetAction() != nil {
		rule.Action, err = sqlOf("action.sql", r.GetAction().GetSql())
	}
	return rule, err
}

func correlationOf(c *sidebusv1.Rule_Correlation) (*semantics.CorrelationFilter, error) {
	properties, err := valuesOf("filter.correlation.properties", c.GetProperties())
	return &semantics.CorrelationFilter{
		ContentType: c.ContentType, CorrelationID: c.CorrelationId, MessageID: c.MessageId, ReplyTo: c.ReplyTo,
		ReplyToSessionID: c.ReplyToSessionId, SessionID: c.SessionId, Subject: c.Subject, To: c.To, //nolint:protogetter // nil is not given
		Properties: properties,
	}, err
}

func sqlOf(field string, sql *sidebusv1.Rule_Sql) (*semantics.SQLText, error) {
	if err := refuseUnknown(field, sql); err != nil {
		return nil, err
	}
	parameters, err := valuesOf(field+".parameters", sql.GetParameters())
	return &semantics.SQLText{Expression: sql.GetExpression(), Parameters: parameters}, err
}

// ruleFrom is the opposite of RuleOf.
func ruleFrom(rule semantics.Rule, warnings ...string) *sidebusv1.Rule {
	r := &sidebusv1.Rule{
		Name:      rule.Name,
		Filter:    &sidebusv1.Rule_Filter{},
		CreatedAt: timestamp(rule.CreatedAt),
		Warnings:  warnings,
	}
	switch f := rule.Filter; {
	case f.All:
		r.Filter.Kind = &sidebusv1.Rule_Filter_All{All: &sidebusv1.Rule_All{}}
	case f.None:
		r.Filter.Kind = &sidebusv1.Rule_Filter_None{None: &sidebusv1.Rule_None{}}
	case f.SQL != nil:
		r.Filter.Kind = &sidebusv1.Rule_Filter_Sql{Sql: sqlFrom(f.SQL)}
	case f.Correlation != nil:
		c := f.Correlation
		r.Filter.Kind = &sidebusv1.Rule_Filter_Correlation{Correlation: &sidebusv1.Rule_Correlation{
			ContentType: c.ContentType, CorrelationId: c.CorrelationID, MessageId: c.MessageID, ReplyTo: c.ReplyTo,
			ReplyToSessionId: c.ReplyToSessionID, SessionId: c.SessionID, Subject: c.Subject, To: c.To,
			Properties: valuesFrom(c.Properties),
		}}
	}
	if rule.Action != nil {
		r.Action = &sidebusv1.Rule_Action{Sql: sqlFrom(rule.Action)}
	}
	return r
}

func sqlFrom(sql *semantics.SQLText) *sidebusv1.Rule_Sql {
	return &sidebusv1.Rule_Sql{Expression: sql.Expression, Parameters: valuesFrom(sql.Parameters)}
}

// filterText and actionText show a filter and an action to who wonders what differs. Equal texts mean equal filters and
// actions.
func filterText(f semantics.RuleFilter) string {
	switch {
	case f.All:
		return "all"
	case f.None:
		return "none"
	case f.SQL != nil:
		return "sql: " + sqlText(f.SQL)
	case f.Correlation != nil:
		return "correlation: " + correlationText(f.Correlation)
	default:
		return ""
	}
}

func actionText(action *semantics.SQLText) string {
	if action == nil {
		return "none"
	}
	return "sql: " + sqlText(action)
}

func ruleText(rule semantics.Rule) string {
	if rule.Action == nil {
		return filterText(rule.Filter)
	}
	return filterText(rule.Filter) + "; action " + actionText(rule.Action)
}

func sqlText(sql *semantics.SQLText) string {
	if len(sql.Parameters) == 0 {
		return sql.Expression
	}
	return sql.Expression + " with " + strings.Join(valueTexts("@", sql.Parameters), ", ")
}

func correlationText(c *semantics.CorrelationFilter) string {
	var parts []string
	for _, field := range []struct {
		name  string
		value *string
	}{
		{"contentType", c.ContentType},
		{"correlationId", c.CorrelationID},
		{"messageId", c.MessageID},
		{"replyTo", c.ReplyTo},
		{"replyToSessionId", c.ReplyToSessionID},
		{"sessionId", c.SessionID},
		{"subject", c.Subject},
		{"to", c.To},
	} {
		if field.value != nil {
			parts = append(parts, fmt.Sprintf("%s = %q", field.name, *field.value))
		}
	}
	return strings.Join(append(parts, valueTexts("properties.", c.Properties)...), ", ")
}

// valueTexts shows values by name. The names of parameters and properties have no case, and a parameter may be given
// with its @.
func valueTexts(before string, values map[string]semantics.Value) []string {
	byName := map[string]semantics.Value{}
	for name, value := range values {
		byName[before+semantics.Fold(strings.TrimPrefix(name, "@"))] = value
	}
	texts := make([]string, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		texts = append(texts, name+" = "+valueText(byName[name]))
	}
	return texts
}

func valueText(v semantics.Value) string {
	switch v.Type() {
	case semantics.TypeNull:
		return "null"
	case semantics.TypeString:
		return strconv.Quote(v.Text())
	case semantics.TypeBool:
		return strconv.FormatBool(v.Bool())
	case semantics.TypeUint64:
		return fmt.Sprintf("%s %d", v.Type(), v.Uint())
	case semantics.TypeFloat, semantics.TypeDouble:
		return fmt.Sprintf("%s %v", v.Type(), v.Float())
	case semantics.TypeDecimal,
		semantics.TypeUUID,
		semantics.TypeURI,
		semantics.TypeDateTime,
		semantics.TypeDateTimeOffset,
		semantics.TypeBytes:
		return fmt.Sprintf("%s %q", v.Type(), v.Text())
	default:
		return fmt.Sprintf("%s %d", v.Type(), v.Int())
	}
}
