package proxy_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// properties are values of every type at their edges, and their JSON.
var properties = map[string]struct {
	value *sidebusv1.Value
	json  string
}{
	"null":                {&sidebusv1.Value{Kind: &sidebusv1.Value_NullValue{}}, `null`},
	"string":              {&sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{StringValue: "a \"b\" \\ é \u2028 \x00 </x>"}}, "\"a \\\"b\\\" \\\\ é \u2028 \\u0000 </x>\""},
	"string empty":        {&sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{}}, `""`},
	"bool":                {&sidebusv1.Value{Kind: &sidebusv1.Value_BoolValue{BoolValue: true}}, `true`},
	"bool false":          {&sidebusv1.Value{Kind: &sidebusv1.Value_BoolValue{}}, `false`},
	"byte":                {&sidebusv1.Value{Kind: &sidebusv1.Value_ByteValue{ByteValue: 255}}, `{"type":"byte","value":255}`},
	"sbyte":               {&sidebusv1.Value{Kind: &sidebusv1.Value_SbyteValue{SbyteValue: -128}}, `{"type":"sbyte","value":-128}`},
	"char":                {&sidebusv1.Value{Kind: &sidebusv1.Value_CharValue{CharValue: '€'}}, `{"type":"char","value":"€"}`},
	"char zero":           {&sidebusv1.Value{Kind: &sidebusv1.Value_CharValue{}}, `{"type":"char","value":"\u0000"}`},
	"char wide":           {&sidebusv1.Value{Kind: &sidebusv1.Value_CharValue{CharValue: 0x1F600}}, `{"type":"char","value":"😀"}`},
	"char surrogate":      {&sidebusv1.Value{Kind: &sidebusv1.Value_CharValue{CharValue: 0xD800}}, `{"type":"char","value":55296}`},
	"int16":               {&sidebusv1.Value{Kind: &sidebusv1.Value_Int16Value{Int16Value: math.MinInt16}}, `{"type":"int16","value":-32768}`},
	"uint16":              {&sidebusv1.Value{Kind: &sidebusv1.Value_Uint16Value{Uint16Value: math.MaxUint16}}, `{"type":"uint16","value":65535}`},
	"int32":               {&sidebusv1.Value{Kind: &sidebusv1.Value_Int32Value{Int32Value: math.MinInt32}}, `{"type":"int32","value":-2147483648}`},
	"uint32":              {&sidebusv1.Value{Kind: &sidebusv1.Value_Uint32Value{Uint32Value: math.MaxUint32}}, `{"type":"uint32","value":4294967295}`},
	"int64":               {&sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{Int64Value: math.MinInt64}}, `-9223372036854775808`},
	"int64 max":           {&sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{Int64Value: math.MaxInt64}}, `9223372036854775807`},
	"uint64":              {&sidebusv1.Value{Kind: &sidebusv1.Value_Uint64Value{Uint64Value: math.MaxUint64}}, `{"type":"uint64","value":"18446744073709551615"}`},
	"float":               {&sidebusv1.Value{Kind: &sidebusv1.Value_FloatValue{FloatValue: 0.1}}, `{"type":"float","value":0.1}`},
	"float infinite":      {&sidebusv1.Value{Kind: &sidebusv1.Value_FloatValue{FloatValue: float32(math.Inf(1))}}, `{"type":"float","value":"Infinity"}`},
	"double":              {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: 0.1}}, `0.1`},
	"double whole":        {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: 2}}, `{"type":"double","value":2}`},
	"double minus zero":   {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: math.Copysign(0, -1)}}, `{"type":"double","value":-0}`},
	"double tiny":         {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: 5e-324}}, `5e-324`},
	"double huge":         {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: math.MaxFloat64}}, `{"type":"double","value":1.7976931348623157e+308}`},
	"double infinite":     {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: math.Inf(-1)}}, `{"type":"double","value":"-Infinity"}`},
	"double no number":    {&sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: math.NaN()}}, `{"type":"double","value":"NaN"}`},
	"decimal":             {&sidebusv1.Value{Kind: &sidebusv1.Value_DecimalValue{DecimalValue: "-12345678901234567890.10"}}, `{"type":"decimal","value":"-12345678901234567890.10"}`},
	"uuid":                {&sidebusv1.Value{Kind: &sidebusv1.Value_UuidValue{UuidValue: nobodysToken}}, `{"type":"uuid","value":"` + nobodysToken + `"}`},
	"uri":                 {&sidebusv1.Value{Kind: &sidebusv1.Value_UriValue{UriValue: "https://x/?a=b&c"}}, `{"type":"uri","value":"https://x/?a=b&c"}`},
	"datetime":            {&sidebusv1.Value{Kind: &sidebusv1.Value_DatetimeValue{DatetimeValue: "0001-01-01T00:00:00.1234567Z"}}, `{"type":"datetime","value":"0001-01-01T00:00:00.1234567Z"}`},
	"datetimeoffset":      {&sidebusv1.Value{Kind: &sidebusv1.Value_DatetimeoffsetValue{DatetimeoffsetValue: "2026-01-02T03:04:05+05:30"}}, `{"type":"datetimeoffset","value":"2026-01-02T03:04:05+05:30"}`},
	"timespan":            {&sidebusv1.Value{Kind: &sidebusv1.Value_TimespanValue{TimespanValue: math.MinInt64}}, `{"type":"timespan","value":"-922337203685.4775808s"}`},
	"timespan tick":       {&sidebusv1.Value{Kind: &sidebusv1.Value_TimespanValue{TimespanValue: -1}}, `{"type":"timespan","value":"-0.0000001s"}`},
	"bytes":               {&sidebusv1.Value{Kind: &sidebusv1.Value_BytesValue{BytesValue: []byte{0, 0xff, 0xfe}}}, `{"type":"bytes","value":"AP/+"}`},
	"bytes empty":         {&sidebusv1.Value{Kind: &sidebusv1.Value_BytesValue{BytesValue: []byte{}}}, `{"type":"bytes","value":""}`},
	"a name \"quoted\" é": {&sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{}}, `0`},
}

