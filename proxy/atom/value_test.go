package atom_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// signFor returns a token for a resource, as the SDKs sign it.
func signFor(resource, rule, key string) string {
	escaped, expiry := url.QueryEscape(strings.ToLower(resource)), fmt.Sprint(time.Now().Add(time.Hour).Unix())
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(escaped + "\n" + expiry))
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return "SharedAccessSignature sr=" + escaped + "&sig=" + signature + "&se=" + expiry + "&skn=" + rule
}

// Every type of a value is returned as clients can read it, and what they return is the same value, or its text.
func TestREST_10_ValuesOfFilters(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	s.put("/news", "<TopicDescription></TopicDescription>")
	s.put("/news/Subscriptions/eu", "<SubscriptionDescription></SubscriptionDescription>")
	value := func(v semantics.Value, err error) semantics.Value {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i, c := range []struct {
		value      semantics.Value
		kind, text string
	}{
		{semantics.String("a<b"), "string", "a&lt;b"},
		{semantics.Bool(true), "boolean", "true"},
		{value(semantics.IntegerOf(semantics.TypeInt32, -5)), "int", "-5"},
		{semantics.Int64(7), "int", "7"},
		{semantics.Int64(1 << 40), "long", "1099511627776"},
		{semantics.Uint64(1 << 63), "unsignedLong", "9223372036854775808"},
		{semantics.Double(0.5), "double", "0.5"},
		{value(semantics.TextOf(semantics.TypeDecimal, "1.50")), "decimal", "1.50"},
		{value(semantics.TextOf(semantics.TypeDateTime, "2026-01-02T03:04:05.6Z")), "dateTime", "2026-01-02T03:04:05.6Z"},
		{value(semantics.IntegerOf(semantics.TypeTimeSpan, 15_000_000)), "duration", "PT1.5S"},
		{value(semantics.IntegerOf(semantics.TypeTimeSpan, -36_000_000_000)), "duration", "-PT1H"},
		{value(semantics.IntegerOf(semantics.TypeTimeSpan, 0)), "duration", "PT0S"},
		{value(semantics.TextOf(semantics.TypeUUID, "00112233-4455-6677-8899-aabbccddeeff")), "string", "00112233-4455-6677-8899-aabbccddeeff"},
		{value(semantics.IntegerOf(semantics.TypeChar, 'x')), "string", "x"},
	} {
		name := fmt.Sprint("r", i)
		rule := semantics.Rule{Name: name, Filter: semantics.RuleFilter{
			Correlation: &semantics.CorrelationFilter{Properties: map[string]semantics.Value{"p": c.value}},
		}}
		if _, _, err := s.broker.CreateRule(t.Context(), "news/Subscriptions/eu", rule); err != nil {
			t.Fatal(err)
		}
		path := "/news/Subscriptions/eu/Rules/" + name
		element := fmt.Sprintf(`<Value i:type="d6p1:%s" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">%s</Value>`, c.kind, c.text)
		read := s.want(200, get, path, "").body
		if !strings.Contains(read, element) {
			t.Errorf("%v: %s", c.value, read)
		}
		s.want(200, put, path, read, "If-Match", "*") // a client returns what it has read
		if again := s.want(200, get, path, "").body; again != read {
			t.Errorf("%v became %s", c.value, again)
		}
	}
	for _, bad := range []string{`"l28:int">x`, `"l28:boolean">maybe`, `"l28:dateTime">x`, `"l28:QName">x`, `"l28:duration">P1Y`} {
		s.want(400, put, "/news/Subscriptions/eu/Rules/bad", entry(`<RuleDescription><Filter p4:type="CorrelationFilter"><Properties>`+
			`<KeyValueOfstringanyType><Key>p</Key><Value p4:type=`+bad+`</Value></KeyValueOfstringanyType></Properties></Filter></RuleDescription>`))
	}
}
