package brokerproperties

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

func textOf(t *testing.T, typ semantics.ValueType, text string) semantics.Value {
	t.Helper()
	v, err := semantics.TextOf(typ, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func integerOf(t *testing.T, typ semantics.ValueType, n int64) semantics.Value {
	t.Helper()
	v, err := semantics.IntegerOf(typ, n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// writtenIn returns the broker properties that were written into headers.
func writtenIn(header map[string][]string) string { return header[Header][0] }

func TestREST_4_AllBrokerProperties(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 2, 15, 4, 5, 999_000_000, time.UTC)
	token, err := semantics.ParseLockToken("7da9cfd5-40d5-4bb1-8d64-ec5a52e1c547")
	if err != nil {
		t.Fatal(err)
	}
	m := &semantics.Received{
		Message: semantics.Message{
			MessageID: "m", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "café", To: "t", ReplyTo: "r", ReplyToSessionID: "rs",
			ContentType: "text/plain; charset=utf-8", TimeToLive: lifetime(1500 * time.Millisecond), ScheduledAt: at,
		},
		SequenceNumber: 7, EnqueuedSequenceNumber: 3, EnqueuedAt: at, ExpiresAt: at, DeliveryCount: 1, LockToken: token, LockedUntil: at,
		State: semantics.Deferred, DeadLetterSource: "dead",
	}
	header := http.Header{}
	Write(header, m)
	const date = `"Sat, 02 Jan 2027 15:04:05 GMT"` // never rounded up
	want := http.Header{
		Header: {`{"CorrelationId":"c","DeadLetterSource":"dead","DeliveryCount":1,"EnqueuedSequenceNumber":3,"EnqueuedTimeUtc":` + date + `,"ExpiresAtUtc":` + date +
			`,"Label":"caf\u00e9","LockToken":"7da9cfd5-40d5-4bb1-8d64-ec5a52e1c547","LockedUntilUtc":` + date + `,"MessageId":"m","PartitionKey":"s","ReplyTo":"r",` +
			`"ReplyToSessionId":"rs","ScheduledEnqueueTimeUtc":` + date + `,"SequenceNumber":7,"SessionId":"s","State":"Deferred","TimeToLive":1.5,"To":"t"}`},
		"Content-Type": {"text/plain; charset=utf-8"},
	}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestREST_1_PropertiesInHeaders(t *testing.T) {
	t.Parallel()
	values := map[string]struct {
		value semantics.Value
		want  string
	}{
		"string": {semantics.String(`High "1" \`), `"High \"1\" \\"`}, "empty": {semantics.String(""), `""`}, "numeric": {semantics.String("5"), `"5"`},
		"unicode": {semantics.String("é😀\x7f\x00"), `"\u00e9\ud83d\ude00\u007f\u0000"`}, "lines": {semantics.String("a\r\nb"), `"a\u000d\u000ab"`},
		"yes": {semantics.Bool(true), "true"}, "no": {semantics.Bool(false), "false"}, "null": {semantics.Null(), "null"},
		"int64": {semantics.Int64(math.MinInt64), "-9223372036854775808"}, "uint64": {semantics.Uint64(math.MaxUint64), "18446744073709551615"},
		"byte": {integerOf(t, semantics.TypeByte, 200), "200"}, "int16": {integerOf(t, semantics.TypeInt16, -3), "-3"},
		"whole double": {semantics.Double(2), "2.0"}, "double": {semantics.Double(0.1), "0.1"}, "large double": {semantics.Double(1e300), "1e+300"},
		"float": {semantics.Float(0.1), "0.1"}, "nan": {semantics.Double(math.NaN()), `"NaN"`}, "inf": {semantics.Double(math.Inf(-1)), `"-Infinity"`},
		"decimal": {textOf(t, semantics.TypeDecimal, "12.50"), "12.50"}, "odd decimal": {textOf(t, semantics.TypeDecimal, "+.5"), `"+.5"`},
		"char": {integerOf(t, semantics.TypeChar, 'x'), `"x"`}, "uuid": {textOf(t, semantics.TypeUUID, "7DA9CFD5-40d5-4bb1-8d64-ec5a52e1c547"), `"7da9cfd5-40d5-4bb1-8d64-ec5a52e1c547"`},
		"datetime": {textOf(t, semantics.TypeDateTime, "2027-01-02T15:04:05Z"), `"2027-01-02T15:04:05Z"`}, "uri": {textOf(t, semantics.TypeURI, "http://x"), `"http://x"`},
		"timespan": {integerOf(t, semantics.TypeTimeSpan, 900_000_000_005), `"1.01:00:00.0000005"`}, "below": {integerOf(t, semantics.TypeTimeSpan, -10_000_000), `"-00:00:01"`},
		"shortest": {integerOf(t, semantics.TypeTimeSpan, math.MinInt64), `"-10675199.02:48:05.4775808"`}, "bytes": {semantics.Bytes([]byte{0, 255}), `"AP8="`},
	}
	m := &semantics.Received{Message: semantics.Message{Properties: map[string]semantics.Value{}}}
	for name, v := range values {
		m.Properties[strings.ReplaceAll(name, " ", "-")] = v.value
	}
	header := http.Header{}
	Write(header, m)
	for name, v := range values {
		name = strings.ReplaceAll(name, " ", "-")
		if got := header[name]; len(got) != 1 || got[0] != v.want { // names as they are, not canonical ones
			t.Errorf("%s: got %q, want %s", name, got, v.want)
		}
	}
}

func TestREST_12_NamesThatAreNoHeadersOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := &semantics.Received{Message: semantics.Message{Properties: map[string]semantics.Value{
		"fine": semantics.Int64(1), "with blank": semantics.Int64(2), "a\r\nb": semantics.Int64(3), "é": semantics.Int64(4), "content-length": semantics.Int64(5),
		"Location": semantics.Int64(6), "sidebus-x": semantics.Int64(7), "a:b": semantics.Int64(8), "TraceParent": semantics.Int64(9), "BROKERPROPERTIES": semantics.Int64(10),
		"Set-cookie": semantics.Int64(11),
	}}}
	header := http.Header{"Location": {"here"}}
	Write(header, m, "traceparent")
	delete(header, Header)
	want := http.Header{
		"Content-Type": nil, "Location": {"here"}, "fine": {"1"},
		PropertiesHeader: {`{"BROKERPROPERTIES":10,"Location":6,"Set-cookie":11,"a\u000d\u000ab":3,"a:b":8,"content-length":5,"sidebus-x":7,"with blank":2,"\u00e9":4}`},
	}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestREST_1_ContentTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message    semantics.Message
		want, kept string
	}{
		"own":         {semantics.Message{ContentType: "application/x; a=b", BodyKind: semantics.BodyJSON}, "application/x; a=b", ""},
		"none":        {semantics.Message{}, "", ""},
		"text":        {semantics.Message{BodyKind: semantics.BodyText}, "text/plain; charset=utf-8", ""},
		"JSON":        {semantics.Message{BodyKind: semantics.BodyJSON}, "application/json", ""},
		"line break":  {semantics.Message{ContentType: "a\r\nX: y"}, "", `"ContentType":"a\u000d\u000aX: y"`},
		"no ASCII":    {semantics.Message{ContentType: "é", BodyKind: semantics.BodyText}, "", `"ContentType":"\u00e9"`},
		"outer blank": {semantics.Message{ContentType: " a"}, "", `"ContentType":" a"`},
	} {
		header := http.Header{}
		Write(header, &semantics.Received{Message: c.message})
		if got := header.Get("Content-Type"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if !strings.Contains(writtenIn(header), c.kept) || strings.Contains(writtenIn(header), "ContentType") != (c.kept != "") {
			t.Errorf("%s: got %s", name, writtenIn(header))
		}
	}
}

func TestREST_4_ALifetimeWithoutEndIsWrittenAsServiceBusDoes(t *testing.T) {
	t.Parallel()
	for _, ttl := range []*time.Duration{nil, lifetime(semantics.Never)} {
		header := http.Header{}
		Write(header, &semantics.Received{Message: semantics.Message{TimeToLive: ttl}})
		if !strings.Contains(writtenIn(header), `"TimeToLive":922337203685.47754`) {
			t.Errorf("got %s", writtenIn(header))
		}
	}
}

// A message that is written and read again is the same, except for types that JSON does not have.
func TestREST_1_WhatIsWrittenCanBeSentAgain(t *testing.T) {
	t.Parallel()
	sent := semantics.Message{
		MessageID: "m", CorrelationID: "ü", Subject: `"\`, TimeToLive: lifetime(90 * time.Second), ScheduledAt: time.Date(2027, 1, 2, 15, 4, 5, 0, time.UTC),
		ContentType: "text/plain", Properties: map[string]semantics.Value{
			"s": semantics.String("\x00é😀\""), "i": semantics.Int64(-5), "d": semantics.Double(3), "b": semantics.Bool(true), "n": semantics.Null(),
			"with blank": semantics.String("x"), "Location": semantics.Double(1e-7), "Empty": semantics.String(""),
		},
	}
	header := http.Header{}
	Write(header, &semantics.Received{Message: sent})
	arrived, spelling := http.Header{}, map[string]string{}
	for name, values := range header {
		arrived[http.CanonicalHeaderKey(name)] = values
		spelling[http.CanonicalHeaderKey(name)] = name
	}
	got, err := Message(arrived, spelling)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sent, got, sameValue); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