// Every type goes in over gRPC, out over HTTP, in again over HTTP as it came out, and out over gRPC.
func TestMSG_13_RoundTripKeepsTypeAndValue(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		roundTrip(t, memstore.New())
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		roundTrip(t, redistest.Open(t, redisstore.Options{}))
	})
}

func roundTrip(t *testing.T, kept store) {
	t.Helper()
	s := start(t, kept)
	sent := &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{}}
	for name, p := range properties {
		sent.Properties[name] = p.value
	}
	if _, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{sent}}); err != nil {
		t.Fatal(err)
	}
	var over struct {
		Messages []struct{ Properties map[string]json.RawMessage }
	}
	text := s.post(t, "receive", `{"maxWait":"0s","mode":"RECEIVE_AND_DELETE"}`)
	if err := json.Unmarshal([]byte(text), &over); err != nil || len(over.Messages) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	for name, p := range properties {
		if got := string(over.Messages[0].Properties[name]); got != p.json {
			t.Errorf("%s: got %s, want %s", name, got, p.json)
		}
	}
	again, _, _ := strings.Cut(text[strings.Index(text, `"properties":`):], `,"body"`)
	s.post(t, "send", `{"messages":[{`+again+`}]}`)
	var got *sidebusv1.ReceivedMessage
	for _, m := range s.receive(t) {
		got = m
	}
	if diff := cmp.Diff(sent.GetProperties(), got.GetProperties(), protocmp.Transform(), cmp.Comparer(sameFloat)); diff != "" {
		t.Errorf("(-sent +got)\n%s", diff)
	}
}

