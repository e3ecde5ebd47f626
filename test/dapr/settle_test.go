package dapr

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
)

func TestDAPR_2_RetryCountsWaitsAndDeadLetters(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		const pause = 500 * time.Millisecond
		p := start(t, setup{metadata: map[string]string{
			"entityKind": kind, "maxDeliveryCount": "3", "redeliveryDelayInMs": strconv.Itoa(int(pause.Milliseconds())),
		}})
		p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
		p.publish(t, "orders", "tea", "MessageId", "m-1")
		var answered time.Time
		for n := 1; n <= 3; n++ {
			d := p.next(t, "tea")
			if got := d.Metadata["deliverycount"]; got != strconv.Itoa(n) {
				t.Errorf("delivery %d: got the count %s", n, got)
			}
			if waited := time.Since(answered); n > 1 && waited < pause {
				t.Errorf("delivery %d came after %s, want %s or more", n, waited, pause)
			}
			answered = time.Now()
			d.Answer(daprtest.Retry)
			if n == 1 { // what the next sidecar would see
				p.await(t, source, "lockedCount", 0)
				if seen := p.peek(t, source, "NONE"); len(seen) == 1 && seen[0].DeliveryCount != 1 {
					t.Errorf("the count in Redis is %d, want 1", seen[0].DeliveryCount)
				}
			}
		}
		dead := p.onlyDeadLetter(t, source)
		if dead.DeadLetterReason != "MaxDeliveryCountExceeded" || dead.MessageID != "m-1" {
			t.Errorf("got the dead letter %+v", dead)
		}
	})
}

func TestDAPR_2_RetryOverHTTPAndStream(t *testing.T) {
	t.Parallel()
	perApp(t, func(t *testing.T, kind string) {
		p := start(t, setup{metadata: map[string]string{"maxDeliveryCount": "2"}})
		p.run(t, kind, daprtest.Subscription{Topic: "orders"})
		p.publish(t, "orders", "tea")
		p.next(t, "tea").Answer(daprtest.Retry)
		p.next(t, "tea").Answer(daprtest.Retry)
		if dead := p.onlyDeadLetter(t, subscription("orders")); dead.DeadLetterReason != "MaxDeliveryCountExceeded" {
			t.Errorf("got the dead letter %+v", dead)
		}
	})
}

// Dapr reports a drop to the component as a success.
func TestDAPR_2_DropRemoves(t *testing.T) {
	t.Parallel()
	perApp(t, func(t *testing.T, kind string) {
		p := start(t, setup{})
		p.run(t, kind, daprtest.Subscription{Topic: "orders"})
		p.publish(t, "orders", "tea")
		p.next(t, "tea").Answer(daprtest.Drop)
		p.awaitEmpty(t, subscription("orders"))
	})
}

