package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var idleActivityTests = []ruleTest{
	testIDLE_2_EveryVerbResetsTheSpan,
	testIDLE_5_EverySessionVerbResetsTheSpan,
	testIDLE_6_SubQueuesCountForTheirParent,
	testIDLE_7_WhatDoesNotCount,
	testIDLE_7_WhatDoesNotCountWithSessions,
	testCNT_5_ResubmitIsActivityOfTheTarget,
	testCNT_5_EndOfALockIsActivity,
}

// resetsTheSpan checks for each verb, on a new orders, that the full span begins with it. fill is done at first; the
// verbs may move the clock, but must leave nothing held.
func (h *fixture) resetsTheSpan(create, fill func(), verbs map[string]func()) {
	h.t.Helper()
	for name, verb := range verbs {
		h.t.Log(name)
		create()
		fill()
		h.ordersStay(span - 10*time.Second)
		verb()
		if at := h.accessed(); !at.Equal(h.Now()) {
			h.t.Errorf("%s: AccessedAt = %s, want now", name, at)
		}
		h.ordersGo(span)
	}
}

// aSecondLater is for a verb that needs another one before, whose activity must not be taken for its own.
func (h *fixture) aSecondLater() { h.Advance(time.Second) }

func testIDLE_2_EveryVerbResetsTheSpan(t *testing.T, h *fixture) {
	var scheduled int64
	create := func() { h.create(temporary, detectsDuplicates, remembersFor(time.Hour), deliversAtMost(100)) }
	fill := func() {
		h.sendTexts(3)
		h.send(text("deferred"))
		h.setAside(orders, h.takeNumbers(orders, 4)...)
		h.send(text("dead letter"))
		h.deadLetter(h.takeNumbers(orders, 5)...)
	}
	taken := func() *semantics.Received {
		got := h.receiveOne(orders)
		h.aSecondLater()
		return got
	}
	h.resetsTheSpan(create, fill, map[string]func(){
		"send":           func() { h.send(text("new")) },
		"send duplicate": func() { h.same(h.sendAll(text("m1")), []semantics.Stored{duplicate(1)}) },
		"cancel": func() {
			scheduled = h.send(later("s", h.in(time.Hour)))
			h.aSecondLater()
			h.ok(h.cancel(scheduled))
		},
		"cancel by id": func() {
			h.send(later("s", h.in(time.Hour)))
			h.aSecondLater()
			h.ok(second(h.cancelIDs("s")))
		},
		"receive": func() { h.ok(h.receiveAs(orders, 1, semantics.PeekLock).Undelivered(t.Context())) },
		"receive nothing": func() {
			h.receive(orders, 9)
			h.aSecondLater()
			h.receiveNone(orders)
			h.ok(h.broker.ReleaseHeld(t.Context()))
		},
		"receive by number": func() { h.release(orders, h.takeNumbers(orders, 2)...) },
		"receive deferred":  func() { h.setAside(orders, h.takeDeferred(orders, 4)...) },
		"reactivate":        func() { h.ok(h.reactivate(orders, 4)) },
		"peek":              func() { h.peek(orders) },
		"complete":          func() { h.complete(orders, taken()) },
		"abandon":           func() { h.abandon(orders, taken()) },
		"abandon for later": func() { h.abandonFor(time.Hour, orders, taken()) },
		"defer":             func() { h.setAside(orders, taken()) },
		"release":           func() { h.release(orders, taken()) },
		"dead-letter":       func() { h.deadLetter(taken()) },
		"settle in vain": func() {
			tokens := tokensOf(taken())
			h.settled(h.Store.Complete(t.Context(), orders, tokens))
			h.aSecondLater()
			codes, err := h.Store.Complete(t.Context(), orders, tokens)
			h.wantCodes(codes, err, semantics.MessageLockLost)
		},
		"purge":            func() { h.purge(orders, broker.PurgeOptions{}) },
		"purge nothing":    func() { h.purge(orders, broker.PurgeOptions{Before: time.UnixMilli(1)}) },
		"delete by number": func() { h.deleteNumbers(orders, 99) },
		"resubmit": func() {
			h.resubmit(broker.ResubmitOptions{Numbers: []int64{5}, BypassDuplicates: true})
		},
		"update": func() { h.update(deliversAtMost(99), "maxDeliveryCount") },
	})

	// A lock counts up to its end.
	h.create(temporary)
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.Advance(lock / 2)
	h.renew(orders, got)
	h.ordersStay(lock)
	h.ordersGo(span)
}