func sameFloat(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// Other ways to write the same in JSON.
func TestMSG_13_JSONAcceptsMore(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	forms := map[string]string{
		`2.0`:                                                     `{"type":"double","value":2}`,
		`1e3`:                                                     `{"type":"double","value":1000}`,
		`{"type":"int64","value":"5"}`:                            `5`,
		`{"type":"string","value":"x"}`:                           `"x"`,
		`{"type":"bool","value":true}`:                            `true`,
		`{"type":"null"}`:                                         `null`,
		`{"type":"null","value":null}`:                            `null`,
		`{"value":"1","type":"uint64"}`:                           `{"type":"uint64","value":"1"}`,
		`{"type":"uint64","value":1}`:                             `{"type":"uint64","value":"1"}`,
		`{"type":"int16","value":"7"}`:                            `{"type":"int16","value":7}`,
		`{"type":"decimal","value":1.50}`:                         `{"type":"decimal","value":"1.50"}`,
		`{"type":"timespan","value":"PT1M"}`:                      `{"type":"timespan","value":"60s"}`,
		`{"type":"timespan","value":"1h0m0.5s"}`:                  `{"type":"timespan","value":"3600.5s"}`,
		`{"type":"datetime","value":"2026-01-01T01:00:00+01:00"}`: `{"type":"datetime","value":"2026-01-01T00:00:00Z"}`,
		`{"type":"uuid","value":"0B9C3F3E-6A0E-4D2C-9D8E-2F6F3F0F8C11"}`: `{"type":"uuid","value":"` + nobodysToken + `"}`,
		`{"type":"bytes","value":"_w"}`:                                  `{"type":"bytes","value":"/w=="}`,
		`"\u00e9\/\ud83d\ude00\ufffd"`:                                   `"é/😀�"`,
	}
	for in, want := range forms {
		s.post(t, "send", `{"messages":[{"properties":{"p":`+in+`}}]}`)
		body := s.post(t, "receive", `{"maxWait":"0s","mode":"RECEIVE_AND_DELETE"}`)
		if !strings.Contains(body, `"properties":{"p":`+want+`}`) {
			t.Errorf("%s: got %s, want %s", in, body, want)
		}
	}
}

func TestBodyKindsOnBothWires(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	cases := []struct{ json, text string }{
		{`"body":"AP8="`, "\x00\xff"},
		{`"body":""`, ""},
		{`"text":"a\nb"`, "a\nb"},
		{`"text":""`, ""},
		{"\"json\":{ \"b\" : 1,\n\t\"a\":[ 1.0 , \"\\u00e9\" ] }", "{ \"b\" : 1,\n\t\"a\":[ 1.0 , \"\\u00e9\" ] }"},
		{`"json":null`, "null"},
		{`"json":"x"`, `"x"`},
		{`"json":123456789012345678901234567890`, "123456789012345678901234567890"},
	}
	for _, c := range cases {
		s.post(t, "send", `{"messages":[{`+c.json+`}]}`)
		if body := s.post(t, "peek", `{}`); !strings.Contains(body, `"properties":{},`+c.json+`,"sequenceNumber"`) {
			t.Errorf("HTTP: sent %s, got %s", c.json, body)
		}
		got := s.receive(t)[0]
		if text := string(got.GetBody()) + got.GetText() + got.GetJson(); text != c.text {
			t.Errorf("gRPC: sent %s, got %q", c.json, text)
		}
		s.post(t, "complete", `{"lockTokens":["`+got.GetLockToken()+`"]}`)
	}
}

func TestMSG_4_BrokersFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.post(t, "send", `{"messages":[{"text":"x","correlationId":"c"}]}`)
	var taken struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(s.post(t, "receive", `{"maxWait":"0s"}`)), &taken); err != nil {
		t.Fatal(err)
	}
	s.post(t, "send", `{"messages":[`+string(taken.Messages[0])+`]}`) // as it was received
	got := s.receive(t)
	if len(got) != 1 || got[0].GetSequenceNumber() != 2 || got[0].GetDeliveryCount() != 1 || got[0].GetCorrelationId() != "c" {
		t.Errorf("got %v", got)
	}
}

func TestNeverIsAbsent(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, never := range []string{`"never"`, `null`, `"P10675199DT2H48M5.4775807S"`} {
		mustPut(t, s, "/v1/queues/orders", `{}`)
		a := s.call(t, http.MethodPatch, queuePath, `{"defaultMessageTimeToLive":"10s"}`)
		if !strings.Contains(a.body, `"defaultMessageTimeToLive":"10s"`) {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		a = s.call(t, http.MethodPatch, queuePath, `{"defaultMessageTimeToLive":`+never+`}`)
		if a.status != http.StatusOK || strings.Contains(a.body, "defaultMessageTimeToLive") {
			t.Errorf("%s: got %d %s", never, a.status, a.body)
		}
	}
}

func TestRequestThatCannotBeDecodedIsInvalid(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	err := s.conn.Invoke(t.Context(), sidebusv1.Messages_Send_FullMethodName, []byte("\x0a\xffgarbage"), &[]byte{}, grpc.ForceCodec(rawCodec{}))
	if status.Code(err) != codes.InvalidArgument || infoOf(t, err).GetReason() != "INVALID_ARGUMENT" {
		t.Errorf("got %v", err)
	}
}

func TestRECV_6_DefaultsOnBothWires(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.send(t, "one")
	s.send(t, "two")
	response, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders})
	if err != nil || len(response.GetMessages()) != 1 {
		t.Errorf("gRPC: got %v, %v; want one message", response, err)
	}
	if body := s.post(t, "receive", ``); strings.Count(body, `"text"`) != 1 {
		t.Errorf("HTTP: got %s, want one message", body)
	}
	if body := s.post(t, "receive", `{"maxWait":"0s"}`); body != `{"messages":[]}` {
		t.Errorf("got %s, want an empty list", body)
	}
	response, err = s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
		Source: orders, MaxMessages: proto.Int32(1000), MaxWait: durationpb.New(1),
	})
	if err != nil || len(response.GetMessages()) != 0 {
		t.Errorf("got %v, %v", response, err)
	}
}
