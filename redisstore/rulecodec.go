package redisstore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

// ruleLetter returns the letter for what a rule counts as (RULE-4): see lua/lib/topic/rule_member.lua.
func ruleLetter(rule semantics.Rule) string {
	switch {
	case rule.Filter.SQL != nil:
		return "s"
	case rule.Filter.Correlation != nil:
		return "c"
	default:
		return "o"
	}
}

// encodeRule returns the stored form of a rule, which the scripts do not parse. The time is not in it.
func encodeRule(rule semantics.Rule) (string, error) {
	stored := storagev1.Rule{Name: rule.Name, Action: encodeText(rule.Action)}
	switch f := rule.Filter; {
	case f.SQL != nil:
		stored.Filter, stored.Sql = storagev1.Rule_SQL, encodeText(f.SQL)
	case f.Correlation != nil:
		stored.Filter, stored.Correlation = storagev1.Rule_CORRELATION, encodeCorrelation(f.Correlation)
	case f.None:
		stored.Filter = storagev1.Rule_NONE
	default:
		stored.Filter = storagev1.Rule_ALL
	}
	blob, err := proto.Marshal(&stored)
	if err != nil {
		return "", &semantics.Error{Code: semantics.Internal, Message: "rule cannot be encoded", Err: err}
	}
	return string(blob), nil
}

func encodeText(text *semantics.SQLText) *storagev1.SqlText {
	if text == nil {
		return nil
	}
	return &storagev1.SqlText{Expression: text.Expression, Parameters: encodeProperties(text.Parameters)}
}

func encodeCorrelation(f *semantics.CorrelationFilter) *storagev1.CorrelationFilter {
	return &storagev1.CorrelationFilter{
		ContentType: f.ContentType, CorrelationId: f.CorrelationID, MessageId: f.MessageID, ReplyTo: f.ReplyTo,
		ReplyToSessionId: f.ReplyToSessionID, SessionId: f.SessionID, Subject: f.Subject, To: f.To,
		Properties: encodeProperties(f.Properties),
	}
}

func decodeRule(blob string) (semantics.Rule, error) {
	var stored storagev1.Rule
	if err := proto.Unmarshal([]byte(blob), &stored); err != nil {
		return semantics.Rule{}, unreadableRule(err)
	}
	rule := semantics.Rule{Name: stored.Name}
	var err1, err2 error
	switch stored.Filter {
	case storagev1.Rule_ALL:
		rule.Filter.All = true
	case storagev1.Rule_NONE:
		rule.Filter.None = true
	case storagev1.Rule_CORRELATION:
		rule.Filter.Correlation, err1 = decodeCorrelation(stored.Correlation)
	case storagev1.Rule_SQL:
		rule.Filter.SQL, err1 = decodeText(stored.Sql)
	default:
		err1 = unreadableRule(fmt.Errorf("unknown filter, written by a newer version?"))
	}
	rule.Action, err2 = decodeText(stored.Action)
	return rule, cmp.Or(err1, err2)
}

func decodeText(stored *storagev1.SqlText) (*semantics.SQLText, error) {
	if stored == nil {
		return nil, nil
	}
	parameters, err := decodeProperties(stored.Parameters)
	return &semantics.SQLText{Expression: stored.Expression, Parameters: parameters}, err
}

func decodeCorrelation(stored *storagev1.CorrelationFilter) (*semantics.CorrelationFilter, error) {
	properties, err := decodeProperties(stored.GetProperties())
	if stored == nil {
		return &semantics.CorrelationFilter{}, err
	}
	return &semantics.CorrelationFilter{
		ContentType: stored.ContentType, CorrelationID: stored.CorrelationId, MessageID: stored.MessageId,
		ReplyTo:          stored.ReplyTo,
		ReplyToSessionID: stored.ReplyToSessionId, SessionID: stored.SessionId, Subject: stored.Subject, To: stored.To,
		Properties: properties,
	}, err
}

func unreadableRule(err error) error {
	return &semantics.Error{Code: semantics.Internal, Message: "a stored rule cannot be read", Err: err}
}

// readSubscriptions reads name and flags (lua/lib/topic/route_flags.lua) of each, and sorts them.
func readSubscriptions(r *reply) []semantics.Route {
	var routes []semantics.Route
	for r.more() {
		name, text := r.text(), r.text()
		flags, incarnation, isOfPartition := strings.Cut(text, ":")
		number, err := strconv.ParseInt(incarnation, 10, 64)
		if (len(flags) != 2 || isOfPartition && err != nil) && r.err == nil {
			r.err = fmt.Errorf("script %s: subscription %q has the flags %q", r.script, name, text)
			return nil
		}
		if r.err == nil && name != semantics.UnmatchedSubscription {
			routes = append(routes, semantics.Route{
				Subscription: name, RequiresSession: flags[0] == '1', DeadLettersFailures: flags[1] == '1',
				Incarnation: number,
			})
		}
	}
	slices.SortFunc(routes, func(a, b semantics.Route) int { return cmp.Compare(a.Subscription, b.Subscription) })
	return routes
}
