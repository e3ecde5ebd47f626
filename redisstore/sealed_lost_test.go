package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// dying is a store whose sidecar is killed before it ends a transfer.
type dying struct{ *redisstore.Store }

func (dying) EndTransfer(context.Context, semantics.Transfer, []semantics.Fate) error {
	return errors.New("killed")
}

// A sidecar resubmits to a topic and is killed when the letters have arrived there. One without the key leaves them
// aside: it cannot say what has arrived. One with the key removes them, and none arrives twice.
func TestCRYPT_4_AResubmissionUnderWayWaitsForTheKey(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with, without := openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, nil)
	ctx, copies := t.Context(), semantics.Source{Path: "news/subscriptions/a"}
	must(t, makeQueue(t, with.Store, "orders"))
	_, _, err := with.Store.CreateEntity(ctx, semantics.TopicKind, "news", semantics.DefaultOptions())
	must(t, err)
	_, _, err = with.Store.CreateSubscription(ctx, copies.Path, semantics.DefaultOptions(), []semantics.Rule{everything})
	must(t, err)
	for i, s := range []sealedSidecar{without, with, without} {
		_, err = s.Store.Send(ctx, "orders", messagesNamed(fmt.Sprint(i+1)))
		must(t, err)
	}
	got, err := with.take(t, orders, 3)
	must(t, err)
	_, err = with.Broker.DeadLetter(ctx, orders, tokensOf(got), broker.DeadLetterOptions{})
	must(t, err)
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	toNews := broker.ResubmitOptions{Target: "news", TargetIsTopic: true}
	killed := brokerOver(dying{with.Store})
	t.Cleanup(killed.Close)
	if _, _, err := killed.Resubmit(ctx, dead, toNews); err == nil {
		t.Fatal("it was not killed")
	}
	_, _, err = without.Broker.Resubmit(ctx, dead, toNews)
	wantMissing(t, "resubmit", err)
	if results, _, err := with.Broker.Resubmit(ctx, dead, toNews); err != nil || len(results) != 0 {
		t.Errorf("with the key: %+v, %v; want that nothing is left", results, err)
	}
	if got, err = with.take(t, copies, 10); err != nil || bodies(got) != "body 1 body 2 body 3" {
		t.Errorf("the topic has %q, %v; want each once", bodies(got), err)
	}
}

// tales is a queue with sessions, of which some have a message and a state that has the name of the session.
func tales(t *testing.T, s sealedSidecar, sessions ...string) {
	t.Helper()
	ctx := t.Context()
	must(t, makeQueue(t, s.Store, "tales", func(o *semantics.Options) { o.RequiresSession = true }))
	for _, id := range sessions {
		messages := messagesNamed(id)
		messages[0].SessionID = id
		_, err := s.Store.Send(ctx, "tales", messages)
		must(t, err)
		held, err := s.Broker.AcceptSession(ctx, "tales", broker.AcceptOptions{SessionID: id})
		must(t, err)
		_, err = s.Broker.SetSessionState(ctx, held.Source(), []byte(id), nil)
		must(t, err)
		must(t, s.Broker.CloseSession(ctx, held.Source()))
	}
}

// acceptNext accepts the next session, and returns its id and its state.
func acceptNext(t *testing.T, s sealedSidecar) (string, error) {
	t.Helper()
	next, err := s.Broker.AcceptSession(t.Context(), "tales", broker.AcceptOptions{})
	if err != nil {
		return "", err
	}
	must(t, s.Broker.CloseSession(t.Context(), next.Source()))
	return next.Session.ID + "=" + string(next.Session.State.Data), nil
}

// Sessions whose states a sidecar cannot read hold up no others, however often they come first; all of them stay free.
func TestCRYPT_4_AcceptNextPassesBySessionsWithoutTheKey(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with, without := openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, payloadKeys(t, "other"))
	tales(t, with, "a", "b", "c")
	_, err := acceptNext(t, without)
	wantMissing(t, "accept next", err)
	tales(t, without, "d")
	for range 5 {
		if got, err := acceptNext(t, without); err != nil || got != "d=d" {
			t.Fatalf("got %q, %v; want the session that it can read", got, err)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		held, err := with.Broker.AcceptSession(t.Context(), "tales", broker.AcceptOptions{SessionID: id})
		if err != nil || string(held.Session.State.Data) != id {
			t.Errorf("%s with the key: %+v, %v", id, held, err)
		}
	}
}

