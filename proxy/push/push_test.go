package push

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

func TestRECV_14_TheRequestCarriesTheMessage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		var got *http.Request
		var body []byte
		b.begin(Handler{}, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Clone(context.WithoutCancel(r.Context()))
			body, _ = io.ReadAll(r.Body)
		})
		b.sendMessage("orders", &semantics.Message{
			MessageID: "m", Subject: "é", ContentType: "image/png", Body: []byte("\x00\xff"), Properties: map[string]semantics.Value{
				"Color": semantics.String("red"), "n": semantics.Int64(5), "with blank": semantics.Bool(true),
				"TraceParent": semantics.String("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), "tracestate": semantics.Int64(1),
			},
		})
		synctest.Wait()
		if got == nil {
			t.Fatal("no call came")
		}
		for name, want := range map[string]string{
			"Content-Type": "image/png", "Content-Length": "2", "Color": `"red"`, "N": "5", "Sidebus-Properties": `{"with blank":true}`,
			"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "1",
			"Sidebus-Source": "queues/orders", "User-Agent": "sidebus", "Sidebus-Session-Lock-Token": "", "Accept-Encoding": "",
		} {
			if values := got.Header.Values(name); strings.Join(values, "|") != want {
				t.Errorf("%s: got %q, want %q", name, values, want)
			}
		}
		var properties map[string]any
		if err := json.Unmarshal([]byte(got.Header.Get("BrokerProperties")), &properties); err != nil {
			t.Fatal(err)
		}
		if properties["MessageId"] != "m" || properties["Label"] != "é" || properties["DeliveryCount"] != 1.0 || properties["LockToken"] == nil {
			t.Errorf("got %v", properties)
		}
		if got.Method != http.MethodPost || got.URL.Path != "/on-order" || got.Host != "app.test:8080" || string(body) != "\x00\xff" {
			t.Errorf("got %s %s at %s with %q", got.Method, got.URL, got.Host, body)
		}
		b.wantCounts("orders", nothing)
		b.wantMeasured("sidebus_pushes_total", 1, "complete")
		b.wantMeasured("sidebus_messages_settled_total", 1, "complete")
		b.wantMeasured("sidebus_push_duration_seconds", 1)
		b.wantMeasured("sidebus_messages_received_total", 1)
		b.wantMeasured("sidebus_handler_reachable", 1)
	})
}

func TestRECV_14_WhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answer  http.HandlerFunc
		counts  string
		outcome string
	}{
		{"200", answering(200), nothing, "complete"},
		{"204", answering(204), nothing, "complete"},
		{"299", answering(299, "Retry-After", "5"), nothing, "complete"},
		{"202", answering(202), "available 0 delayed 0 locked 1 deferred 0 dead 0", "left"},
		// the only delivery that is permitted
		{"400", answering(400), "available 0 delayed 0 locked 0 deferred 0 dead 1", "abandon"},
		{"500", answering(500), "available 0 delayed 0 locked 0 deferred 0 dead 1", "abandon"},
		{"redirect", answering(302, "Location", "http://app.test:8080/elsewhere"), "available 0 delayed 0 locked 0 deferred 0 dead 1", "abandon"},
		{"not modified", answering(304), "available 0 delayed 0 locked 0 deferred 0 dead 1", "abandon"},
		{"dead letter", answering(200, "Sidebus-Settle", "dead-letter"), "available 0 delayed 0 locked 0 deferred 0 dead 1", "dead_letter"},
		{"defer", answering(500, "Sidebus-Settle", "Defer"), "available 0 delayed 0 locked 0 deferred 1 dead 0", "defer"},
		{"defer and later", answering(202, "Sidebus-Settle", "defer"), "available 0 delayed 0 locked 0 deferred 1 dead 0", "defer"},
		{"unknown verb", answering(200, "Sidebus-Settle", "forget"), "available 0 delayed 0 locked 0 deferred 0 dead 1", "abandon"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{MaxDeliveryCount: 1}, []string{"maxDeliveryCount"})
				b.ok(err)
				b.begin(Handler{}, c.answer)
				b.send("orders", "one")
				synctest.Wait()
				b.wantCounts("orders", c.counts)
				b.wantMeasured("sidebus_pushes_total", 1, c.outcome)
				if got := len(b.app.tries()); got != 1 {
					t.Errorf("%d connections", got)
				}
			})
		})
	}
}

