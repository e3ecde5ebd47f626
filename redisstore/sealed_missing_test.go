package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// missing is a queue with a plain message, two that a sidecar cannot open, and another plain one.
func missing(t *testing.T) (with, without sealedSidecar) {
	t.Helper()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with, without = openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, payloadKeys(t, "other"))
	must(t, makeQueue(t, with.Store, "orders", func(o *semantics.Options) { o.MaxDeliveryCount = 2 }))
	for i, s := range []sealedSidecar{without, with, with, without} {
		_, err := s.Store.Send(t.Context(), "orders", messagesNamed(fmt.Sprint(i+1)))
		must(t, err)
	}
	return with, without
}

// wantMissing checks that an error names the key.
func wantMissing(t *testing.T, what string, err error) {
	t.Helper()
	e := semantics.AsError(err)
	if e == nil || e.Code != semantics.PayloadKeyMissing || e.Details[semantics.DetailKey] != "new" || e.RetryAfter == 0 {
		t.Errorf("%s: %v, want PAYLOAD_KEY_MISSING that names the key and when to ask again", what, err)
	}
}

// A message whose key is missing stays where it is, however often it is asked for; what is before it is received, what
// is behind it does not overtake it, and a sidecar with the key gets it for the first time.
func TestCRYPT_4_WithoutItsKeyAMessageStays(t *testing.T) {
	t.Parallel()
	with, without := missing(t)
	ctx := t.Context()
	first, err := without.take(t, orders, 10)
	if err != nil || bodies(first) != "body 1" {
		t.Fatalf("got %q, %v; want the message in front", bodies(first), err)
	}
	for range 5 { // more often than it may be delivered
		for _, mode := range []semantics.Mode{semantics.PeekLock, semantics.ReceiveAndDelete} {
			d, err := without.Broker.Receive(ctx, orders, broker.ReceiveOptions{MaxMessages: 10, MaxWait: time.Second, Mode: mode})
			wantMissing(t, fmt.Sprint("receive ", d), err)
		}
	}
	peeked, err := without.Broker.Peek(ctx, orders, 1, 10, semantics.ShowAll)
	if err != nil || len(peeked) != 4 || bodies(peeked) != "body 1   body 4" || !strings.Contains(peeked[1].Subject, `payload key "new"`) {
		t.Errorf("peek: %q, %+v, %v", bodies(peeked), peeked, err)
	}
	got, err := with.take(t, orders, 2)
	if err != nil || bodies(got) != "body 2 body 3" || got[0].DeliveryCount != 1 || got[1].DeliveryCount != 1 {
		t.Fatalf("with the key: %q, %v", bodies(got), err)
	}
	_, err = with.Broker.Defer(ctx, orders, tokensOf(got), nil)
	must(t, err)
	numbers := []int64{got[0].SequenceNumber, got[1].SequenceNumber}
	_, err = without.ReceiveDeferred(ctx, orders, numbers, semantics.PeekLock)
	wantMissing(t, "by number", err)
	d, err := with.ReceiveDeferred(ctx, orders, numbers, semantics.PeekLock)
	if err != nil || bodies(d.Messages) != "body 2 body 3" || d.Messages[0].DeliveryCount != 1 {
		t.Fatalf("by number, with the key: %+v, %v", d.Messages[0], err)
	}
	runtime, err := with.Store.Runtime(ctx, semantics.QueueKind, "orders")
	if err != nil || runtime.DeadLetter != 0 {
		t.Errorf("%+v, %v: a message became a dead letter", runtime, err)
	}
}

