package client

import (
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics/filter"
)

// FilterText returns the filter of a rule as people read it.
func FilterText(r *sidebusv1.Rule) string {
	switch f := r.GetFilter().GetKind().(type) {
	case *sidebusv1.Rule_Filter_Sql:
		return f.Sql.GetExpression()
	case *sidebusv1.Rule_Filter_All:
		return "every message"
	case *sidebusv1.Rule_Filter_None:
		return "no message"
	}
	rule, err := wire.RuleOf(r)
	if err != nil || rule.Filter.Correlation == nil {
		return Absent
	}
	correlation, err := filter.CompileCorrelation(*rule.Filter.Correlation)
	if err != nil { // of a sidecar that knows more
		return Absent
	}
	return correlation.String()
}

// RuleText returns all of a rule but its name, as people read it.
func RuleText(r *sidebusv1.Rule) string {
	text := FilterText(r) + withParameters(r.GetFilter().GetSql())
	if action := r.GetAction().GetSql(); action != nil {
		text += "; " + action.GetExpression() + withParameters(action)
	}
	return OneLine(text)
}

func withParameters(sql *sidebusv1.Rule_Sql) string {
	if len(sql.GetParameters()) == 0 {
		return ""
	}
	return " with " + string(Values(sql.GetParameters()))
}