func testIDLE_5_EverySessionVerbResetsTheSpan(t *testing.T, h *fixture) {
	var held semantics.Source
	create := func() { h.createSessions(temporary, locksFor(span)) }
	fill := func() {
		h.sendTo("a", 3)
		h.sendTo("b", 1)
		held = h.accept("a")
	}
	free := func(verb func()) func() { // the span is to be seen, not the lock
		return func() { h.closeSession(held); h.aSecondLater(); verb() }
	}
	h.resetsTheSpan(create, fill, map[string]func(){
		"accept":      free(func() { h.closeSession(h.accept("a")) }),
		"accept next": free(func() { h.closeSession(h.acceptNext().Source()) }),
		"close":       func() { h.closeSession(held) },
		"peek":        free(func() { h.peek(orders) }),
		"peek one":    free(func() { h.peek(sessionOf("b")) }),
		"purge one":   free(func() { h.purge(sessionOf("b"), broker.PurgeOptions{}) }),
		"lost":        free(func() { h.wantCode(second(h.Store.RenewSessionLock(t.Context(), held)), semantics.SessionLockLost) }),
		"send":        free(func() { h.sendTo("a", 1) }),
	})

	for name, verb := range map[string]func(){
		"renew":          func() { h.renewSession(held) },
		"accept in vain": func() { h.wantCode(second(h.tryAccept("a")), semantics.SessionCannotBeLocked) },
		"state":          func() { h.state(held) },
		"set state":      func() { h.setState(held, []byte("note")) },
		"receive":        func() { h.receiveOne(held) },
		"settle":         func() { got := h.receiveOne(held); h.aSecondLater(); h.complete(held, got) },
	} {
		h.createSessions(temporary, locksFor(time.Minute))
		fill()
		h.Advance(time.Second)
		verb()
		if at := h.accessed(); !at.Equal(h.Now()) {
			t.Errorf("%s: AccessedAt = %s, want now", name, at)
		}
		h.drop()
	}
}

func testIDLE_6_SubQueuesCountForTheirParent(t *testing.T, h *fixture) {
	create := func() { h.create(temporary) }
	fill := func() { h.deadLetterTexts("a", "b", "c") }
	taken := func() *semantics.Received {
		got := h.receiveOne(deadOrders)
		h.aSecondLater()
		return got
	}
	h.resetsTheSpan(create, fill, map[string]func(){
		"peek":              func() { h.peek(deadOrders) },
		"receive":           func() { h.ok(h.receiveAs(deadOrders, 1, semantics.PeekLock).Undelivered(t.Context())) },
		"receive by number": func() { h.release(deadOrders, h.takeNumbers(deadOrders, 2)...) },
		"complete":          func() { h.complete(deadOrders, taken()) },
		"abandon":           func() { h.abandon(deadOrders, taken()) },
		"defer":             func() { h.setAside(deadOrders, taken()) },
		"purge":             func() { h.purge(deadOrders, broker.PurgeOptions{}) },
		"delete by number":  func() { h.deleteNumbers(deadOrders, 1) },
	})
}

// endsTheSpan checks for each call, on a new orders, that the span which began before it goes on.
func (h *fixture) endsTheSpan(create func(), calls map[string]func()) {
	h.t.Helper()
	for name, call := range calls {
		h.t.Log(name)
		create()
		last := h.Now()
		h.ordersStay(span - 10*time.Second)
		call()
		h.ordersGo(span - h.Now().Sub(last))
	}
}

