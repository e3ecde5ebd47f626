package convert_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/semantics"
)

func pointer[T any](v T) *T { return &v }

func integer(t *testing.T, kind semantics.ValueType, n int64) semantics.Value {
	t.Helper()
	v, err := semantics.IntegerOf(kind, n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t *testing.T, kind semantics.ValueType, s string) semantics.Value {
	t.Helper()
	v, err := semantics.TextOf(kind, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func described(name, value any) codec.Described {
	return codec.Described{Descriptor: name, Value: value}
}

// TestMSG_12_PropertyTypesThereAndBack has each type of MSG-12, as Sidebus and as AMQP have it.
func TestMSG_12_PropertyTypesThereAndBack(t *testing.T) {
	t.Parallel()
	id := codec.UUID{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	seen := map[semantics.ValueType]bool{}
	for _, row := range []struct {
		value semantics.Value
		amqp  any
	}{
		{semantics.Null(), nil},
		{semantics.String("ä"), "ä"},
		{semantics.Bool(true), true},
		{semantics.Bool(false), false},
		{integer(t, semantics.TypeByte, 255), uint8(255)},
		{integer(t, semantics.TypeSByte, -128), int8(-128)},
		{integer(t, semantics.TypeChar, '€'), codec.Char('€')},
		{integer(t, semantics.TypeInt16, -5), int16(-5)},
		{integer(t, semantics.TypeUint16, 65535), uint16(65535)},
		{integer(t, semantics.TypeInt32, math.MinInt32), int32(math.MinInt32)},
		{integer(t, semantics.TypeUint32, math.MaxUint32), uint32(math.MaxUint32)},
		{semantics.Int64(math.MinInt64), int64(math.MinInt64)},
		{semantics.Uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{semantics.Float(1.5), float32(1.5)},
		{semantics.Double(-0.1), -0.1},
		{text(t, semantics.TypeUUID, "00112233-4455-6677-8899-aabbccddeeff"), id},
		{text(t, semantics.TypeURI, "http://a/b"), described(codec.Symbol("com.microsoft:uri"), "http://a/b")},
		{text(t, semantics.TypeDateTime, "2026-01-02T03:04:05.678Z"), codec.Timestamp(1_767_323_045_678)},
		{
			text(t, semantics.TypeDateTimeOffset, "1970-01-01T00:00:00.0000001Z"),
			described(codec.Symbol("com.microsoft:datetime-offset"), int64(621_355_968_000_000_001)),
		},
		{integer(t, semantics.TypeTimeSpan, -10_000_000), described(codec.Symbol("com.microsoft:timespan"), int64(-10_000_000))},
		{semantics.Bytes([]byte{0, 255}), []byte{0, 255}},
		{text(t, semantics.TypeDecimal, "-12.50"), decimal128("b03c00000000000000000000000004e2")},
		{text(t, semantics.TypeDecimal, "0.001"), decimal128("303a0000000000000000000000000001")},
	} {
		seen[row.value.Type()] = true
		if got := convert.FromValue(row.value); !reflect.DeepEqual(got, row.amqp) {
			t.Errorf("%s becomes %#v, want %#v", row.value.Type(), got, row.amqp)
		}
		if got, err := convert.Value("p", row.amqp); err != nil || got != row.value {
			t.Errorf("%#v becomes %+v, %v, want %+v", row.amqp, got, err, row.value)
		}
	}
	for kind := semantics.TypeNull; kind <= semantics.TypeBytes; kind++ {
		if !seen[kind] {
			t.Errorf("no row for %s", kind)
		}
	}
}

func decimal128(digits string) codec.Decimal128 {
	b, _ := hex.DecodeString(digits)
	return codec.Decimal128(b)
}

func TestDecimals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		value any
		want  string
	}{
		{codec.Decimal32{0x32, 0x80, 0, 0x01}, "1"},
		{codec.Decimal32{0xb2, 0x00, 0, 0x19}, "-2.5"},
		{codec.Decimal32{0x6c, 0xb8, 0x96, 0x7f}, "9999999"}, // with the long form of the coefficient
		{codec.Decimal64{0x31, 0xc0, 0, 0, 0, 0, 0, 0x2a}, "42"},
		{codec.Decimal64{0x31, 0xe0, 0, 0, 0, 0, 0, 0x2a}, "420"},
		{decimal128("30400000000000000000000000000000"), "0"},
		{decimal128("78000000000000000000000000000000"), "Infinity"},
		{decimal128("f8000000000000000000000000000000"), "-Infinity"},
		{decimal128("7c000000000000000000000000000000"), "NaN"},
		{decimal128("5ffe0000000000000000000000000001"), "1E6111"},
		{decimal128("00000000000000000000000000000001"), "1E-6176"},
	} {
		got, err := convert.Value("p", row.value)
		if err != nil || got.Text() != row.want {
			t.Errorf("%x is %q, %v, want %s", row.value, got.Text(), err, row.want)
		}
	}
	long := strings.Repeat("9", 40)
	if got := convert.FromValue(text(t, semantics.TypeDecimal, long)); got != long {
		t.Errorf("a decimal of 40 digits becomes %v", got)
	}
}

func TestCollectionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []any{codec.List{}, codec.Map{}, codec.Array{}, described(uint64(7), codec.List{})} {
		if _, err := convert.Value("p", value); semantics.CodeOf(err) != semantics.InvalidArgument {
			t.Errorf("%#v: %v", value, err)
		}
	}
}

// TestMSG_24_TypesThatOnlyAMQPHas has each of them as other clients see it, and as it comes back.
func TestMSG_24_TypesThatOnlyAMQPHas(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		amqp any
		want semantics.Value
	}{
		{codec.Symbol("s"), semantics.String("s")},
		{codec.Decimal32{0x32, 0x80, 0, 0x01}, text(t, semantics.TypeDecimal, "1")},
		{codec.Decimal64{0x31, 0xc0, 0, 0, 0, 0, 0, 0x2a}, text(t, semantics.TypeDecimal, "42")},
		{decimal128("7c000000000000000000000000000000"), semantics.String("NaN")},
		{decimal128("5ffe0000000000000000000000000001"), semantics.String("1E6111")},
		{codec.Timestamp(253_402_300_800_000), semantics.Int64(253_402_300_800_000)},
		{described(codec.Symbol("mine"), int64(1)), semantics.Int64(1)},
		{described(uint64(7), codec.Symbol("x")), semantics.String("x")},
		{described("com.microsoft:timespan", int64(5)), integer(t, semantics.TypeTimeSpan, 5)},
		{described(codec.Symbol("com.microsoft:datetime-offset"), int64(math.MaxInt64)), semantics.Int64(math.MaxInt64)},
	} {
		sent := sections(uint64(0x74), codec.Map{codec.Entry("p", row.amqp), codec.Entry("q", int32(1))}, uint64(0x75), []byte{})
		m, err := convert.Message(sent)
		if err != nil || m.Properties["p"] != row.want {
			t.Errorf("%#v becomes %+v, %v, want %+v", row.amqp, m, err, row.want)
			continue
		}
		back := func() any {
			s, err := convert.Parse(convert.Encode(&semantics.Received{Message: *m}, convert.View{}))
			if err != nil || s.Application.Get("q") != int32(1) {
				t.Errorf("%#v: %v, %v", row.amqp, s, err)
			}
			return s.Application.Get("p")
		}
		if got := back(); !reflect.DeepEqual(got, row.amqp) {
			t.Errorf("%#v comes back as %#v", row.amqp, got)
		}
		m.Properties["p"] = semantics.Bool(true)
		if got := back(); got != true {
			t.Errorf("%#v, changed, comes back as %#v", row.amqp, got)
		}
	}
}

// TestMSG_24_BodiesComeBackAsTheyCame has each kind of body, and what other clients receive.
func TestMSG_24_BodiesComeBackAsTheyCame(t *testing.T) {
	t.Parallel()
	value := func(v any) []byte { return sections(uint64(0x77), v) }
	sequences := sections(uint64(0x76), codec.List{int32(1), "a"}, uint64(0x76), codec.List{codec.Symbol("b")})
	pieces := sections(uint64(0x75), []byte("a"), uint64(0x75), []byte("b"))
	for name, row := range map[string]struct {
		sent, body []byte
		kind       semantics.BodyKind
	}{
		"data":      {sections(uint64(0x75), []byte("x")), []byte("x"), semantics.BodyBytes},
		"pieces":    {pieces, pieces, semantics.BodyBytes},
		"text":      {value("ä"), []byte("ä"), semantics.BodyText},
		"no text":   {value(""), []byte{}, semantics.BodyText},
		"binary":    {value([]byte{1}), []byte{1}, semantics.BodyBytes},
		"null":      {value(nil), value(nil), semantics.BodyBytes},
		"number":    {value(int32(7)), value(int32(7)), semantics.BodyBytes},
		"map":       {value(codec.Map{codec.Entry("a", 0.5)}), value(codec.Map{codec.Entry("a", 0.5)}), semantics.BodyBytes},
		"sequences": {sequences, sequences, semantics.BodyBytes},
	} {
		m, err := convert.Message(row.sent)
		if err != nil || !bytes.Equal(m.Body, row.body) || m.BodyKind != row.kind {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		if got := convert.Encode(&semantics.Received{Message: *m}, convert.View{}); !bytes.HasSuffix(got, row.sent) {
			t.Errorf("%s: %x comes back as %x", name, row.sent, got)
		}
	}
}

// TestMSG_24_SectionsComeBackAsTheyCame has what only AMQP has, besides types and bodies.
func TestMSG_24_SectionsComeBackAsTheyCame(t *testing.T) {
	t.Parallel()
	id := codec.UUID{15: 7}
	properties := codec.List{
		id, []byte("user"), "to", "subject", "reply", uint64(9), codec.Symbol("text/x"), codec.Symbol("gzip"),
		codec.Timestamp(2000), codec.Timestamp(1000), "s", uint32(3), "rs",
	}
	sent := sections(
		uint64(0x70), codec.List{true, uint8(7), uint32(500), true, uint32(0)},
		uint64(0x71), codec.Map{codec.Named("d", int32(1)), codec.Named("x-opt-lock-token", "mine")},
		uint64(0x72), codec.Map{
			codec.Named("mine", codec.List{"a"}), codec.Named("x-opt-partition-key", nil), codec.Named("x-opt-sequence-number", int64(5)),
			codec.Entry(uint64(1), "by number"),
		},
		uint64(0x73), properties, uint64(0x75), []byte("x"), uint64(0x78), codec.Map{codec.Named("f", "g")},
	)
	m, err := convert.Message(sent)
	if err != nil || m.MessageID != "00000000-0000-0000-0000-000000000007" || m.CorrelationID != "9" {
		t.Fatalf("%+v, %v", m, err)
	}
	r := &semantics.Received{Message: *m, SequenceNumber: 1, DeliveryCount: 1, EnqueuedAt: time.UnixMilli(5000), LockToken: semantics.LockToken{1}}
	s, err := convert.Parse(convert.Encode(r, convert.View{}))
	if err != nil {
		t.Fatal(err)
	}
	properties[8] = codec.Timestamp(1500) // creation and lifetime; that is what clients take it for
	for name, row := range map[string][2]any{
		"header":               {s.Header, codec.List{true, uint8(7), uint32(500), true, uint32(0)}},
		"delivery annotations": {s.DeliveryAnnotations, codec.Map{codec.Named("x-opt-lock-token", codec.UUID{1}), codec.Named("d", int32(1))}},
		"annotations": {s.Annotations, codec.Map{
			codec.Named("x-opt-sequence-number", int64(1)), codec.Named("x-opt-enqueued-time", codec.Timestamp(5000)),
			codec.Named("mine", codec.List{"a"}), codec.Named("x-opt-partition-key", nil), codec.Entry(uint64(1), "by number"),
		}},
		"properties": {s.Properties, properties},
		"footer":     {s.Footer, codec.Map{codec.Named("f", "g")}},
	} {
		if !reflect.DeepEqual(row[0], row[1]) {
			t.Errorf("%s: %#v, want %#v", name, row[0], row[1])
		}
	}
	r.MessageID, r.CorrelationID = "new", "other" // as a resubmission and the action of a rule set them
	if s, _ = convert.Parse(convert.Encode(r, convert.View{})); s.Properties[0] != "new" || s.Properties[5] != "other" {
		t.Errorf("changed ids: %v", s.Properties)
	}
}

func TestWhatIsKeptMayBeUnreadable(t *testing.T) {
	t.Parallel()
	for _, kept := range [][]byte{{9}, {1, 0xff}, {0, 0}} {
		m := &semantics.Received{Message: semantics.Message{Body: []byte("x"), AMQP: kept}}
		if got, err := convert.Message(convert.Encode(m, convert.View{})); err != nil || string(got.Body) != "x" {
			t.Errorf("%x: %+v, %v", kept, got, err)
		}
	}
}

// sections writes a message with these sections.
func sections(all ...any) (payload []byte) {
	for i := 0; i < len(all); i += 2 {
		payload = codec.Append(payload, codec.Described{Descriptor: all[i], Value: all[i+1]})
	}
	return payload
}

func TestAMessageThereAndBack(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_767_323_045_678).UTC()
	sent := semantics.Message{
		MessageID: "m", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "su", To: "t", ReplyTo: "r",
		ReplyToSessionID: "rs", ContentType: "text/x", TimeToLive: pointer(time.Minute), ScheduledAt: at,
		Properties: map[string]semantics.Value{"a": semantics.Int64(1), "b": semantics.Null()}, Body: []byte("body"),
	}
	token := semantics.NewLockToken()
	received := &semantics.Received{
		Message: sent, SequenceNumber: 7, EnqueuedSequenceNumber: 9, EnqueuedAt: at, DeliveryCount: 3, LockToken: token,
		LockedUntil: at.Add(time.Second), DeadLetterSource: "q",
	}
	payload := convert.Encode(received, convert.View{})
	got, err := convert.Message(payload)
	if err != nil || !reflect.DeepEqual(*got, sent) {
		t.Errorf("got %+v, %v", got, err)
	}
	s, err := convert.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	if s.Header[4] != uint32(2) || s.Header[2] != uint32(60_000) {
		t.Errorf("the header is %v", s.Header)
	}
	for name, want := range map[string]any{
		"x-opt-sequence-number": int64(7), "x-opt-enqueue-sequence-number": int64(9), "x-opt-enqueued-time": convert.Timestamp(at),
		"x-opt-locked-until": convert.Timestamp(at.Add(time.Second)), "x-opt-partition-key": "s", "x-opt-deadletter-source": "q",
		"x-opt-scheduled-enqueue-time": convert.Timestamp(at), "x-opt-message-state": nil,
	} {
		if got := s.Annotations.Get(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if !bytes.Contains(payload, append([]byte("x-opt-lock-token\x98"), token[:]...)) {
		t.Error("the lock token is missing")
	}
	received.State, received.EnqueuedSequenceNumber = semantics.Deferred, 7
	s, err = convert.Parse(convert.Encode(received, convert.View{IsPeek: true}))
	if err != nil || s.Annotations.Get("x-opt-message-state") != int32(1) || s.Header[4] != uint32(3) ||
		s.Annotations.Get("x-opt-enqueue-sequence-number") != nil {
		t.Errorf("peeked: %v, %v, %v", s.Header, s.Annotations, err)
	}
}

func TestBodiesOfOtherClientsHaveAContentType(t *testing.T) {
	t.Parallel()
	for kind, want := range map[semantics.BodyKind]string{
		semantics.BodyBytes: "", semantics.BodyText: "text/plain; charset=utf-8", semantics.BodyJSON: "application/json",
	} {
		m := &semantics.Received{Message: semantics.Message{Body: []byte("1"), BodyKind: kind}}
		got, err := convert.Message(convert.Encode(m, convert.View{}))
		if err != nil || got.ContentType != want || string(got.Body) != "1" {
			t.Errorf("kind %d: %+v, %v", kind, got, err)
		}
	}
}

func TestTimesToLive(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{time.Millisecond, time.Hour, 100 * 24 * time.Hour} {
		m := &semantics.Received{Message: semantics.Message{TimeToLive: &ttl}, EnqueuedAt: time.Now()}
		got, err := convert.Message(convert.Encode(m, convert.View{}))
		if err != nil || got.TimeToLive == nil || *got.TimeToLive != ttl {
			t.Errorf("%s: %v, %v", ttl, got.TimeToLive, err)
		}
	}
	m := &semantics.Received{Message: semantics.Message{TimeToLive: pointer(semantics.Never)}}
	if got, err := convert.Message(convert.Encode(m, convert.View{})); err != nil || got.TimeToLive != nil {
		t.Errorf("never: %v, %v", got.TimeToLive, err)
	}
	far := codec.List{}
	for len(far) < 10 {
		far = append(far, nil)
	}
	far[8], far[9] = codec.Timestamp(253_402_300_800_000), codec.Timestamp(0)
	got, err := convert.Message(sections(uint64(0x70), codec.List{nil, nil, uint32(math.MaxUint32)}, uint64(0x73), far, uint64(0x75), []byte{}))
	if err != nil || got.TimeToLive == nil || *got.TimeToLive != semantics.Never {
		t.Errorf("until the year 10000: %v, %v", got.TimeToLive, err)
	}
}

func TestIDsOfOtherTypes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		id   any
		want string
	}{{uint64(7), "7"}, {[]byte{1, 0xff}, "01ff"}, {codec.UUID{15: 1}, "00000000-0000-0000-0000-000000000001"}, {"x", "x"}, {nil, ""}} {
		got, err := convert.Message(sections(uint64(0x73), codec.List{row.id, nil, nil, nil, nil, row.id}, uint64(0x75), []byte{}))
		if err != nil || got.MessageID != row.want || got.CorrelationID != row.want {
			t.Errorf("%v: %+v, %v", row.id, got, err)
		}
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	data := []any{uint64(0x75), []byte("x")}
	for _, row := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"no section", []byte{0x40}, "0x40 where a section must begin"},
		{"cut section", sections(data...)[:3], "ends early"},
		{"unknown section", sections(uint64(0x99), "x"), "0x99"},
		{"data with another type than binary", sections(uint64(0x75), "x"), "not binary"},
		{"properties that are no list", sections(uint64(0x73), "x"), "0x73"},
		{"sequence of another type", sections(codec.Symbol("amqp:amqp-sequence:list"), "x"), "0x76"},
		{"value of 2 MiB", sections(uint64(0x77), strings.Repeat("x", 2<<20)), "amqp-value or amqp-sequence is"},
		{"id of another type", sections(append(data, uint64(0x73), codec.List{true})...), "messageId must be a string"},
		{"empty id", sections(append(data, uint64(0x73), codec.List{""})...), "messageId must not be empty"},
		{"subject of another type", sections(append(data, uint64(0x73), codec.List{nil, nil, nil, int32(1)})...), "subject is a int32"},
		{"ttl of another type", sections(append(data, uint64(0x70), codec.List{nil, nil, "x"})...), "timeToLive must be"},
		{"scheduled at a text", sections(append(data, uint64(0x72), codec.Map{codec.Named("x-opt-scheduled-enqueue-time", "x")})...), "scheduledEnqueueTime is a string"},
		{"property with a number as name", sections(append(data, uint64(0x74), codec.Map{codec.Entry(int32(1), "x")})...), "has a key that is a int32"},
		{"property with a list", sections(append(data, uint64(0x74), codec.Map{codec.Entry("a", codec.List{})})...), "properties[a] is a list"},
		{"properties of 300 KiB", sections(append(data, uint64(0x74), codec.Map{codec.Entry("a", strings.Repeat("x", 300<<10))})...), "headers and properties is"},
	} {
		if _, err := convert.Message(row.payload); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	got, err := convert.Message(sections(
		uint64(0x71), codec.Map{}, uint64(0x75), []byte("a"), uint64(0x75), []byte("b"), uint64(0x78), codec.Map{},
		uint64(0x72), codec.Map{codec.Named("x-opt-partition-key", nil), codec.Named("x-opt-sequence-number", int64(5))},
	))
	if err != nil || got.PartitionKey != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	got, err := convert.Batch(sections(uint64(0x75), []byte("a"), uint64(0x75), []byte("b")))
	if err != nil || len(got) != 2 || string(got[1]) != "b" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := convert.Batch(nil); semantics.CodeOf(err) != semantics.InvalidArgument {
		t.Errorf("an empty batch: %v", err)
	}
	many := bytes.Repeat(sections(uint64(0x75), []byte{}), semantics.MaxBatchMessages+1)
	if _, err := convert.Batch(many); semantics.CodeOf(err) != semantics.ArgumentOutOfRange {
		t.Errorf("a batch of %d: %v", semantics.MaxBatchMessages+1, err)
	}
}

func TestRequestsAndResponses(t *testing.T) {
	t.Parallel()
	args := codec.Map{codec.Entry("operation", "o")}
	r, err := convert.ParseRequest(sections(uint64(0x73), codec.List{uint64(7), nil, nil, nil, "me"}, uint64(0x74), args, uint64(0x77), codec.Map{}))
	if err != nil || r.ID != uint64(7) || r.ReplyTo != "me" || r.Args.Get("operation") != "o" || r.Body == nil {
		t.Errorf("got %+v, %v", r, err)
	}
	s, err := convert.Parse(convert.Response(r.ID, args, "body"))
	if err != nil || s.Properties[5] != uint64(7) || s.Value != "body" || s.Application.Get("operation") != "o" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestLockTokensAreTags(t *testing.T) {
	t.Parallel()
	token, err := semantics.ParseLockToken("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(convert.GUID(token)); got != "33221100554477668899aabbccddeeff" {
		t.Errorf("the tag is %s", got)
	}
}

// FuzzMessage checks that no bytes make the conversion panic, and that what it accepts can be delivered.
func FuzzMessage(f *testing.F) {
	f.Add(sections(uint64(0x70), codec.List{true, uint8(4), uint32(5)}, uint64(0x75), []byte("x")))
	f.Add(convert.Encode(&semantics.Received{Message: semantics.Message{
		MessageID: "m", Properties: map[string]semantics.Value{"d": semantics.Double(1)}, Body: []byte("b"),
	}}, convert.View{}))
	f.Add(sections(uint64(0x74), codec.Map{codec.Entry("d", codec.Decimal32{0x6c, 0xb8, 0x96, 0x7f})}, uint64(0x75), []byte{}))
	f.Add(sections(uint64(0x70), codec.List{true}, uint64(0x72), codec.Map{codec.Named("a", nil)}, uint64(0x76), codec.List{codec.Char('x')}))
	f.Add(sections(uint64(0x73), codec.List{uint64(1), []byte("u")}, uint64(0x77), codec.Map{}, uint64(0x78), codec.Map{}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		_, _ = convert.Batch(payload)
		m, err := convert.Message(payload)
		if err != nil || m.Validate() != nil {
			return
		}
		again, err := convert.Message(convert.Encode(&semantics.Received{Message: *m}, convert.View{}))
		if err != nil || again.MessageID != m.MessageID || !bytes.Equal(again.Body, m.Body) || again.BodyKind != m.BodyKind && len(m.AMQP) > 0 ||
			len(again.Properties) != len(m.Properties) || !bytes.Equal(again.AMQP, m.AMQP) {
			t.Fatalf("%+v becomes %+v, %v", m, again, err)
		}
	})
}
