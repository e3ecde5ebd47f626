package compat_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/semantics"
)

// sign makes a token as Service Bus' own clients do.
func sign(resource, rule, key string, expiry time.Time) string {
	escaped, seconds := url.QueryEscape(resource), fmt.Sprint(expiry.Unix())
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(escaped + "\n" + seconds))
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return "SharedAccessSignature sr=" + escaped + "&sig=" + signature + "&se=" + seconds + "&skn=" + url.QueryEscape(rule)
}

var allKeys = access.Keys{
	"all":    {Primary: "first", Secondary: "second", Claims: access.Send | access.Listen | access.Manage},
	"sender": {Primary: "s3nd", Claims: access.Send},
	"reader": {Primary: "r3ad", Claims: access.Listen},
	"news":   {Primary: "n", Claims: access.Send | access.Listen, Entity: "News"},
}

func TestAUTH_5_Tokens(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *compat.Config) { c.Authorizer = access.SAS(func() access.Keys { return allKeys }) })
	s.create(semantics.TopicKind, "news", semantics.Options{})
	s.create(semantics.SubscriptionKind, "news/Subscriptions/eu", semantics.Options{})
	s.create(semantics.QueueKind, "news/late", semantics.Options{})
	const (
		all   = "https://ns.servicebus.windows.net/"
		other = "orders"
		toSub = "/news/subscriptions/eu/messages/head?timeout=0"
	)
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	good := sign(all, "all", "first", in(time.Minute))
	for _, c := range []struct {
		name, method, path string
		token              []string
		status             int
	}{
		{"none", post, "/orders/messages", nil, 401},
		{"primary key", post, "/orders/messages", []string{good}, 201},
		{"secondary key", post, "/orders/messages", []string{sign(all, "all", "second", in(time.Minute))}, 201},
		{"scheme without case", post, "/orders/messages", []string{strings.Replace(good, "SharedAccessSignature", "sharedaccesssignature", 1)}, 201},
		{"two", post, "/orders/messages", []string{good, good}, 401},
		{"other scheme", post, "/orders/messages", []string{"Bearer x"}, 401},
		{"no token", post, "/orders/messages", []string{"SharedAccessSignature"}, 401},
		{"a field missing", post, "/orders/messages", []string{good[:strings.Index(good, "&skn")]}, 401},
		{"a field twice", post, "/orders/messages", []string{good + "&se=9999999999"}, 401},
		{"a field without value", post, "/orders/messages", []string{sign("", "all", "first", in(time.Minute))}, 401},
		{"a field unknown", post, "/orders/messages", []string{good + "&x=1"}, 401},
		{"wrong key", post, "/orders/messages", []string{sign(all, "all", "wrong", in(time.Minute))}, 401},
		{"empty key", post, "/orders/messages", []string{sign(all, "sender", "", in(time.Minute))}, 401},
		{"unknown rule", post, "/orders/messages", []string{sign(all, "nobody", "", in(time.Minute))}, 401},
		{"key of another rule", post, "/orders/messages", []string{sign(all, "sender", "first", in(time.Minute))}, 401},
		{"signature that is no base64", post, "/orders/messages", []string{strings.Replace(good, "&sig=", "&sig=*", 1)}, 401},
		{"signature cut", post, "/orders/messages", []string{strings.Replace(good, "%3D&se", "&se", 1)}, 401},
		{"later expiry than signed", post, "/orders/messages", []string{strings.Replace(good, "&se=", "&se=9", 1)}, 401},
		{"other resource than signed", post, "/orders/messages", []string{strings.Replace(good, "sr=https", "sr=http", 1)}, 401},
		{"expired", post, "/orders/messages", []string{sign(all, "all", "first", in(0))}, 401},
		{"resource: the entity", post, "/orders/messages", []string{sign("http://127.0.0.1:7420/orders", "all", "first", in(time.Minute))}, 201},
		{"resource: without case", post, "/orders/messages", []string{sign("sb://x/ORDERS/", "all", "first", in(time.Minute))}, 201},
		{"resource: the whole address", post, "/orders/messages", []string{sign("http://x/orders/messages?timeout=5", "all", "first", in(time.Minute))}, 201},
		{"resource: without a scheme", post, "/orders/messages", []string{sign("x/orders", "all", "first", in(time.Minute))}, 201},
		{"resource: a host without a scheme", post, "/orders/messages", []string{sign("ns.servicebus.windows.net", "all", "first", in(time.Minute))}, 201},
		{"resource: a host and a port", post, "/orders/messages", []string{sign("localhost:7420/", "all", "first", in(time.Minute))}, 201},
		{"resource: a name without a host", post, "/orders/messages", []string{sign("orders", "all", "first", in(time.Minute))}, 401},
		{"resource: what it lies under", post, "/news/late/messages", []string{sign("http://x/news", "all", "first", in(time.Minute))}, 201},
		{"resource: half a name", post, "/orders/messages", []string{sign("http://x/ord", "all", "first", in(time.Minute))}, 401},
		{"resource: something below", post, "/orders/messages", []string{sign("http://x/orders/messages/head", "all", "first", in(time.Minute))}, 401},
		{"resource: another", post, "/news/messages", []string{sign("http://x/"+other, "all", "first", in(time.Minute))}, 401},
		{"resource: the subscription", post, toSub, []string{sign("http://x/news/Subscriptions/EU", "all", "first", in(time.Minute))}, 204},
		{"resource: another subscription", post, toSub, []string{sign("http://x/news/Subscriptions/us", "all", "first", in(time.Minute))}, 401},
		{"resource: an escaped name", post, "/news%5Clate/messages", []string{sign("http://x/news%2flate", "all", "first", in(time.Minute))}, 201},
		{"claim: send", post, "/orders/messages", []string{sign(all, "sender", "s3nd", in(time.Minute))}, 201},
		{"claim: no listen", post, "/orders/messages/head?timeout=0", []string{sign(all, "sender", "s3nd", in(time.Minute))}, 401},
		{"claim: no listen, for good", del, "/orders/messages/head?timeout=0", []string{sign(all, "sender", "s3nd", in(time.Minute))}, 401},
		{"claim: no settling", del, "/orders/messages/1/" + nobodysToken, []string{sign(all, "sender", "s3nd", in(time.Minute))}, 401},
		{"claim: no renewal", post, "/orders/messages/1/" + nobodysToken, []string{sign(all, "sender", "s3nd", in(time.Minute))}, 401},
		{"claim: no unlock", put, "/orders/messages/1/" + nobodysToken, []string{sign(all, "sender", "s3nd", in(time.Minute))}, 401},
		{"claim: listen", del, "/orders/messages/99/" + nobodysToken, []string{sign(all, "reader", "r3ad", in(time.Minute))}, 404},
		{"claim: no send", post, "/orders/messages", []string{sign(all, "reader", "r3ad", in(time.Minute))}, 401},
		{"AUTH-2 entity", post, "/news/messages", []string{sign(all, "news", "n", in(time.Minute))}, 201},
		{"AUTH-2 its subscription", post, toSub, []string{sign(all, "news", "n", in(time.Minute))}, 204},
		{"AUTH-2 its dead letters", post, "/news/subscriptions/eu/$DeadLetterQueue/messages/head?timeout=0", []string{sign(all, "news", "n", in(time.Minute))}, 204},
		{"AUTH-2 its transfer dead letters", post, "/news/subscriptions/eu/$Transfer/$DeadLetterQueue/messages/head?timeout=0", []string{sign(all, "news", "n", in(time.Minute))}, 204},
		{"AUTH-2 another entity", post, "/orders/messages", []string{sign(all, "news", "n", in(time.Minute))}, 401},
		{"AUTH-2 an entity of longer name", post, "/news/late/messages", []string{sign(all, "news", "n", in(time.Minute))}, 401},
		{"ERR-5 missing entity", post, "/none/messages", nil, 401},
		{"ERR-5 bad name", post, "/n*ne/messages", []string{"Bearer x"}, 401},
		{"missing entity", post, "/none/messages", []string{good}, 410},
	} {
		var pairs []string
		for _, token := range c.token {
			pairs = append(pairs, "Authorization", token)
		}
		a := s.call(c.method, c.path, "x", pairs...)
		if c.path == toSub && a.status == 201 {
			a.status = 204 // whether a message is there does not matter here
		}
		if a.status != c.status || (a.status == 401) != (a.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: got %d %v %s, want %d", c.name, a.status, a.header, a.body, c.status)
		}
		reason := semantics.Unauthenticated
		if strings.HasPrefix(c.name, "claim:") || strings.HasPrefix(c.name, "AUTH-2") {
			reason = semantics.PermissionDenied
		}
		if got := a.header.Get("Sidebus-Error"); a.status == 401 && got != string(reason) {
			t.Errorf("%s: got %s, want %s", c.name, got, reason)
		}
		if strings.Contains(a.body, "servicebus.windows.net") {
			t.Errorf("%s: the answer repeats the token", c.name)
		}
	}
	s.want(http.StatusTeapot, post, "/v1/queues/orders/messages:send", "") // the native API has its own authorization
}