func TestSETTLE_6_DeadLettersHaveTheReasonOfTheApp(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", semantics.MaxDeadLetterText)
	for _, c := range []struct{ reason, description, wantReason, wantDescription string }{
		{"BadOrder", "no customer", "BadOrder", "no customer"},
		{"UTF-8''caf%C3%A9", "utf-8''50%25", "café", "50%"},
		{"caf\xc3\xa9", "50% of it", "café", "50% of it"},
		{"\xff", "UTF-8''%zz", "\uFFFD", "UTF-8''%zz"},
		{long + "x", "", long, ""},
	} {
		inBubble(t, func(t *testing.T, b *bed) {
			b.begin(Handler{}, answering(400, "Sidebus-Settle", "dead-letter", "Sidebus-Reason", c.reason, "Sidebus-Description", c.description))
			b.send("orders", "one")
			synctest.Wait()
			dead := b.peek(semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue})
			if len(dead) != 1 || dead[0].DeadLetterReason != c.wantReason || dead[0].DeadLetterErrorDescription != c.wantDescription {
				t.Errorf("%q, %q: got %+v", c.reason, c.description, dead)
			}
		})
	}
}

func TestSETTLE_11_RetryAfterDelays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		var calls atomic.Int64
		b.begin(Handler{}, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				w.Header().Set("Retry-After", "90")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		b.send("orders", "one")
		pass(89 * time.Second)
		b.wantCounts("orders", "available 1 delayed 1 locked 0 deferred 0 dead 0")
		if m := b.peek(semantics.Source{Path: "orders"})[0]; m.DeliveryCount != 1 || calls.Load() != 1 {
			t.Errorf("delivery count %d, %d calls", m.DeliveryCount, calls.Load())
		}
		pass(2 * time.Second)
		b.wantCounts("orders", nothing)
	})
}

func TestSETTLE_11_RetryAfterIsSecondsOrAnInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // where it is the first instant of the year 2000
		for text, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "99999999": semantics.MaxDelay, "18446744073709551616": semantics.MaxDelay, "": -1, "-5": -1, "soon": -1, "1.5": -1,
			"Sat, 01 Jan 2000 00:02:00 GMT": 2 * time.Minute, "Fri, 31 Dec 1999 00:00:00 GMT": 0, "Sun, 01 Jan 2090 00:00:00 GMT": semantics.MaxDelay,
		} {
			if got := retryAfter(text); (got == nil) != (want < 0) || got != nil && *got != want {
				t.Errorf("%q: got %v, want %s", text, got, want)
			}
		}
	})
}

func TestRECV_13_NoMoreCallsThanPermitted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{MaxConcurrent: 3}, app.ServeHTTP)
		b.send("orders", "a", "b", "c", "d", "e")
		if got := strings.Fields(app.seen()); len(got) != 3 {
			t.Errorf("calls: %v", got)
		}
		app.answer("b", 200)
		app.answer("a", 500)
		// what was abandoned comes first
		if got := app.seen(); !strings.HasSuffix(got, " d a") && !strings.HasSuffix(got, " a d") {
			t.Errorf("calls: %s", got)
		}
		b.wantCounts("orders", "available 1 delayed 0 locked 3 deferred 0 dead 0")
	})
}

