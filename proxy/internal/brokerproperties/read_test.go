package brokerproperties

import (
	"math"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

// headers makes headers of pairs as a server gets them, and the spellings of those that are not canonical.
func headers(pairs ...string) (http.Header, map[string]string) {
	header, spelling := http.Header{}, map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		header.Add(pairs[i], pairs[i+1])
		spelling[textproto.CanonicalMIMEHeaderKey(pairs[i])] = pairs[i]
	}
	return header, spelling
}

func lifetime(d time.Duration) *time.Duration { return &d }

var sameValue = cmp.Comparer(func(a, b semantics.Value) bool { return a == b })

func TestREST_2_AcceptedBrokerProperties(t *testing.T) {
	t.Parallel()
	due := time.Date(2027, 1, 2, 15, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		text string
		want semantics.Message
	}{
		"all texts": {
			`{"CorrelationId":"c","Label":"l","MessageId":"m","PartitionKey":"s","ReplyTo":"r","ReplyToSessionId":"rs","SessionId":"s","To":"t","ViaPartitionKey":"v","ForcePersistence":true}`,
			semantics.Message{CorrelationID: "c", Subject: "l", MessageID: "m", PartitionKey: "s", ReplyTo: "r", ReplyToSessionID: "rs", SessionID: "s", To: "t"},
		},
		"escapes":                {`{"Label":"caf\u00e9 \ud83d\ude00 \"\\\u005c"}`, semantics.Message{Subject: `café 😀 "\\`}},
		"empty":                  {`{}`, semantics.Message{}},
		"unknown":                {`{"Foo":[1,{}],"messageid":"x","Size":"x","LockToken":5}`, semantics.Message{}},
		"null":                   {`{"MessageId":null,"TimeToLive":null,"ForcePersistence":null}`, semantics.Message{}},
		"set by the broker":      {`{"SequenceNumber":5,"DeliveryCount":7,"State":"Deferred","LockToken":"x"}`, semantics.Message{}},
		"lifetime":               {`{"TimeToLive":10}`, semantics.Message{TimeToLive: lifetime(10 * time.Second)}},
		"lifetime with fraction": {`{"TimeToLive":0.25}`, semantics.Message{TimeToLive: lifetime(250 * time.Millisecond)}},
		"exact fraction":         {`{"TimeToLive":1.001}`, semantics.Message{TimeToLive: lifetime(1001 * time.Millisecond)}},
		"exponent":               {`{"TimeToLive":6e1}`, semantics.Message{TimeToLive: lifetime(time.Minute)}},
		"never":                  {`{"TimeToLive":922337203685.47754}`, semantics.Message{TimeToLive: lifetime(semantics.Never)}},
		"beyond never":           {`{"TimeToLive":1e999}`, semantics.Message{TimeToLive: lifetime(semantics.Never)}},
		"below zero":             {`{"TimeToLive":-1e999}`, semantics.Message{TimeToLive: lifetime(-time.Second)}},
		"time span":              {`{"TimeToLiveTimeSpan":"0.00:00:40"}`, semantics.Message{TimeToLive: lifetime(40 * time.Second)}},
		"long time span":         {`{"TimeToLiveTimeSpan":"1.02:03:04.5"}`, semantics.Message{TimeToLive: lifetime(26*time.Hour + 3*time.Minute + 4500*time.Millisecond)}},
		"time span without days": {`{"TimeToLiveTimeSpan":"01:30"}`, semantics.Message{TimeToLive: lifetime(90 * time.Minute)}},
		"time span for ever":     {`{"TimeToLiveTimeSpan":"10675199.02:48:05.4775807"}`, semantics.Message{TimeToLive: lifetime(semantics.Never)}},
		"time span below zero":   {`{"TimeToLiveTimeSpan":"-00:00:01"}`, semantics.Message{TimeToLive: lifetime(-1)}},
		"both lifetimes":         {`{"TimeToLiveTimeSpan":"00:00:01","TimeToLive":2}`, semantics.Message{TimeToLive: lifetime(time.Second)}},
		"RFC 1123":               {`{"ScheduledEnqueueTimeUtc":"Sat, 02 Jan 2027 15:04:05 GMT"}`, semantics.Message{ScheduledAt: due}},
		"ISO":                    {`{"ScheduledEnqueueTimeUtc":"2027-01-02T15:04:05Z"}`, semantics.Message{ScheduledAt: due}},
		"ISO with offset":        {`{"ScheduledEnqueueTimeUtc":"2027-01-02T16:04:05.25+01:00"}`, semantics.Message{ScheduledAt: due.Add(250 * time.Millisecond)}},
		"ISO without offset":     {`{"ScheduledEnqueueTimeUtc":"2027-01-02T15:04:05.25"}`, semantics.Message{ScheduledAt: due.Add(250 * time.Millisecond)}},
		".NET's none":            {`{"ScheduledEnqueueTimeUtc":"Mon, 01 Jan 0001 00:00:00 GMT"}`, semantics.Message{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got semantics.Message
			if err := Parse([]byte(c.text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestREST_2_RefusedBrokerProperties(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		``: Header, `x`: Header, `[]`: Header, `null`: Header, `"x"`: Header, `{"a":1`: Header, `{} {}`: Header, "{\"To\":\"\xff\"}": Header,
		`{"MessageId":""}`: "messageId", `{"MessageId":5}`: "MessageId", `{"Label":{}}`: "Label", `{"Label":"\ud800"}`: "Label",
		`{"Label":"\ud800\ud800"}`: "Label", `{"Label":"\udc00x"}`: "Label",
		`{"ForcePersistence":"true"}`: "ForcePersistence", `{"ViaPartitionKey":1}`: "ViaPartitionKey",
		`{"TimeToLive":"10"}`: "TimeToLive", `{"TimeToLive":true}`: "TimeToLive",
		`{"TimeToLiveTimeSpan":40}`: "TimeToLiveTimeSpan", `{"TimeToLiveTimeSpan":"PT40S"}`: "TimeToLiveTimeSpan",
		`{"TimeToLiveTimeSpan":"24:00:00"}`: "TimeToLiveTimeSpan", `{"TimeToLiveTimeSpan":"00:60:00"}`: "TimeToLiveTimeSpan",
		`{"TimeToLiveTimeSpan":"00:00:60"}`: "TimeToLiveTimeSpan", `{"TimeToLiveTimeSpan":"40"}`: "TimeToLiveTimeSpan",
		`{"ScheduledEnqueueTimeUtc":"tomorrow"}`: "ScheduledEnqueueTimeUtc", `{"ScheduledEnqueueTimeUtc":1}`: "ScheduledEnqueueTimeUtc",
		`{"ScheduledEnqueueTimeUtc":"2027-02-30T00:00:00Z"}`: "ScheduledEnqueueTimeUtc", `{"ScheduledEnqueueTimeUtc":"9999-12-31T23:59:59-01:00"}`: "ScheduledEnqueueTimeUtc",
	} {
		wantRefused(t, text, Parse([]byte(text), &semantics.Message{}), field)
	}
}

func wantRefused(t *testing.T, what string, err error, field string) {
	t.Helper()
	if e := semantics.AsError(err); err == nil || e.Code != semantics.InvalidArgument || e.Details[semantics.DetailField] != field {
		t.Errorf("%s: got %v (field %q), want %q refused", what, err, semantics.AsError(err).Details[semantics.DetailField], field)
	}
}

func TestREST_1_CustomHeadersAreProperties(t *testing.T) {
	t.Parallel()
	header, spelling := headers(
		"Quoted", `"High"`, "bare", "12345,ABC", "Escaped", `"caf\u00e9 \"x\""`, "UTF8", "café", "Empty", "", "quotedNumber", `"5"`,
		"int", "42", "NEGATIVE", "-7", "double", "2.0", "exp", "1e3", "large", "18446744073709551615", "yes", "true", "No", "false", "Nothing", "null", "zeros", "007", "True", "True",
		"Priority", "high", "Location", "Berlin", "trace-State", "a=b", PropertiesHeader, `{"with blank":"x","Accept":1,"n":null}`,
		// These are none.
		"Content-Type", "text/plain", "Accept", "*/*", "User-Agent", "curl", "Host", "x", "Authorization", "x", "Cookie", "a=b", "X-Ms-Retrypolicy", "NoRetry",
		"Connection", "close", "Content-Length", "5", "Transfer-Encoding", "chunked", "X-Forwarded-For", "10.0.0.1", "If-Match", "*", "Sec-Fetch-Site", "none",
		"Expect", "100-continue", "Date", "today", "Sidebus-Anything", "x", "Accept-Encoding", "gzip", "Te", "trailers", "Proxy-Connection", "keep-alive",
	)
	m, err := Message(header, spelling)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]semantics.Value{
		"Quoted": semantics.String("High"), "bare": semantics.String("12345,ABC"), "Escaped": semantics.String(`café "x"`),
		"UTF8": semantics.String("café"), "Empty": semantics.String(""), "quotedNumber": semantics.String("5"),
		"int": semantics.Int64(42), "NEGATIVE": semantics.Int64(-7), "double": semantics.Double(2), "exp": semantics.Double(1000), "large": semantics.Uint64(math.MaxUint64),
		"yes": semantics.Bool(true), "No": semantics.Bool(false), "Nothing": semantics.Null(), "zeros": semantics.String("007"), "True": semantics.String("True"),
		"Priority": semantics.String("high"), "Location": semantics.String("Berlin"), "trace-State": semantics.String("a=b"),
		"with blank": semantics.String("x"), "Accept": semantics.Int64(1), "n": semantics.Null(),
	}
	if diff := cmp.Diff(want, m.Properties, sameValue); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if m.ContentType != "text/plain" {
		t.Errorf("content type %q", m.ContentType)
	}
}

func TestREST_1_RefusedHeaders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs []string
		field string
	}{
		"no string":        {[]string{"P", `"x`}, "properties[P]"},
		"two strings":      {[]string{"P", `"x","y"`}, "properties[P]"},
		"half a pair":      {[]string{"P", `"\ud83d"`}, "properties[P]"},
		"large integer":    {[]string{"P", "18446744073709551616"}, "properties[P]"},
		"large double":     {[]string{"P", "1e999"}, "properties[P]"},
		"twice":            {[]string{"P", "1", "p", "2"}, "properties[p]"},
		"in both headers":  {[]string{"P", "1", PropertiesHeader, `{"P":2}`}, "properties[P]"},
		"properties":       {[]string{PropertiesHeader, `[1]`}, PropertiesHeader},
		"two properties":   {[]string{PropertiesHeader, `{}`, PropertiesHeader, `{}`}, PropertiesHeader},
		"a list":           {[]string{PropertiesHeader, `{"a":[1]}`}, "properties[a]"},
		"an object":        {[]string{PropertiesHeader, `{"a":{}}`}, "properties[a]"},
		"broker, twice":    {[]string{Header, `{}`, Header, `{}`}, Header},
		"broker, no JSON":  {[]string{Header, `{`}, Header},
		"broker, no UTF-8": {[]string{Header, "{\"To\":\"\xfe\"}"}, Header},
	} {
		header, spelling := headers(c.pairs...)
		_, err := Message(header, spelling)
		wantRefused(t, name, err, c.field)
	}
}

func TestREST_12_LineBreaksAreRefused(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{`\r\n`, `\n`, `\u000d`} {
		for name, c := range map[string]struct {
			pairs []string
			field string
		}{
			"value":           {[]string{"P", `"a` + broken + `X: y"`}, "properties[P]"},
			"value in JSON":   {[]string{PropertiesHeader, `{"p":"a` + broken + `"}`}, "properties[p]"},
			"name":            {[]string{PropertiesHeader, `{"` + broken + `":1}`}, "properties[" + unquoted(t, broken) + "]"},
			"broker property": {[]string{Header, `{"Label":"a` + broken + `"}`}, "Label"},
			"message id":      {[]string{Header, `{"MessageId":"a` + broken + `"}`}, "MessageId"},
		} {
			header, spelling := headers(c.pairs...)
			_, err := Message(header, spelling)
			wantRefused(t, name, err, c.field)
		}
		_, err := Batch([]byte(`[{},{"UserProperties":{"p":"` + broken + `"}}]`))
		wantRefused(t, "batch", err, "properties[p]")
	}
}

func unquoted(t *testing.T, escaped string) string {
	t.Helper()
	s, err := parseString([]byte(`"` + escaped + `"`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestREST_3_Batch(t *testing.T) {
	t.Parallel()
	got, err := Batch([]byte(`[
		{"Body":"one","BrokerProperties":{"Label":"M1","TimeToLiveTimeSpan":"0.00:00:40"},"UserProperties":{"Priority":"High","n":5,"d":0.5,"b":true,"z":null}},
		{"Body":"b25l","IsBodyBase64":true},
		{"Body":"two","IsBodyBase64":false,"Unknown":[]},
		{}, {"Body":null,"BrokerProperties":null,"UserProperties":null,"IsBodyBase64":null}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	none := map[string]semantics.Value{}
	want := []*semantics.Message{
		{
			Body: []byte("one"), BodyKind: semantics.BodyText, Subject: "M1", TimeToLive: lifetime(40 * time.Second), Properties: map[string]semantics.Value{
				"Priority": semantics.String("High"), "n": semantics.Int64(5), "d": semantics.Double(0.5), "b": semantics.Bool(true), "z": semantics.Null(),
			},
		},
		{Body: []byte("one"), Properties: none},
		{Body: []byte("two"), BodyKind: semantics.BodyText, Properties: none},
		{BodyKind: semantics.BodyText, Properties: none},
		{BodyKind: semantics.BodyText, Properties: none},
	}
	if diff := cmp.Diff(want, got, sameValue); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestREST_3_RefusedBatches(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		``: "body", `{}`: "body", `null`: "body", `[{}`: "body", "[{\"Body\":\"\xff\"}]": "body",
		`[{},5]`: "body", `[{},null]`: "body", `[{},[]]`: "body",
		`[{},{"Body":5}]`: "Body", `[{},{"Body":{}}]`: "Body", `[{},{"Body":"*","IsBodyBase64":true}]`: "Body", `[{},{"IsBodyBase64":"true"}]`: "IsBodyBase64",
		`[{},{"BrokerProperties":[]}]`: Header, `[{},{"BrokerProperties":{"MessageId":""}}]`: "messageId",
		`[{},{"UserProperties":5}]`: "UserProperties", `[{},{"UserProperties":{"a":[]}}]`: "properties[a]",
	} {
		_, err := Batch([]byte(text))
		wantRefused(t, text, err, field)
		if index := semantics.AsError(err).Details[semantics.DetailIndex]; strings.HasPrefix(text, "[{},") && index != "1" {
			t.Errorf("%s: index %q", text, index)
		}
	}
	if got, err := Batch([]byte(`[]`)); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