func TestAUTH_5_ReplacingAKeyVoidsItsTokens(t *testing.T) {
	t.Parallel()
	var keys atomic.Pointer[access.Keys]
	keys.Store(&allKeys)
	s := start(t, func(c *compat.Config) { c.Authorizer = access.SAS(func() access.Keys { return *keys.Load() }) })
	tokens := []string{sign("http://x", "all", "first", time.Now().Add(time.Hour)), sign("http://x", "all", "second", time.Now().Add(time.Hour))}
	s.want(http.StatusCreated, post, "/orders/messages", "", "Authorization", tokens[0])
	keys.Store(&access.Keys{"all": {Primary: "third", Secondary: "second", Claims: access.Send}})
	s.want(http.StatusUnauthorized, post, "/orders/messages", "", "Authorization", tokens[0])
	s.want(http.StatusCreated, post, "/orders/messages", "", "Authorization", tokens[1])
	keys.Store(&access.Keys{})
	s.want(http.StatusUnauthorized, post, "/orders/messages", "", "Authorization", tokens[1])
}

func TestAUTH_1_RulesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]access.Key{
		"":                {Primary: "x", Claims: access.Send},
		"no key":          {Secondary: "x", Claims: access.Send},
		"no claim":        {Primary: "x"},
		"Manage alone":    {Primary: "x", Claims: access.Manage},
		"Manage and Send": {Primary: "x", Claims: access.Manage | access.Send},
		"bad entity":      {Primary: "x", Claims: access.Send, Entity: "a*"},
		"a subscription":  {Primary: "x", Claims: access.Send, Entity: "a/Subscriptions/b"},
	} {
		if k.Check(name) == nil {
			t.Errorf("%q passes", name)
		}
	}
	for name, k := range allKeys {
		if err := k.Check(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without keys there is no authorization.
func TestAUTH_5_OffByDefault(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.want(http.StatusCreated, post, "/orders/messages", "", "Authorization", "SharedAccessSignature sr=x")
}