// 202 leaves the message to the app: its lock is renewed for the time of a call, and its place is free when it is
// settled.
func TestRECV_13_LeftToTheApp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		tokens := make(chan semantics.LockToken, 10)
		b.begin(Handler{MaxConcurrent: 1, Timeout: 4 * testLock}, func(w http.ResponseWriter, r *http.Request) {
			var properties struct{ LockToken string }
			_ = json.Unmarshal([]byte(r.Header.Get("BrokerProperties")), &properties)
			token, _ := semantics.ParseLockToken(properties.LockToken)
			tokens <- token
			w.WriteHeader(http.StatusAccepted)
		})
		b.send("orders", "one", "two")
		pass(3 * testLock)
		b.wantCounts("orders", "available 1 delayed 0 locked 1 deferred 0 dead 0")
		if len(tokens) != 1 {
			t.Fatalf("%d calls", len(tokens))
		}
		if codes, err := b.Complete(t.Context(), semantics.Source{Path: "orders"}, []semantics.LockToken{<-tokens}); err != nil || codes[0] != "" {
			t.Fatalf("got %v, %v", codes, err)
		}
		synctest.Wait()
		if len(tokens) != 1 {
			t.Fatalf("%d calls", len(tokens))
		}
		pass(6 * testLock)
		if len(tokens) != 2 { // the app did not settle it in time: a delivery more
			t.Fatalf("%d calls", len(tokens))
		}
		if m := b.peek(semantics.Source{Path: "orders"})[0]; m.DeliveryCount != 1 {
			t.Errorf("delivery count %d", m.DeliveryCount)
		}
	})
}

func TestSESS_25_OneAtATimeAndInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{Source: "queues/tales", MaxConcurrentSessions: 2, MaxConcurrent: 1}, app.ServeHTTP)
		b.send("tales", "a/1", "a/2", "b/1", "c/1")
		if got := app.seen(); got != "a/1 b/1" && got != "b/1 a/1" {
			t.Fatalf("calls: %s", got)
		}
		app.answer("a/1", 500) // the same comes again, before the next
		app.answer("a/1", 200)
		app.answer("a/2", 200)
		if got := strings.Fields(app.seen()); !slices.Equal(got[2:4], []string{"a/1", "a/2"}) || len(got) != 5 || got[4] != "c/1" {
			t.Errorf("calls: %v", got)
		}
		app.answer("b/1", 200)
		app.answer("c/1", 200)
		b.wantCounts("tales", nothing)
	})
}

// A message of a session that is left to the app holds the rest up; the app can settle it, since it has the tokens of
// both.
func TestSESS_26_LeftToTheAppInASession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		var source semantics.Source
		var token semantics.LockToken
		var calls atomic.Int64
		b.begin(Handler{Source: "queues/tales"}, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) > 1 {
				return
			}
			var properties struct{ LockToken string }
			_ = json.Unmarshal([]byte(r.Header.Get("BrokerProperties")), &properties)
			session, err := semantics.ParseLockToken(r.Header.Get("Sidebus-Session-Lock-Token"))
			if err != nil {
				t.Error(err)
			}
			source = semantics.Source{Path: "tales", SessionLock: session}
			token, _ = semantics.ParseLockToken(properties.LockToken)
			w.WriteHeader(http.StatusAccepted)
		})
		b.send("tales", "a/1", "a/2")
		pass(3 * testLock)
		if calls.Load() != 1 {
			t.Fatalf("%d calls", calls.Load())
		}
		if codes, err := b.Complete(t.Context(), source, []semantics.LockToken{token}); err != nil || codes[0] != "" {
			t.Fatalf("got %v, %v", codes, err)
		}
		synctest.Wait()
		b.wantCounts("tales", nothing)
	})
}