func TestDAPR_2_DeadLetterTopicOfDaprKeepsTheSession(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{overGRPC, overHTTP} {
		for _, outcome := range []daprtest.Outcome{daprtest.Retry, daprtest.Drop} {
			t.Run(kind+" "+string(outcome), func(t *testing.T) {
				t.Parallel()
				p := start(t, setup{metadata: map[string]string{"requireSessions": "true", "requiresDuplicateDetection": "true"}})
				p.run(t, kind, daprtest.Subscription{Topic: "orders", DeadLetterTopic: "dead"}, daprtest.Subscription{Topic: "dead"})
				p.publish(t, "orders", "tea", "SessionId", "s-1", "MessageId", "m-1", "Label", "new", "colour", "green")
				p.next(t, "tea").Answer(outcome)
				d := p.next(t, "tea")
				for name, want := range map[string]string{
					"sessionid": "s-1", "label": "new", "colour": "green", "deliverycount": "1", // of the new message
					"originmessageid": "m-1", "origindeliverycount": "1",
				} {
					if got := d.Metadata[name]; got != want {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				if n := p.count(t, subscription("dead"), "activeMessageCount"); n != 1 {
					t.Errorf("%d messages are on the topic for dead letters, want 1", n)
				}
				d.Answer(daprtest.Success)
				p.awaitEmpty(t, subscription("orders"))
				p.awaitEmpty(t, subscription("dead"))
			})
		}
	}
}

// The dead letters of the entity itself as Dapr's topic for them: the message moves there, and a drop is no loss.
func TestDAPR_2_DeadLetterTopicThatIsNative(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		for app, outcome := range map[string]daprtest.Outcome{overGRPC: daprtest.Drop, overHTTP: daprtest.Retry, overStream: daprtest.Drop} {
			t.Run(app, func(t *testing.T) {
				t.Parallel()
				p := start(t, setup{metadata: map[string]string{"entityKind": kind, "requireSessions": "true"}})
				p.run(t, app, daprtest.Subscription{Topic: "orders", DeadLetterTopic: "orders/$deadletterqueue"})
				p.publish(t, "orders", "tea", "MessageId", "m-1", "SessionId", "s-1")
				p.next(t, "tea").Answer(outcome)
				dead := p.onlyDeadLetter(t, source)
				if dead.DeadLetterReason != "DaprDeadLetterTopic" || dead.MessageID != "m-1" || dead.SessionID != "s-1" {
					t.Errorf("got the dead letter %+v", dead)
				}
				p.await(t, source, "activeMessageCount", 0)
				p.await(t, source, "totalMessageCount", 1)
			})
		}
	})
}

func TestDAPR_1_SubscribingToDeadLetters(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		for _, app := range []string{overGRPC, overHTTP, overStream} {
			t.Run(app, func(t *testing.T) {
				t.Parallel()
				p := start(t, setup{metadata: map[string]string{"entityKind": kind, "maxDeliveryCount": "1"}})
				dead := daprtest.Subscription{Topic: "orders/$deadletterqueue"}
				if app == overStream {
					p.run(t, overStream, daprtest.Subscription{Topic: "orders"})
				} else {
					p.run(t, app, daprtest.Subscription{Topic: "orders"}, dead)
				}
				p.publish(t, "orders", "tea")
				p.next(t, "tea").Answer(daprtest.Retry)
				if app == overStream {
					p.await(t, source, "deadLetterMessageCount", 1)
					p.app = daprtest.Stream(t, p.daprd, dead)
				}
				d := p.next(t, "tea")
				if app != overStream && d.Metadata["deadletterreason"] != "MaxDeliveryCountExceeded" {
					t.Errorf("got the metadata %v", d.Metadata)
				}
				d.Answer(daprtest.Success)
				p.awaitEmpty(t, source)
			})
		}
	})
}

// A lock lasts while the app works and while a message waits behind another: on a runtime that hands over one at a
// time, two of these wait.
func TestDAPR_6_LocksLastWhileTheAppWorks(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, kind, source, session string) {
		t.Parallel()
		p := start(t, setup{metadata: map[string]string{
			"entityKind": kind, "lockDurationInSec": "5", "requireSessions": strconv.FormatBool(session != ""),
		}})
		p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
		for i := range 3 {
			p.publish(t, "orders", strconv.Itoa(i), "SessionId", session)
		}
		const work = 8 * time.Second // longer than the lock
		timer := time.NewTimer(work)
		defer timer.Stop()
		var inHand []*daprtest.Delivery
		for isBusy := true; isBusy; {
			select {
			case d := <-p.app.Deliveries():
				inHand = append(inHand, d)
			case <-timer.C:
				isBusy = false
			}
		}
		want := 1
		if daprtest.IsConcurrent() && session == "" {
			want = 2 // one to work on and one that is ready
		}
		if len(inHand) != want {
			t.Errorf("the app has %d messages, want %d", len(inHand), want)
		}
		seen := map[string]bool{}
		for n := 0; n < 3; n++ {
			if n == len(inHand) {
				inHand = append(inHand, p.app.Next(t))
			}
			d := inHand[n]
			seen[string(d.Data)] = true
			if got := d.Metadata["deliverycount"]; got != "1" {
				t.Errorf("%q came as delivery %s, want 1", d.Data, got)
			}
			d.Answer(daprtest.Success)
		}
		p.awaitEmpty(t, source)
		if len(seen) != 3 {
			t.Errorf("got %v, want three messages", seen)
		}
	}
	perEntity(t, func(t *testing.T, kind, source string) {
		t.Run("plain", func(t *testing.T) { test(t, kind, source, "") })
		t.Run("session", func(t *testing.T) { test(t, kind, source, "s") })
	})
}

