package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// shop is a sidecar on a Redis of its own, with the entities and the traffic of a shop.
type shop struct {
	*sidecartest.Sidecar

	t   *testing.T
	ctx context.Context
}

// store are the flags that name the store of a shop: a Redis of its own, with a port, because the namespace and the
// address are in the pictures.
func store(t *testing.T) []string {
	t.Helper()
	port := redistest.FreePort(t)
	server := redistest.Start(t, "--port", port)
	t.Cleanup(server.Stop)
	return []string{"--store", "redis://127.0.0.1:" + port, "--namespace", "shop"}
}

// openShop starts a sidecar and creates the entities. Nothing is sent yet.
func openShop(t *testing.T, flags ...string) *shop {
	t.Helper()
	s := &shop{Sidecar: sidecartest.Start(t, flags...), t: t, ctx: t.Context()}
	for _, q := range []struct{ name, options string }{
		{"orders", `{"deadLetteringOnMessageExpiration":true,"lockDuration":"30s"}`},
		{"payments", `{"requiresSession":true}`},
		{"invoices", `{"maxDeliveryCount":3}`},
		{"emails", `{}`},
		{"images", `{"maxSizeInMegabytes":1,"maxMessageSizeInKilobytes":256}`},
		{"reports", `{}`},
		{"returns", `{"forwardTo":"orders"}`},
		{"reminders", `{}`},
		{"archive", `{"status":"RECEIVE_DISABLED"}`},
	} {
		s.must(http.MethodPut, "/v1/queues/"+q.name, q.options)
	}
	for topic, subscriptions := range map[string][]string{
		"events": {"audit", "billing", "search", "warehouse"}, "prices": {"eu", "us"},
	} {
		s.must(http.MethodPut, "/v1/topics/"+topic, `{}`)
		for _, name := range subscriptions {
			s.must(http.MethodPut, "/v1/topics/"+topic+"/subscriptions/"+name, `{}`)
		}
	}
	return s
}

func (s *shop) must(method, path, body string) sidecartest.Answer {
	s.t.Helper()
	return s.Must(s.t, method, path, body)
}