func TestTOPIC_1_ASubscriptionIsPushed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		_, err := b.CreateEntity(t.Context(), semantics.TopicKind, "a/news", semantics.Options{}, nil)
		b.ok(err)
		_, err = b.CreateEntity(t.Context(), semantics.SubscriptionKind, "a/news/Subscriptions/eu", semantics.Options{}, nil)
		b.ok(err)
		app := &held{}
		b.begin(Handler{Source: "topics/a%2Fnews/subscriptions/eu"}, app.ServeHTTP)
		_, err = b.Send(t.Context(), semantics.ToTopic("a/news"), []*semantics.Message{{Body: []byte("one")}})
		b.ok(err)
		app.answer("one", 200)
		counts, err := b.Runtime(t.Context(), semantics.SubscriptionKind, "a/news/Subscriptions/eu")
		b.ok(err)
		if counts.Total() != 0 {
			t.Errorf("got %+v", counts)
		}
	})
}

func TestERR_6_TheStoreIsDownWhenTheAppHasAnswered(t *testing.T) {
	t.Parallel()
	down := semantics.Errorf(semantics.StoreUnavailable, "the store is down")
	for name, failure := range map[string]*semantics.Error{"nothing done": down, "done": down.With(semantics.DetailOutcome, semantics.OutcomeUnknown)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.store.failure.Store(failure)
				b.begin(Handler{}, answering(200))
				b.send("orders", "one")
				pass(10 * time.Second)
				b.store.failure.Store(nil)
				pass(settling.MaxBackoff)
				b.wantCounts("orders", nothing)
				b.wantMeasured("sidebus_pushes_total", 1, "complete")
				b.wantLogged("cannot settle messages", 0)
			})
		})
	}
}

// However long settling fails, the app's answer is not given up: it counts if the lock still holds then.
func TestERR_6_TheStoreStaysDown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		timeout, outage time.Duration // the lock is renewed until the timeout
		isLost          bool
	}{
		"the lock holds":   {5 * time.Minute, 4 * time.Minute, false},
		"the lock expires": {time.Second, testLock + time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(_ *testing.T, b *bed) {
				b.store.failure.Store(semantics.Errorf(semantics.StoreUnavailable, "the store is down"))
				b.begin(Handler{Timeout: test.timeout}, answering(200))
				b.send("orders", "one")
				pass(test.outage)
				b.store.failure.Store(nil)
				pass(settling.MaxBackoff)
				b.wantCounts("orders", nothing)
				b.wantLogged("cannot settle messages", 0)
				b.wantMeasured("sidebus_pushes_total", 1, "complete")
				if test.isLost { // the second delivery is the one that is completed
					b.wantMeasured("sidebus_pushes_total", 1, "lock_lost")
				}
			})
		})
	}
}

func TestERR_6_TheSidecarStopsWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.store.failure.Store(semantics.Errorf(semantics.StoreUnavailable, "the store is down"))
		b.begin(Handler{}, answering(200))
		b.send("orders", "one")
		pass(2 * time.Second)
		began := time.Now()
		b.stop()
		<-b.over
		if took := time.Since(began); took > settling.StopTimeout {
			t.Errorf("the stop took %s, want at most %s", took, settling.StopTimeout)
		}
		b.wantLogged("cannot settle messages", 1)
		b.wantMeasured("sidebus_pushes_total", 1, "unsettled")
	})
}

// An answer without end is an answer all the same.
func TestRECV_14_AnswersAreNotReadForLong(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"slow": 1, "large": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.begin(Handler{}, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusOK)
					for r.Context().Err() == nil {
						_, _ = w.Write(make([]byte, size))
						_ = http.NewResponseController(w).Flush()
						if name == "slow" {
							<-time.After(time.Second / 4)
						}
					}
				})
				b.send("orders", "one")
				pass(2 * time.Second)
				b.wantCounts("orders", nothing)
			})
		})
	}
}

func TestRECV_13_ManyFailuresAreNotALineEach(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.begin(Handler{}, answering(503))
		for i := range 50 {
			b.send("orders", fmt.Sprint(i))
		}
		synctest.Wait()
		b.wantLogged("the app failed a message", 1)
		pass(obs.FailureLogInterval)
		synctest.Wait()
		b.wantLogged("the app failed a message", 2)
		b.wantLogged("suppressed=498", 1)
		b.wantLogged("the app responded 503 Service Unavailable", 2)
	})
}
