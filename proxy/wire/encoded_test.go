package wire_test

import (
	"bytes"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
)

var sameMessage = cmp.Options{
	cmp.Comparer(func(a, b semantics.Value) bool { return a == b }),
	cmp.Comparer(bytes.Equal),
}

// sameFloats compares the bits, since a NaN does not equal itself.
var sameFloats = cmp.Options{
	cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }),
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
}

// generated is what encoded.Decode does, by the generated code. It returns nil for what is refused.
func generated(data []byte) *semantics.Message {
	from, to := &sidebusv1.Message{}, &semantics.Message{}
	if proto.Unmarshal(data, from) != nil || wire.MessageOf(from, to) != nil {
		return nil
	}
	return to
}

// agrees fails if encoded.Decode reads something else than the generated code does. It may refuse to read.
func agrees(t interface{ Fatalf(string, ...any) }, data []byte) (isRead bool) {
	want := generated(data)
	var got semantics.Message
	if !encoded.Decode(bytes.Clone(data), &got) {
		return false
	}
	if want == nil && (got.BodyKind == semantics.BodyBytes) {
		t.Fatalf("%x is refused, read as %+v", data, got)
	}
	if want != nil {
		if diff := cmp.Diff(want, &got, sameMessage); diff != "" {
			t.Fatalf("%x (-generated +encoded):\n%s", data, diff)
		}
	}
	return true
}

// Every message that a client can send is read as the generated code reads it, and written so that it reads the same.
func TestEncodedIsTheWire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		sent := drawMessage(rt)
		data, err := proto.Marshal(sent)
		if err != nil {
			rt.Fatal(err)
		}
		want := generated(data)
		if want == nil {
			rt.Fatalf("%v is refused", sent)
		}
		if !agrees(rt, data) {
			rt.Fatalf("%v is not read", sent)
		}
		written, ok := encoded.Append(nil, want)
		if !ok || len(written) > encoded.Size(want) {
			rt.Fatalf("%v is written as %x", sent, written)
		}
		kept := *want
		kept.TimeToLive, kept.ScheduledAt = nil, generated(nil).ScheduledAt
		if diff := cmp.Diff(&kept, generated(written), sameMessage); diff != "" {
			rt.Fatalf("%v is written as (-kept +written):\n%s", sent, diff)
		}
	})
}

// A client decodes an answer with encoded messages as one with objects, whatever the store has.
func TestEncodedAnswerIsTheAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := drawReceived(rt)
		decoded := func(data []byte, err error) *sidebusv1.ReceiveResponse {
			answer := &sidebusv1.ReceiveResponse{}
			if err == nil {
				err = proto.Unmarshal(data, answer)
			}
			if err != nil {
				rt.Fatal(err)
			}
			return answer
		}
		ofObjects := func(messages []*sidebusv1.ReceivedMessage) *sidebusv1.ReceiveResponse {
			return decoded(proto.Marshal(&sidebusv1.ReceiveResponse{Messages: messages}))
		}
		want := ofObjects(wire.ReceivedFrom([]*semantics.Received{m}, false))
		if rapid.Bool().Draw(rt, "is encoded") {
			form, _ := encoded.Append(nil, &m.Message)
			m.Encoded = string(form)
		}
		data, _ := wire.AppendReceived(nil, 1, m)
		for how, got := range map[string]*sidebusv1.ReceiveResponse{
			"objects that are encoded": ofObjects(wire.EncodedFrom([]*semantics.Received{m})),
			"bytes":                    decoded(data, nil),
		} {
			if diff := cmp.Diff(want, got, protocmp.Transform(), sameFloats); diff != "" {
				rt.Fatalf("%s (-objects +encoded):\n%s", how, diff)
			}
		}
	})
}