// A session whose state was changed in Redis is reachable again when an operator unblocks it, without that state. It
// holds up no other session, and a state that only lacks its key stays.
func TestCRYPT_5_UnblockDropsAStateThatWasChanged(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with, without := openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, payloadKeys(t, "other"))
	ctx, client := t.Context(), rawClient(t)
	tales(t, with, "a", "b", "cut")
	states := "sb:{" + options.Namespace + "/tales}:session_states"
	state, err := client.HGet(ctx, states, "a").Result()
	must(t, err)
	changed := []byte(state)
	changed[len(changed)-1] ^= 1
	must(t, client.HSet(ctx, states, "a", changed, "cut", state[:1]).Err())
	accept := func(s sealedSidecar, id string) (*broker.Acceptance, error) {
		return s.Broker.AcceptSession(ctx, "tales", broker.AcceptOptions{SessionID: id})
	}
	for _, id := range []string{"a", "cut"} {
		_, err = accept(with, id)
		if e := semantics.AsError(err); e == nil || e.Code != semantics.Internal || !strings.Contains(e.Message, "to drop it, unblock the session") {
			t.Errorf("accept %s: %v; want INTERNAL that says what to do", id, err)
		}
	}
	for range 3 {
		if got, err := acceptNext(t, with); err != nil || got != "b=b" {
			t.Fatalf("accept next: %q, %v; want the other session", got, err)
		}
	}
	must(t, without.Broker.UnblockSession(ctx, "tales", "b"))
	if held, err := accept(with, "b"); err != nil || string(held.Session.State.Data) != "b" {
		t.Errorf("a state without its key: %+v, %v; want it to stay", held, err)
	}
	must(t, with.Broker.UnblockSession(ctx, "tales", "a"))
	held, err := accept(with, "a")
	if err != nil || held.Session.State.Data != nil || held.Session.State.Version != 0 {
		t.Fatalf("unblocked: %+v, %v; want a session without state", held, err)
	}
	if got, err := with.take(t, held.Source(), 1); err != nil || bodies(got) != "body a" || got[0].DeliveryCount != 1 {
		t.Errorf("its messages: %q, %v", bodies(got), err)
	}
}

// What needs a key that is declared lost holds up nothing: messages become dead letters, also on their way to another
// queue, and states can be dropped. When the key is found, the dead letters can be sent again.
func TestCRYPT_4_WhatNeedsALostKeyIsDamaged(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with, lost := openSealed(t, options, payloadKeys(t, "new")), openSealed(t, options, losing(t, payloadKeys(t, "other"), "new"))
	ctx := t.Context()
	must(t, makeQueue(t, with.Store, "archive"))
	must(t, makeQueue(t, with.Store, "onward", func(o *semantics.Options) { o.ForwardTo = "archive" }))
	must(t, makeQueue(t, with.Store, "orders"))
	for _, path := range []string{"onward", "orders"} {
		for i, s := range []sealedSidecar{with, lost} {
			_, err := s.Broker.Send(ctx, semantics.ToQueue(path), messagesNamed(fmt.Sprint(i+1)))
			must(t, err)
		}
	}
	must(t, lost.Forward(ctx, semantics.Source{Path: "onward"}))
	for _, path := range []string{"archive", "orders"} {
		if got, err := lost.take(t, semantics.Source{Path: path}, 2); err != nil || bodies(got) != "body 2" {
			t.Errorf("%s: %q, %v; want what can be read", path, bodies(got), err)
		}
	}
	for _, path := range []string{"onward", "orders"} {
		dead := semantics.Source{Path: path, SubQueue: semantics.DeadLetterQueue}
		letters, err := lost.Broker.Peek(ctx, dead, 1, 2, semantics.ShowAll)
		if err != nil || len(letters) != 1 || letters[0].DeadLetterReason != semantics.ReasonUnreadable || !strings.Contains(letters[0].DeadLetterErrorDescription, "is lost") {
			t.Fatalf("%s: %+v, %v; want one dead letter that says why", path, letters, err)
		}
		results, _, err := with.Broker.Resubmit(ctx, dead, broker.ResubmitOptions{Target: "orders"})
		if err != nil || len(results) != 1 || results[0].Code != "" {
			t.Errorf("%s with the key: %+v, %v", path, results, err)
		}
	}
	if got, err := with.take(t, orders, 5); err != nil || bodies(got) != "body 1 body 1" {
		t.Errorf("sent again: %q, %v", bodies(got), err)
	}
	tales(t, with, "a")
	if _, err := acceptNext(t, lost); semantics.CodeOf(err) != semantics.Internal {
		t.Errorf("accept: %v; want INTERNAL", err)
	}
	must(t, lost.Broker.UnblockSession(ctx, "tales", "a"))
	if got, err := acceptNext(t, lost); err != nil || got != "a=" {
		t.Errorf("unblocked: %q, %v; want no state", got, err)
	}
}

// An operator hears that messages wait to be forwarded because a key is missing: no call would say so.
func TestCRYPT_4_ForwardingThatWaitsForAKeyIsReported(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	with := openSealed(t, options, payloadKeys(t, "new"))
	without := openSealed(t, options, nil)
	must(t, makeQueue(t, with.Store, "archive"))
	must(t, makeQueue(t, with.Store, "onward", func(o *semantics.Options) { o.ForwardTo = "archive" }))
	_, err := with.Broker.Send(t.Context(), semantics.ToQueue("onward"), messagesNamed("1"))
	must(t, err)
	wantMissing(t, "what is reported", without.Store.SweepOnce(t.Context(), without.Broker))
}
