package grpcapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// filterText and actionText return a filter and an action as text for the differences of an ensure. Equal texts mean
// equal filters and actions.
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

// valueTexts returns values as texts by name. Names of parameters and properties are not case-sensitive, and the name
// of a parameter may begin with its @.
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