// drawReceived draws a message with all that a store may set.
func drawReceived(rt *rapid.T) *semantics.Received {
	data, err := proto.Marshal(drawMessage(rt))
	if err != nil {
		rt.Fatal(err)
	}
	instant := func(name string) (at time.Time) {
		if rapid.Bool().Draw(rt, "has "+name) {
			at = time.Unix(rapid.Int64Range(-5, 253402300799).Draw(rt, name), rapid.Int64Range(0, 999_999_999).Draw(rt, name+" ns"))
		}
		return at
	}
	number := func(name string) int64 { return rapid.Int64Range(0, 1<<53).Draw(rt, name) }
	text := func(name string) string { return rapid.StringN(0, 200, 300).Draw(rt, name) }
	m := &semantics.Received{
		Message: *generated(data), SequenceNumber: number("number"), EnqueuedSequenceNumber: number("first number"),
		EnqueuedAt: instant("enqueued"), ExpiresAt: instant("expires"), DeliveryCount: rapid.IntRange(0, 1<<31-1).Draw(rt, "count"),
		LockedUntil: instant("locked"), State: semantics.State(rapid.IntRange(0, 2).Draw(rt, "state")),
		DeadLetterReason: text("reason"), DeadLetterErrorDescription: text("description"), DeadLetterSource: text("source"),
		DeadLetteredAt: instant("dead-lettered"), DeadLetterDeliveryCount: rapid.IntRange(0, 9).Draw(rt, "dead count"),
		Size: number("size"), SessionSequence: rapid.Int64Range(0, 3).Draw(rt, "place"),
	}
	if rapid.Bool().Draw(rt, "has a token") {
		m.LockToken = semantics.NewLockToken()
	}
	return m
}

// A part is the same whatever its length was thought to be.
func TestAppendPart(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, 127, 128, 200, 20_000, 3 << 20} {
		content := bytes.Repeat([]byte("x"), length)
		want := protowire.AppendBytes(protowire.AppendTag([]byte("before"), 3, protowire.BytesType), content)
		for _, size := range []int{0, 1, 127, 128, 200, 20_000, 3 << 20} {
			got := wire.AppendPart([]byte("before"), 3, size, func(b []byte) []byte { return append(b, content...) })
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes that were thought to be %d differ", length, size)
			}
		}
	}
}

// A client decodes the answer to a send as the generated code encodes it.
func TestEncodedSendResponseIsTheAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want, got := &sidebusv1.SendResponse{}, &sidebusv1.SendResponse{}
		var results []semantics.SendResult
		for range rapid.IntRange(0, 3).Draw(rt, "results") {
			r := semantics.SendResult{MessageID: rapid.StringN(0, 128, 200).Draw(rt, "id")}
			r.SequenceNumber, r.Deduplicated = rapid.Int64Range(0, 1<<53).Draw(rt, "number"), rapid.Bool().Draw(rt, "known")
			results = append(results, r)
			want.Results = append(want.Results, &sidebusv1.SendResponse_Result{
				SequenceNumber: r.SequenceNumber, MessageId: r.MessageID, Deduplicated: r.Deduplicated,
			})
		}
		if err := proto.Unmarshal(wire.AppendSent(nil, results), got); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// What is not encoded as usual is read as the generated code reads it, or not at all.
func TestEncodedIsTheWireWhateverComes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { agrees(rt, drawHostile(rt)) })
}

// Of a part that comes twice, the generated code checks both. These have text first that is not UTF-8.
func TestEncodedLeavesRepeatedPartsToTheGeneratedCode(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"key of a property": "\x5a\x0a\x0a\x01\xff\x0a\x01k\x12\x02\x08\x00",
		"text":              "\x6a\x01\xff\x6a\x01a",
		"text, then bytes":  "\x6a\x01\xff\x62\x01a",
		"message id":        "\x0a\x01\xff\x0a\x01a",
	} {
		if agrees(t, []byte(data)) {
			t.Errorf("%s: read, want it to be left to the generated code", name)
		}
	}
}