// fill stores what nothing receives during the test.
func (s *shop) fill() {
	s.t.Helper()
	s.send("queues/reports", `{"text":"daily report"}`, 340)
	s.send("queues/images", `{"text":"`+pad(8<<10)+`"}`, 105)
	s.send("queues/reminders", fmt.Sprintf(`{"text":"renew","scheduledEnqueueTime":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)), 64)
	s.send("queues/emails", `{"json":{"to":"ada@example.com","template":"welcome"}}`, 40)
	for _, reason := range []string{"AddressUnknown", "AddressUnknown", "TemplateMissing"} {
		for _, token := range s.tokens("queues/emails", 4) {
			s.must(http.MethodPost, "/v1/queues/emails/messages:deadLetter", fmt.Sprintf(`{"lockTokens":[%q],"reason":%q}`, token, reason))
		}
	}
	for _, token := range s.tokens("queues/emails", 6) {
		s.must(http.MethodPost, "/v1/queues/emails/messages:defer", fmt.Sprintf(`{"lockTokens":[%q]}`, token))
	}
}

func pad(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'x'
	}
	return string(text)
}

// send sends messages to a queue or topic, some in a call.
func (s *shop) send(target, message string, n int) {
	s.t.Helper()
	for ; n > 0; n -= 20 {
		body := `{"messages":[` + message
		for range min(n, 20) - 1 {
			body += "," + message
		}
		s.must(http.MethodPost, "/v1/"+target+"/messages:send", body+`]}`)
	}
}

// tokens receives messages and returns their locks.
func (s *shop) tokens(source string, n int) []string {
	s.t.Helper()
	return tokensIn(s.must(http.MethodPost, "/v1/"+source+"/messages:receive", fmt.Sprintf(`{"maxMessages":%d,"maxWait":"0s"}`, n)))
}

func tokensIn(answer sidecartest.Answer) (tokens []string) {
	var received struct {
		Messages []struct{ LockToken string }
	}
	_ = json.Unmarshal([]byte(answer.Text), &received) // what is malformed has no tokens
	for _, m := range received.Messages {
		tokens = append(tokens, m.LockToken)
	}
	return tokens
}

// open lets producers and workers run until the test ends.
func (s *shop) open() {
	produce := func(target, message string, n int, every time.Duration) {
		s.every(every, func() {
			body := `{"messages":[` + message
			for range n - 1 {
				body += "," + message
			}
			s.Call(s.ctx, http.MethodPost, "/v1/"+target+"/messages:send", body+`]}`)
		})
	}
	work := func(source, verb, more string, n int, every time.Duration) {
		s.every(every, func() {
			got := s.Call(s.ctx, http.MethodPost, "/v1/"+source+"/messages:receive", fmt.Sprintf(`{"maxMessages":%d,"maxWait":"0s"}`, n))
			if tokens := tokensIn(got); len(tokens) > 0 {
				list, _ := json.Marshal(tokens)
				s.Call(s.ctx, http.MethodPost, "/v1/"+source+"/messages:"+verb, fmt.Sprintf(`{"lockTokens":%s%s}`, list, more))
			}
		})
	}
	produce("queues/orders", `{"json":{"order":1042,"sku":"B-7","quantity":2},"properties":{"region":"eu"}}`, 6, 250*time.Millisecond)
	work("queues/orders", "complete", "", 7, 280*time.Millisecond)
	produce("queues/invoices", `{"json":{"invoice":77}}`, 3, 600*time.Millisecond)
	work("queues/invoices", "complete", "", 2, 600*time.Millisecond)
	work("queues/invoices", "deadLetter", `,"reason":"TaxMissing","description":"no rate for the country"`, 1, 3*time.Second)
	produce("topics/events", `{"json":{"event":"order.paid"},"properties":{"total":120}}`, 4, 400*time.Millisecond)
	for _, name := range []string{"audit", "billing", "search"} {
		work("topics/events/subscriptions/"+name, "complete", "", 5, 450*time.Millisecond)
	}
	produce("topics/prices", `{"json":{"sku":"B-7","price":9.5}}`, 2, 900*time.Millisecond)
	work("topics/prices/subscriptions/eu", "complete", "", 4, 900*time.Millisecond)
	for n := range 8 {
		produce("queues/payments", fmt.Sprintf(`{"json":{"amount":10},"sessionId":"customer-%d"}`, n), 1, 1100*time.Millisecond)
	}
	s.every(300*time.Millisecond, s.pay)
	s.every(20*time.Second, func() { s.tokens("queues/emails", 2) }) // whose locks end
}

// pay accepts a session and completes some of its messages.
func (s *shop) pay() {
	var accepted struct{ Session struct{ LockToken string } }
	got := s.Call(s.ctx, http.MethodPost, "/v1/queues/payments/sessions:accept", `{"maxWait":"0s"}`)
	if json.Unmarshal([]byte(got.Text), &accepted) != nil || accepted.Session.LockToken == "" {
		return
	}
	lock := accepted.Session.LockToken
	got = s.Call(s.ctx, http.MethodPost, "/v1/queues/payments/messages:receive", fmt.Sprintf(`{"maxMessages":10,"maxWait":"0s","sessionLockToken":%q}`, lock))
	if tokens := tokensIn(got); len(tokens) > 0 {
		list, _ := json.Marshal(tokens)
		s.Call(s.ctx, http.MethodPost, "/v1/queues/payments/messages:complete", fmt.Sprintf(`{"lockTokens":%s,"sessionLockToken":%q}`, list, lock))
	}
	s.Call(s.ctx, http.MethodPost, "/v1/queues/payments/sessions:close", fmt.Sprintf(`{"lockToken":%q}`, lock))
}

// every calls a function at intervals until the test ends.
func (s *shop) every(pause time.Duration, act func()) {
	done := make(chan struct{})
	ctx, stop := context.WithCancel(s.ctx)
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				act()
			case <-ctx.Done():
				return
			}
		}
	}()
	s.t.Cleanup(func() { stop(); <-done })
}
