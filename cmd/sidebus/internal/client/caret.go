package client

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// columnOf finds the position of a fault in an SQL text, counted in characters from 1.
var columnOf = regexp.MustCompile(`column (\d+)`)

// mostBefore is how many characters of a long text are shown before the fault, and after it.
const mostBefore = 60

// Caret returns two more lines for a message about an SQL text: the line of the text, and a caret under the column that
// the message names. It is empty if there is none.
func Caret(sql, message string) string {
	found := columnOf.FindStringSubmatch(message)
	if sql == "" || found == nil {
		return ""
	}
	column, err := strconv.Atoi(found[1])
	if length := utf8.RuneCountInString(sql); err != nil || column < 1 || column > length+1 {
		return ""
	}
	text := []rune(sql)
	before, after := text[:column-1], text[column-1:]
	for i, r := range before {
		if r == '\n' {
			return Caret(string(text[i+1:]), "column "+strconv.Itoa(column-i-1))
		}
	}
	for i, r := range after {
		if r == '\n' {
			after = after[:i]
			break
		}
	}
	lead, trail := "", ""
	if len(before) > mostBefore {
		lead, before = "...", before[len(before)-mostBefore:]
	}
	if len(after) > mostBefore {
		trail, after = "...", after[:mostBefore]
	}
	shown := lead + OneLine(string(before))
	return "\n  " + shown + OneLine(
		string(after),
	) + trail + "\n  " + strings.Repeat(
		" ", utf8.RuneCountInString(shown),
	) + "^"
}

// sqlOf returns the SQL text of a request that a failure is about, empty if it is not about one.
func sqlOf(request any, f *Failure) string {
	if r, ok := request.(*sidebusv1.ResubmitRequest); ok {
		return r.GetFilter()
	}
	var rules []*sidebusv1.Rule
	switch r := request.(type) {
	case *sidebusv1.CreateRuleRequest:
		rules = []*sidebusv1.Rule{r.GetRule()}
	case *sidebusv1.CreateSubscriptionRequest:
		rules = r.GetSubscription().GetRules()
	case *sidebusv1.EnsureSubscriptionRequest:
		rules = r.GetSubscription().GetRules()
	}
	at, _ := strconv.Atoi(f.Details[semantics.DetailIndex])
	if at < 0 || at >= len(rules) {
		return ""
	}
	switch f.Reason {
	case semantics.FilterInvalid:
		return rules[at].GetFilter().GetSql().GetExpression()
	case semantics.ActionInvalid:
		return rules[at].GetAction().GetSql().GetExpression()
	default:
		return ""
	}
}

// isSend reports whether a request is to bring messages into an entity, which may then be created first.
func isSend(request any) bool {
	_, ok := request.(*sidebusv1.SendRequest)
	return ok
}