func FuzzEncoded(f *testing.F) {
	for i := range 200 {
		f.Add(rapid.Custom(drawHostile).Example(i))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agrees(t, data) })
}

// drawHostile draws bytes that are nearly an encoded message.
func drawHostile(rt *rapid.T) []byte {
	var data []byte
	for range rapid.IntRange(0, 3).Draw(rt, "parts") {
		part, err := proto.Marshal(drawMessage(rt)) // fields that come again
		if err != nil {
			rt.Fatal(err)
		}
		data = append(data, part...)
	}
	for range rapid.IntRange(0, 4).Draw(rt, "changes") {
		at := rapid.IntRange(0, len(data)).Draw(rt, "at")
		rest := bytes.Clone(data[at:])
		switch rapid.IntRange(0, 5).Draw(rt, "change") {
		case 0: // truncated
			data = data[:at]
		case 1: // any byte
			if at < len(data) {
				data[at] = rapid.Byte().Draw(rt, "byte")
			}
		case 2: // a field of any kind, known or not
			number := protowire.Number(rapid.IntRange(1, 20).Draw(rt, "number"))
			kind := protowire.Type(rapid.IntRange(0, 5).Draw(rt, "kind"))
			data = append(protowire.AppendTag(data[:at], number, kind), rest...)
		case 3: // a group
			data = protowire.AppendTag(data[:at], 3, protowire.StartGroupType)
			data = append(protowire.AppendTag(data, 3, protowire.EndGroupType), rest...)
		case 4: // a varint that is longer than it has to be
			data = append(append(data[:at], 0x80, 0x80, 0x00), rest...)
		case 5: // a submessage of a few bytes
			number := protowire.Number(rapid.SampledFrom([]int{10, 11, 15}).Draw(rt, "number"))
			inner := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(rt, "inner")
			data = protowire.AppendTag(data[:at], number, protowire.BytesType)
			data = append(protowire.AppendBytes(data, inner), rest...)
		}
	}
	return data
}

func drawMessage(rt *rapid.T) *sidebusv1.Message {
	text := func(name string) *string {
		if rapid.Bool().Draw(rt, "has "+name) {
			return proto.String(rapid.StringN(1, 20, 60).Draw(rt, name))
		}
		return nil
	}
	m := &sidebusv1.Message{
		MessageId: text("message id"), SessionId: text("session id"), PartitionKey: text("partition key"),
		CorrelationId: text("correlation id"), Subject: text("subject"), To: text("to"), ReplyTo: text("reply to"),
		ReplyToSessionId: text("reply to session"), ContentType: text("content type"),
	}
	if rapid.Bool().Draw(rt, "has ttl") {
		m.TimeToLive = &durationpb.Duration{
			Seconds: rapid.Int64Range(0, 9e9).Draw(rt, "seconds"), Nanos: rapid.Int32Range(0, 1e9-1).Draw(rt, "nanos"),
		}
	}
	if rapid.Bool().Draw(rt, "is scheduled") {
		m.ScheduledEnqueueTime = &timestamppb.Timestamp{
			Seconds: rapid.Int64Range(0, 253402300799).Draw(rt, "at"), Nanos: rapid.Int32Range(0, 1e9-1).Draw(rt, "nanos"),
		}
	}
	if rapid.Bool().Draw(rt, "has priority") {
		m.Priority = proto.Int32(rapid.Int32().Draw(rt, "priority"))
	}
	for range rapid.IntRange(0, 4).Draw(rt, "properties") {
		if m.Properties == nil {
			m.Properties = map[string]*sidebusv1.Value{}
		}
		m.Properties[rapid.StringN(0, 8, 30).Draw(rt, "name")] = drawValue(rt)
	}
	switch rapid.IntRange(0, 3).Draw(rt, "content") {
	case 0:
		m.Content = &sidebusv1.Message_Body{Body: rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "body")}
	case 1:
		m.Content = &sidebusv1.Message_Text{Text: rapid.StringN(0, 50, 200).Draw(rt, "text")}
	case 2:
		m.Content = &sidebusv1.Message_Json{Json: strconv.Quote(strconv.Itoa(rapid.Int().Draw(rt, "json")))}
	}
	return m
}