// An app that does not answer in time has failed, although Dapr cannot be told to let go.
func TestDAPR_2_HandlerTimeout(t *testing.T) {
	t.Parallel()
	metadata := map[string]string{"handlerTimeoutInSec": "1", "redeliveryDelayInMs": "10"}
	namespace := redistest.Namespace()
	first := start(t, setup{metadata: metadata, namespace: namespace})
	second := start(t, setup{metadata: metadata, namespace: namespace})
	for _, p := range []*pod{first, second} {
		p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	}
	first.publish(t, "orders", "tea")
	app := daprtest.Merge(t, first.app, second.app)
	late := app.Next(t)
	again := app.Next(t)
	if n, err := strconv.Atoi(again.Metadata["deliverycount"]); err != nil || n < 2 {
		t.Errorf("it comes again as delivery %q", again.Metadata["deliverycount"])
	}
	late.Answer(daprtest.Retry) // which counts for nothing
	again.Answer(daprtest.Success)
	first.awaitEmpty(t, subscription("orders"))
}

// What lies in a runtime behind a message that the app hangs on another pod gets, although that runtime cannot be told
// to let go.
func TestDAPR_2_HungAppKeepsNothing(t *testing.T) {
	t.Parallel()
	for _, sessions := range []bool{false, true} {
		t.Run(fmt.Sprintf("sessions %t", sessions), func(t *testing.T) {
			t.Parallel()
			metadata := map[string]string{"handlerTimeoutInSec": "1", "redeliveryDelayInMs": "10", "requireSessions": strconv.FormatBool(sessions)}
			namespace := redistest.Namespace()
			first := start(t, setup{metadata: metadata, namespace: namespace})
			first.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
			first.publish(t, "orders", "tea", "SessionId", "a")
			first.publish(t, "orders", "milk", "SessionId", "b")
			hung := first.app.Next(t)
			second := start(t, setup{metadata: metadata, namespace: namespace})
			second.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
			second.finishAll(t, "tea", "milk")
			second.awaitEmpty(t, subscription("orders"))
			hung.Answer(daprtest.Success)
		})
	}
}

// A runtime that hands over all it has gets more and more, up to what the metadata says.
func TestDAPR_1_ConcurrentRuntimesGetMore(t *testing.T) {
	t.Parallel()
	if !daprtest.IsConcurrent() {
		t.Skip("the runtime hands over one message at a time")
	}
	const most = 12
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue", "maxActiveMessages": strconv.Itoa(most)}})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	const messages = 60
	for i := range messages {
		p.publish(t, "orders", strconv.Itoa(i))
	}
	var inHand []*daprtest.Delivery
	reached := 0
	for left := messages; left > 0; left-- {
		for {
			d := p.app.Within(t, 100*time.Millisecond)
			if d == nil {
				break
			}
			inHand = append(inHand, d)
		}
		if reached = max(reached, len(inHand)); len(inHand) == 0 {
			t.Fatalf("%d messages are left and nothing comes", left)
		}
		last := len(inHand) - 1
		inHand[last].Answer(daprtest.Success)
		inHand = inHand[:last]
	}
	if reached != most {
		t.Errorf("the app had %d messages at a time, want %d", reached, most)
	}
	p.awaitEmpty(t, queue("orders"))
}
