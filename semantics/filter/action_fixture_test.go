package filter_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// effect is an action and what it changes in the order: "qty int32 6", "sys.Label x", "-color" for what it removes,
// divided by "; " and sorted; or E.
type effect struct{ action, want string }

// onOrder checks effects on the order as it was sent.
func onOrder(t *testing.T, parameters values, effects []effect) {
	t.Helper()
	for _, e := range effects {
		m := order().Message
		if got := effectOf(t, e.action, parameters, &m); got != e.want {
			t.Errorf("%s\n changes: %s\n want:    %s", e.action, got, e.want)
		}
	}
}

// effectOf applies an action as it is and in canonical text, checks that both do the same and that the message stays as
// it was and the copy is valid, and tells what changed.
func effectOf(t *testing.T, action string, parameters values, m *semantics.Message) string {
	t.Helper()
	a := parseAction(t, action, parameters)
	if a == nil {
		return "nothing"
	}
	before := clone(m)
	got := outcomeOf(t, a, m)
	if !reflect.DeepEqual(before, m) {
		t.Errorf("%s changes the original", action)
	}
	again := parseAction(t, a.String(), parameters)
	if second := outcomeOf(t, again, m); second != got && !strings.Contains(action, "newid") {
		t.Errorf("%s, which is %s in canonical text, gives %s after %s", a, action, second, got)
	}
	return got
}

func outcomeOf(t *testing.T, a *filter.Action, m *semantics.Message) string {
	t.Helper()
	changed, err := a.Apply(m)
	if err == nil {
		if err := changed.Validate(); err != nil && semantics.CodeOf(err) != semantics.PartitionKeyMismatch {
			t.Errorf("%s makes a message that is not valid: %v", a, err)
		}
		return difference(m, changed)
	}
	var failure *filter.EvaluationError
	if !errors.As(err, &failure) || failure.Expression == "" || failure.Problem == "" || changed != nil {
		t.Errorf("%s fails with %#v and gives %v, want a full EvaluationError and no copy", a, err, changed)
	}
	return E
}

func parseAction(t *testing.T, text string, parameters values) *filter.Action {
	t.Helper()
	a, err := filter.ParseLongAction(text, parameters)
	if err != nil {
		t.Errorf("%s does not parse: %v", text, err)
		return nil
	}
	return a
}

// clone copies a message down to its last part.
func clone(m *semantics.Message) *semantics.Message {
	c := *m
	c.Properties, c.Body = maps.Clone(m.Properties), slices.Clone(m.Body)
	if m.TimeToLive != nil {
		lifetime := *m.TimeToLive
		c.TimeToLive = &lifetime
	}
	return &c
}

// difference tells what is not the same in two messages.
func difference(before, after *semantics.Message) string {
	changes := map[string]bool{}
	was, is := fields(before), fields(after)
	for name := range was {
		if _, kept := is[name]; !kept {
			changes["-"+name] = true
		}
	}
	for name, value := range is {
		if old, had := was[name]; !had || old != value {
			changes[strings.TrimSpace(name+" "+value)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(changes)), "; ")
}

// fields gives everything a message has, by name.
func fields(m *semantics.Message) map[string]string {
	all := map[string]string{
		"sys.ContentType": m.ContentType, "sys.CorrelationId": m.CorrelationID, "sys.Label": m.Subject, "sys.MessageId": m.MessageID,
		"sys.PartitionKey": m.PartitionKey, "sys.ReplyTo": m.ReplyTo, "sys.ReplyToSessionId": m.ReplyToSessionID,
		"sys.SessionId": m.SessionID, "sys.To": m.To, "sys.ScheduledEnqueueTimeUtc": m.ScheduledAt.String(), "body": string(m.Body),
		"kind": strconv.Itoa(int(m.BodyKind)),
	}
	if m.TimeToLive != nil {
		all["sys.TimeToLive"] = m.TimeToLive.String()
	}
	for name, value := range m.Properties {
		all[name] = show(value)
	}
	return all
}

// show writes a value with its exact type.
func show(v semantics.Value) string {
	typ := v.Type().String()
	switch v.Type() {
	case semantics.TypeNull:
		return typ
	case semantics.TypeBool:
		return fmt.Sprintf("%s %v", typ, v.Bool())
	case semantics.TypeUint64:
		return fmt.Sprintf("%s %d", typ, v.Uint())
	case semantics.TypeFloat, semantics.TypeDouble:
		return fmt.Sprintf("%s %v", typ, v.Float())
	case semantics.TypeString, semantics.TypeURI, semantics.TypeDecimal, semantics.TypeUUID, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset, semantics.TypeBytes:
		return typ + " " + v.Text()
	default:
		return fmt.Sprintf("%s %d", typ, v.Int())
	}
}