func drawValue(rt *rapid.T) *sidebusv1.Value {
	value := &sidebusv1.Value{}
	switch rapid.IntRange(1, 21).Draw(rt, "type") {
	case 1:
		value.Kind = &sidebusv1.Value_NullValue{}
	case 2:
		value.Kind = &sidebusv1.Value_StringValue{StringValue: rapid.String().Draw(rt, "value")}
	case 3:
		value.Kind = &sidebusv1.Value_BoolValue{BoolValue: rapid.Bool().Draw(rt, "value")}
	case 4:
		value.Kind = &sidebusv1.Value_ByteValue{ByteValue: rapid.Uint32Range(0, 255).Draw(rt, "value")}
	case 5:
		value.Kind = &sidebusv1.Value_SbyteValue{SbyteValue: rapid.Int32Range(-128, 127).Draw(rt, "value")}
	case 6:
		value.Kind = &sidebusv1.Value_CharValue{CharValue: rapid.Uint32Range(0, 0x10FFFF).Draw(rt, "value")}
	case 7:
		value.Kind = &sidebusv1.Value_Int16Value{Int16Value: rapid.Int32Range(-32768, 32767).Draw(rt, "value")}
	case 8:
		value.Kind = &sidebusv1.Value_Uint16Value{Uint16Value: rapid.Uint32Range(0, 65535).Draw(rt, "value")}
	case 9:
		value.Kind = &sidebusv1.Value_Int32Value{Int32Value: rapid.Int32().Draw(rt, "value")}
	case 10:
		value.Kind = &sidebusv1.Value_Uint32Value{Uint32Value: rapid.Uint32().Draw(rt, "value")}
	case 11:
		value.Kind = &sidebusv1.Value_Int64Value{Int64Value: rapid.Int64().Draw(rt, "value")}
	case 12:
		value.Kind = &sidebusv1.Value_Uint64Value{Uint64Value: rapid.Uint64().Draw(rt, "value")}
	case 13:
		value.Kind = &sidebusv1.Value_FloatValue{FloatValue: math.Float32frombits(rapid.Uint32().Draw(rt, "bits"))}
	case 14:
		value.Kind = &sidebusv1.Value_DoubleValue{DoubleValue: math.Float64frombits(rapid.Uint64().Draw(rt, "bits"))}
	case 15:
		value.Kind = &sidebusv1.Value_DecimalValue{DecimalValue: rapid.StringMatching(`[-+]?[0-9]{1,9}(\.[0-9]{0,9})?`).Draw(rt, "value")}
	case 16:
		value.Kind = &sidebusv1.Value_UuidValue{UuidValue: rapid.StringMatching(`[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Draw(rt, "value")}
	case 17:
		value.Kind = &sidebusv1.Value_UriValue{UriValue: rapid.String().Draw(rt, "value")}
	case 18:
		value.Kind = &sidebusv1.Value_DatetimeValue{DatetimeValue: drawInstant(rt)}
	case 19:
		value.Kind = &sidebusv1.Value_DatetimeoffsetValue{DatetimeoffsetValue: drawInstant(rt)}
	case 20:
		value.Kind = &sidebusv1.Value_TimespanValue{TimespanValue: rapid.Int64().Draw(rt, "value")}
	default:
		value.Kind = &sidebusv1.Value_BytesValue{BytesValue: rapid.SliceOf(rapid.Byte()).Draw(rt, "value")}
	}
	return value
}

func drawInstant(rt *rapid.T) string {
	return rapid.StringMatching(`20[0-9]{2}-0[1-9]-1[0-9]T1[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[-+]0[0-9]:[0-5]0)`).Draw(rt, "instant")
}
