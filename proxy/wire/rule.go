package wire

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// RulesOf translates the first rules of a subscription. An error carries the position of the invalid rule.
func RulesOf(all []*sidebusv1.Rule) ([]semantics.Rule, error) {
	rules := make([]semantics.Rule, len(all))
	for i, r := range all {
		var err error
		if rules[i], err = RuleOf(r); err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return rules, nil
}

// RuleOf translates a rule. It does not check what semantics.CompileRule checks: a rule without a filter is translated.
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
		if err := RefuseUnknown(part.field, part.from); err != nil {
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
	if err := RefuseUnknown(field, sql); err != nil {
		return nil, err
	}
	parameters, err := valuesOf(field+".parameters", sql.GetParameters())
	return &semantics.SQLText{Expression: sql.GetExpression(), Parameters: parameters}, err
}

// RuleFrom is the opposite of RuleOf.
func RuleFrom(rule semantics.Rule, warnings ...string) *sidebusv1.Rule {
	r := &sidebusv1.Rule{
		Name:      rule.Name,
		Filter:    &sidebusv1.Rule_Filter{},
		CreatedAt: TimestampFrom(rule.CreatedAt),
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
