package semantics_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

func TestMSG_ValidateMessage(t *testing.T) {
	t.Parallel()
	ttl := func(d time.Duration) *time.Duration { return &d }
	property := func(name string, v semantics.Value) map[string]semantics.Value {
		return map[string]semantics.Value{name: v}
	}
	long, kilo32 := strings.Repeat("x", 128), make([]byte, 32<<10)
	cases := []struct {
		name string
		m    semantics.Message
		want semantics.Code
	}{
		{"empty message", semantics.Message{}, ""},
		{"longest ids", semantics.Message{MessageID: long, SessionID: long, PartitionKey: long, CorrelationID: long, ReplyToSessionID: long}, ""},
		{"id over", semantics.Message{MessageID: long + "x"}, semantics.InvalidArgument},
		{"session over", semantics.Message{SessionID: long + "x"}, semantics.InvalidArgument},
		{"id counts UTF-16", semantics.Message{MessageID: strings.Repeat("\U0001D11E", 64)}, ""},
		{"id over in UTF-16", semantics.Message{MessageID: strings.Repeat("\U0001D11E", 65)}, semantics.InvalidArgument},
		{"id no UTF-8", semantics.Message{MessageID: "\xff"}, semantics.InvalidArgument},
		{"subject no UTF-8", semantics.Message{Subject: "\xff"}, semantics.InvalidArgument},
		{"subject may be long", semantics.Message{Subject: strings.Repeat("x", 1000)}, ""},
		{"equal keys", semantics.Message{SessionID: "a", PartitionKey: "a"}, ""},
		{"keys differ", semantics.Message{SessionID: "a", PartitionKey: "A"}, semantics.PartitionKeyMismatch},
		{"shortest ttl", semantics.Message{TimeToLive: ttl(time.Millisecond)}, ""},
		{"ttl below", semantics.Message{TimeToLive: ttl(time.Millisecond - 1)}, semantics.ArgumentOutOfRange},
		{"ttl zero", semantics.Message{TimeToLive: ttl(0)}, semantics.ArgumentOutOfRange},
		{"ttl negative", semantics.Message{TimeToLive: ttl(-time.Hour)}, semantics.ArgumentOutOfRange},
		{"ttl never", semantics.Message{TimeToLive: ttl(semantics.Never)}, ""},
		{"property", semantics.Message{Properties: property(long, semantics.Null())}, ""},
		{"property without name", semantics.Message{Properties: property("", semantics.Null())}, semantics.InvalidArgument},
		{"property name over", semantics.Message{Properties: property(long+"x", semantics.Null())}, semantics.InvalidArgument},
		{"property name no UTF-8", semantics.Message{Properties: property("\xff", semantics.Null())}, semantics.InvalidArgument},
		{"property text no UTF-8", semantics.Message{Properties: property("a", semantics.String("\xff"))}, semantics.InvalidArgument},
		{"property bytes need none", semantics.Message{Properties: property("a", semantics.Bytes([]byte{0xff}))}, ""},
		{
			"property names by case",
			semantics.Message{Properties: map[string]semantics.Value{"Ä": semantics.Null(), "ä": semantics.Null()}},
			semantics.InvalidArgument,
		},
		{"largest value", semantics.Message{Properties: property("a", semantics.Bytes(kilo32))}, ""},
		{"value over", semantics.Message{Properties: property("a", semantics.Bytes(append(kilo32, 0)))}, semantics.MessageSizeExceeded},
		{"largest header", semantics.Message{Subject: strings.Repeat("x", 64<<10)}, ""},
		{"header over", semantics.Message{Subject: strings.Repeat("x", 64<<10), To: "x"}, semantics.MessageSizeExceeded},
		{"largest message", semantics.Message{MessageID: "i", Body: make([]byte, semantics.MaxMessageSize-1)}, ""},
		{"message over", semantics.Message{MessageID: "i", Body: make([]byte, semantics.MaxMessageSize)}, semantics.MessageSizeExceeded},
	}
	for _, c := range cases {
		wantCode(t, c.name, c.m.Validate(), c.want)
	}
}

func TestMSG_2_PresentButEmptyID(t *testing.T) {
	t.Parallel()
	empty, id := "", "id"
	wantCode(t, "absent", semantics.CheckMessageID(nil), "")
	wantCode(t, "given", semantics.CheckMessageID(&id), "")
	wantCode(t, "empty", semantics.CheckMessageID(&empty), semantics.InvalidArgument)
}