func testIDLE_7_WhatDoesNotCount(t *testing.T, h *fixture) {
	ctx := t.Context()
	send := func(code semantics.Code, messages ...*semantics.Message) func() {
		return func() { h.wantCode(second(h.broker.Send(ctx, semantics.ToQueue(orders.Path), messages)), code) }
	}
	create := func() {
		h.create(temporary, holdsAtMost(3))
		h.deadLetterTexts("dead")
		h.sendTexts(2)
	}
	h.endsTheSpan(create, map[string]func(){
		"nothing":        func() {},
		"description":    func() { h.ok(h.get(semantics.QueueKind, orders.Path)) },
		"counts":         func() { h.runtime() },
		"list":           func() { h.listed(semantics.QueueKind, "", 9) },
		"create again":   func() { h.wantCode(h.make(semantics.QueueKind, orders.Path), semantics.EntityAlreadyExists) },
		"too large":      send(semantics.MessageSizeExceeded, sized(256<<10+1)),
		"full":           send(semantics.EntityFull, text("a"), text("b")),
		"watch, pass on": func() { h.subscribe(orders); h.ok(h.Store.PassOn(ctx, orders)) },
		"check":          func() { h.checkHealth() },
		"refused update": func() {
			h.wantCode(h.tryUpdate(detectsDuplicates, "requiresDuplicateDetection"), semantics.PropertyImmutable)
		},
		"call that is over": func() {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			h.wantCode(second(h.Store.Receive(ended, orders, 1, semantics.RegisterNever)), semantics.Cancelled)
		},
	})

	disabled := func() { h.create(temporary, hasStatus(semantics.StatusDisabled)) }
	h.endsTheSpan(disabled, map[string]func(){
		"send": send(semantics.EntityDisabled, text("a")),
		"receive": func() {
			h.wantCode(second(h.Store.Receive(ctx, orders, 1, semantics.RegisterNever)), semantics.EntityDisabled)
		},
		"peek": func() {
			h.wantCode(second(h.Store.Peek(ctx, orders, 0, 1, semantics.ShowAll)), semantics.EntityDisabled)
		},
	})
}

func testIDLE_7_WhatDoesNotCountWithSessions(t *testing.T, h *fixture) {
	create := func() { h.createSessions(temporary); h.sendTo("a", 1) }
	h.endsTheSpan(create, map[string]func(){
		"list": func() { h.sessionIDs() },
		"no id": func() {
			h.wantCode(second(h.Store.Send(t.Context(), orders.Path, []*semantics.Message{text("m")})), semantics.SessionIDMissing)
		},
		"wrong": func() {
			h.wantCode(second(h.Store.Receive(t.Context(), orders, 1, semantics.RegisterNever)), semantics.SessionRequired)
		},
		"renewals": func() {
			h.wantCode(second(h.Store.RenewLocks(t.Context(), orders, tokensOf(&semantics.Received{}))), semantics.InvalidOperation)
		},
	})
}

// checkHealth is what a probe asks of a store.
func (h *fixture) checkHealth() {
	h.t.Helper()
	if checker, ok := h.Store.(semantics.Checker); ok {
		h.ok(second(checker.Check(h.t.Context())))
	}
}

func (h *fixture) tryUpdate(c change, names ...string) error {
	var options semantics.Options
	c(&options)
	return second(h.Store.UpdateEntity(h.t.Context(), semantics.QueueKind, orders.Path, options, names))
}

// For the target a resubmission is a send: one that stores nothing is not activity (IDLE-7).
func testCNT_5_ResubmitIsActivityOfTheTarget(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b")
	target := h.createNamed("target", holdsAtMost(1))
	accessed := func() time.Time {
		queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "target")
		h.ok(err)
		return queue.AccessedAt
	}
	move := func(number int64) {
		h.Advance(ms)
		h.resubmit(broker.ResubmitOptions{Target: "target", Numbers: []int64{number}})
		h.same(h.accessed(), h.Now())
	}
	move(99)
	h.same(accessed(), target.AccessedAt)
	move(1)
	h.same(accessed(), h.Now())
	last := h.Now()
	move(2) // which does not fit
	h.same(accessed(), last)
}

func testCNT_5_EndOfALockIsActivity(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.receiveOne(orders)
	ends := h.in(lock)
	h.Advance(lock + time.Second)
	h.runtime()
	h.same(h.accessed(), ends)
	h.receive(orders, 2)
	h.Advance(lock)
	h.sendTexts(1)
	h.Advance(time.Second)
	h.runtime() // finds locks that ended before the send
	h.same(h.accessed(), h.in(-time.Second))
}
