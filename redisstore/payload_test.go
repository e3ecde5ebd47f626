package redisstore

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

// What versions before decision 0027 stored is read as what this version stores.
func TestPayloadsOfOlderVersions(t *testing.T) {
	t.Parallel()
	reason := "broken"
	m := &semantics.Message{
		MessageID: "1", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "label", To: "to", ReplyTo: "reply",
		ReplyToSessionID: "r", ContentType: "text/plain", Body: []byte("body"), BodyKind: semantics.BodyText,
		ScheduledAt: time.UnixMilli(1790000000123).UTC(),
		Properties:  map[string]semantics.Value{"": semantics.Null(), "n": semantics.Int64(-1), "b": semantics.Bytes([]byte{0xff})},
		Forwarded: &semantics.Forwarded{
			Hops: 2, EnqueuedSequenceNumber: 7, DeadLetterSource: "orders", DeadLetterTexts: semantics.DeadLetterTexts{Reason: &reason},
		},
	}
	old, err := proto.Marshal(&storagev1.Message{
		MessageId: "1", SessionId: "s", PartitionKey: "s", CorrelationId: "c", Subject: "label", To: "to", ReplyTo: "reply",
		ReplyToSessionId: "r", ContentType: "text/plain", Body: []byte("body"), BodyKind: storagev1.Message_TEXT,
		ScheduledMs: 1790000000123, Properties: encodeProperties(m.Properties),
		Forwarded: &storagev1.Forwarded{Hops: 2, EnqueuedSequenceNumber: 7, DeadLetterSource: "orders", DeadLetterReason: &reason},
	})
	if err != nil {
		t.Fatal(err)
	}
	now, err := sealing{}.encode(m)
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string]string{"old": "\x01" + string(old), "now": string(now)} {
		var got semantics.Message
		if _, err := (sealing{}).decode(payload, &got); err != nil || !reflect.DeepEqual(&got, m) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, m)
		}
	}
}

// A payload that was damaged is read or refused, and nothing worse.
func TestDLQ_25_DamagedPayloads(t *testing.T) {
	t.Parallel()
	whole, err := sealing{}.encode(&semantics.Message{
		MessageID: "1", Body: []byte("body"), ScheduledAt: time.UnixMilli(1).UTC(),
		Properties: map[string]semantics.Value{"n": semantics.Int64(-1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		payload := []byte(string(whole[:rapid.IntRange(0, len(whole)).Draw(rt, "length")]))
		for range rapid.IntRange(0, 3).Draw(rt, "changes") {
			if len(payload) > 0 {
				payload[rapid.IntRange(0, len(payload)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
			}
		}
		e := entry{payload: string(payload), times: "1:0"}
		if m := e.received(sealing{}); m.Unreadable != nil && (m.MessageID != "" || m.Encoded != "") {
			rt.Fatalf("%x: %+v", payload, m)
		}
	})
}