func TestMSG_20_Size(t *testing.T) {
	t.Parallel()
	m := semantics.Message{
		MessageID: "1", SessionID: "22", PartitionKey: "22", CorrelationID: "333", Subject: "4444", To: "5", ReplyTo: "66",
		ReplyToSessionID: "777", ContentType: "8888", Body: make([]byte, 100),
		Properties: map[string]semantics.Value{"ab": semantics.Int64(1), "ü": semantics.String("ü")},
	}
	const header = 1 + 2 + 2 + 3 + 4 + 1 + 2 + 3 + 4 + (2 + 8) + (2 + 2)
	if m.HeaderSize() != header || m.Size() != header+100 {
		t.Errorf("sizes are %d and %d, want %d and %d", m.HeaderSize(), m.Size(), header, header+100)
	}
}

func TestDLQ_15_SetDeadLetter(t *testing.T) {
	t.Parallel()
	own := map[string]semantics.Value{"p": semantics.Int64(1), semantics.PropertyDeadLetterReason: semantics.String("mine")}
	r := semantics.Received{Message: semantics.Message{Properties: own}}
	at := time.UnixMilli(1)
	why, how := "why", "how"
	r.SetDeadLetter(semantics.DeadLetterTexts{Reason: &why, Description: &how}, at)
	if r.DeadLetterReason != "why" || r.DeadLetterErrorDescription != "how" || r.DeadLetteredAt != at {
		t.Errorf("fields are not set: %+v", r)
	}
	if r.Properties["p"] != semantics.Int64(1) || r.Properties[semantics.PropertyDeadLetterReason] != semantics.String("why") ||
		r.Properties[semantics.PropertyDeadLetterDescription] != semantics.String("how") {
		t.Errorf("properties are %v", r.Properties)
	}
	if len(own) != 2 || own[semantics.PropertyDeadLetterReason] != semantics.String("mine") {
		t.Errorf("the map of the message was changed: %v", own)
	}
}

func TestSETTLE_5_MergeProperties(t *testing.T) {
	t.Parallel()
	one, two := semantics.Int64(1), semantics.Int64(2)
	fill := func(n int) semantics.Value { return semantics.Bytes(make([]byte, n)) }
	const half = semantics.MaxPropertyValueSize
	for name, c := range map[string]struct {
		had, changes, want map[string]semantics.Value
		code               semantics.Code
	}{
		"nothing":         {nil, nil, map[string]semantics.Value{}, ""},
		"into none":       {nil, map[string]semantics.Value{"a": one}, map[string]semantics.Value{"a": one}, ""},
		"set, keep":       {map[string]semantics.Value{"a": one}, map[string]semantics.Value{"b": two}, map[string]semantics.Value{"a": one, "b": two}, ""},
		"overwrite":       {map[string]semantics.Value{"a": one}, map[string]semantics.Value{"a": two}, map[string]semantics.Value{"a": two}, ""},
		"null is a value": {map[string]semantics.Value{"a": one}, map[string]semantics.Value{"a": {}}, map[string]semantics.Value{"a": semantics.Null()}, ""},
		"other case":      {map[string]semantics.Value{"a": one}, map[string]semantics.Value{"A": two}, nil, semantics.InvalidArgument},
		"value too large": {nil, map[string]semantics.Value{"a": fill(half + 1)}, nil, semantics.MessageSizeExceeded},
		"just fits": {
			map[string]semantics.Value{"a": fill(half)},
			map[string]semantics.Value{"b": fill(half - 4)},
			map[string]semantics.Value{"a": fill(half), "b": fill(half - 4)},
			"",
		}, // with the id and two names
		"a byte too many": {map[string]semantics.Value{"a": fill(half)}, map[string]semantics.Value{"b": fill(half - 3)}, nil, semantics.MessageSizeExceeded},
		"smaller again":   {map[string]semantics.Value{"a": fill(half), "b": fill(half - 4)}, map[string]semantics.Value{"b": one}, map[string]semantics.Value{"a": fill(half), "b": one}, ""},
	} {
		m := semantics.Message{MessageID: "id", Properties: maps.Clone(c.had)}
		got, code := m.MergeProperties(c.changes)
		if code != c.code || !maps.Equal(got, c.want) {
			t.Errorf("%s: got %d properties and %q, want %d and %q", name, len(got), code, len(c.want), c.code)
		}
		if !maps.Equal(m.Properties, c.had) {
			t.Errorf("%s: the message was changed", name)
		}
	}
}