// Nor is it forwarded, activated or resubmitted, until a sidecar with the key does it.
func TestCRYPT_4_WithoutItsKeyAMessageIsNotMoved(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t)), Now: clock.Now}
	with, without := openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, nil)
	ctx := t.Context()
	must(t, makeQueue(t, with.Store, "archive"))
	must(t, makeQueue(t, with.Store, "onward", func(o *semantics.Options) { o.ForwardTo = "archive" }))
	_, _, err := with.Store.CreateEntity(ctx, semantics.TopicKind, "news", semantics.DefaultOptions())
	must(t, err)
	_, _, err = with.Store.CreateSubscription(ctx, "news/subscriptions/a", semantics.DefaultOptions(), []semantics.Rule{everything})
	must(t, err)
	_, err = with.Broker.Send(ctx, semantics.Target{Path: "onward"}, messagesNamed("1"))
	must(t, err)
	later := messagesNamed("2")
	later[0].ScheduledAt = clock.Now().Add(time.Minute)
	_, err = with.Broker.Send(ctx, semantics.Target{Path: "news", IsTopic: true}, later)
	must(t, err)
	clock.Advance(time.Hour)
	wantMissing(t, "forward", without.Forward(ctx, semantics.Source{Path: "onward"}))
	wantMissing(t, "activate", without.ActivateDue(ctx, "news"))
	must(t, with.Forward(ctx, semantics.Source{Path: "onward"}))
	must(t, with.ActivateDue(ctx, "news"))
	for path, want := range map[string]string{"archive": "body 1", "news/subscriptions/a": "body 2"} {
		source := semantics.Source{Path: path}
		got, err := with.take(t, source, 10)
		if err != nil || bodies(got) != want {
			t.Fatalf("%s has %q, %v; want %q", path, bodies(got), err, want)
		}
		_, err = with.Broker.DeadLetter(ctx, source, tokensOf(got), broker.DeadLetterOptions{})
		must(t, err)
	}
	dead := semantics.Source{Path: "archive", SubQueue: semantics.DeadLetterQueue}
	if results, _, err := without.Broker.Resubmit(ctx, dead, broker.ResubmitOptions{}); err != nil || len(results) != 0 {
		t.Errorf("all are resubmitted: %+v, %v; want none", results, err)
	}
	results, _, err := without.Broker.Resubmit(ctx, dead, broker.ResubmitOptions{Numbers: []int64{1}})
	if err != nil || len(results) != 1 || results[0].Code != semantics.PayloadKeyMissing {
		t.Errorf("one is resubmitted: %+v, %v; want PAYLOAD_KEY_MISSING in its row", results, err)
	}
	_, err = without.take(t, dead, 1)
	wantMissing(t, "dead letter", err)
	if results, _, err := with.Broker.Resubmit(ctx, dead, broker.ResubmitOptions{Numbers: []int64{1}}); err != nil || len(results) != 1 || results[0].Code != "" {
		t.Errorf("with the key: %+v, %v", results, err)
	}
}

// A session keeps its order, and its state is never replaced by a client that could not read it.
func TestCRYPT_4_SessionsWithoutTheKey(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with, without := openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, nil)
	ctx := t.Context()
	must(t, makeQueue(t, with.Store, "orders", func(o *semantics.Options) { o.RequiresSession = true }))
	for i, s := range []sealedSidecar{without, with, without} {
		messages := messagesNamed(fmt.Sprint(i + 1))
		messages[0].SessionID = "x"
		_, err := s.Store.Send(ctx, "orders", messages)
		must(t, err)
	}
	session, err := without.Broker.AcceptSession(ctx, "orders", broker.AcceptOptions{SessionID: "x"})
	must(t, err)
	got, err := without.take(t, session.Source(), 3)
	if err != nil || bodies(got) != "body 1" {
		t.Fatalf("got %q, %v; want the message in front", bodies(got), err)
	}
	_, err = without.take(t, session.Source(), 3)
	wantMissing(t, "receive", err)
	outcomes := without.Store.Turn(ctx, "orders", []semantics.Turn{{Session: session.Source().SessionLock, Receive: 3}})
	if len(outcomes) != 1 || len(outcomes[0].Batch.Messages) != 2 || semantics.CodeOf(outcomes[0].Batch.Messages[0].Unreadable) != semantics.PayloadKeyMissing {
		t.Errorf("turn: %+v", outcomes)
	}
	must(t, without.Broker.CloseSession(ctx, session.Source()))

	owner, err := with.Broker.AcceptSession(ctx, "orders", broker.AcceptOptions{})
	must(t, err)
	_, err = with.Broker.SetSessionState(ctx, owner.Source(), []byte("state"), nil)
	must(t, err)
	_, err = without.Broker.SessionState(ctx, owner.Source())
	wantMissing(t, "state", err)
	must(t, with.Broker.CloseSession(ctx, owner.Source()))
	_, err = without.Broker.AcceptSession(ctx, "orders", broker.AcceptOptions{SessionID: "x"})
	wantMissing(t, "accept", err)
	_, err = without.Broker.AcceptSession(ctx, "orders", broker.AcceptOptions{})
	wantMissing(t, "accept next", err)
	owner, err = with.Broker.AcceptSession(ctx, "orders", broker.AcceptOptions{}) // it has no holder
	if err != nil || owner.Session == nil || string(owner.Session.State.Data) != "state" {
		t.Fatalf("with the key: %+v, %v", owner, err)
	}
	if got, err = with.take(t, owner.Source(), 3); err != nil || bodies(got) != "body 1 body 2 body 3" || got[1].DeliveryCount != 1 {
		t.Errorf("with the key: %q, %v", bodies(got), err)
	}
}
