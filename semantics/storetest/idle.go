package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var idleTests = []ruleTest{
	testIDLE_1_RemovedWhenUnused,
	testIDLE_1_Minimum,
	testIDLE_1_UpdateSetsAndLiftsIt,
	testIDLE_2_ScheduledMessagesKeep,
	testIDLE_2_CancelBeginsTheSpan,
	testIDLE_5_HeldMessageKeeps,
	testIDLE_5_HeldDeadLetterKeeps,
	testIDLE_5_HeldTransferDeadLetterKeeps,
	testIDLE_5_HeldSessionKeeps,
	testIDLE_5_WaitOfOneThatIsGoneDoesNotKeep,
	testIDLE_5_UseIsNoted,
	testIDLE_7_WhatLiesThereDoesNotKeep,
	testIDLE_8_WaitsEndAndNameIsFree,
	testIDLE_8_SendAgainstRemoval,
	testIDLE_8_ManyWhoSweep,
	testIDLE_9_DeadLettersGoAlong,
	testIDLE_9_DeadLettersKeep,
	testIDLE_9_ExpiredDeadLettersDoNotKeep,
	testENT_14_ForwardingIsUse,
	testENT_15_ForwardedDeadLettersAreNoUse,
}

// span is the AutoDeleteOnIdle of the entities of these tests. It is longer than a minute, which is how late a removal
// may be.
const span = 10 * time.Minute

func removedAfter(d time.Duration) change {
	return func(o *semantics.Options) { o.AutoDeleteOnIdle = d }
}

// temporary permits the removal of an entity that was not used for span.
var temporary = removedAfter(span)

func keepsDeadLetters(o *semantics.Options) { o.AutoDeleteKeepsDeadLetters = true }

// sweep does what is due, as sidecars do in the background.
func (h *fixture) sweep() {
	h.t.Helper()
	store := h.Store
	if spread, is := store.(*partitioned.Store); is {
		store = spread.Store
	}
	h.ok(h.Sweep(h.t.Context(), store, h.broker))
}

// stays checks that an entity is still there at all times until d is over.
func (h *fixture) stays(kind semantics.Kind, path string, d time.Duration) {
	h.t.Helper()
	h.Advance(d - ms)
	h.sweep()
	if err := h.get(kind, path); err != nil {
		h.t.Fatalf("%s %s was removed too early: %v", kind, path, err)
	}
	h.Advance(ms)
}

// goes checks that an entity is removed when d is over, not earlier and at most a minute later (IDLE-8).
func (h *fixture) goes(kind semantics.Kind, path string, d time.Duration) {
	h.t.Helper()
	h.stays(kind, path, d)
	for range 2 { // one entity may be looked at before what keeps it has gone from another
		h.Advance(30 * time.Second)
		h.sweep()
	}
	if err := h.get(kind, path); h.codeOf(err) != semantics.EntityNotFound {
		h.t.Fatalf("%s %s is still there: %v", kind, path, err)
	}
}

// ordersGo is goes for orders.
func (h *fixture) ordersGo(d time.Duration) {
	h.t.Helper()
	h.goes(semantics.QueueKind, orders.Path, d)
}

func (h *fixture) ordersStay(d time.Duration) {
	h.t.Helper()
	h.stays(semantics.QueueKind, orders.Path, d)
}

func testIDLE_1_RemovedWhenUnused(_ *testing.T, h *fixture) {
	h.create(temporary)
	h.createNamed("other")
	h.ordersStay(span / 2)
	h.sendTexts(1)
	h.ordersGo(span)
	h.ordersGoneWith("other")
	h.create(temporary) // empty and new (ENT-9)
	h.same(h.runtime(), semantics.Runtime{})
	h.same(h.send(text("a")), int64(1))
	h.ordersGo(span)
}

// ordersGoneWith checks which queues are left.
func (h *fixture) ordersGoneWith(left ...string) {
	h.t.Helper()
	h.same(h.listed(semantics.QueueKind, "", 9), left)
}

func testIDLE_1_Minimum(t *testing.T, h *fixture) {
	create := func(name string, d time.Duration) error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, name, semantics.Options{AutoDeleteOnIdle: d}, []string{"autoDeleteOnIdle"})
		return err
	}
	err := h.wantCode(create("orders", 5*time.Minute-1), semantics.ArgumentOutOfRange)
	h.same(err.Message, "autoDeleteOnIdle is 4m59.999999999s, must be at least 5m0s")
	h.ordersGoneWith()
	h.ok(create("orders", 5*time.Minute))
	h.ok(create("never", semantics.Never))
	h.ordersGo(5 * time.Minute)
	h.ordersGoneWith("never")
}

func testIDLE_1_UpdateSetsAndLiftsIt(_ *testing.T, h *fixture) {
	h.create()
	h.ordersStay(3 * span)
	h.update(temporary, "autoDeleteOnIdle")
	h.ordersStay(span)
	h.update(removedAfter(3*span), "autoDeleteOnIdle") // in time, and the full span begins
	h.ordersStay(span)
	h.update(temporary, "autoDeleteOnIdle") // sooner than it was to be
	h.ordersGo(span)

	h.create(temporary)
	h.ordersStay(span)
	h.update(removedAfter(semantics.Never), "autoDeleteOnIdle")
	h.ordersStay(10 * span)
}

func testIDLE_2_ScheduledMessagesKeep(_ *testing.T, h *fixture) {
	h.create(temporary)
	h.send(later("a", h.in(5*span+time.Second)))
	h.ordersStay(5 * span)
	h.Advance(time.Second)
	h.sweep()
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1}) // from now on it merely lies there
	h.ordersGo(span)
}

func testIDLE_2_CancelBeginsTheSpan(_ *testing.T, h *fixture) {
	h.create(temporary)
	number := h.send(later("a", h.in(100*span)))
	h.ordersStay(3*span + span/2)
	h.ok(h.cancel(number))
	h.ordersGo(span)
}

func testIDLE_5_HeldMessageKeeps(_ *testing.T, h *fixture) {
	h.create(temporary, locksFor(3*span))
	h.sendTexts(1)
	h.receiveOne(orders)
	h.ordersStay(3 * span)
	h.ordersGo(span) // counted from the end of the lock

	h.create(temporary, locksFor(3*span))
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.ordersStay(span + time.Minute)
	h.complete(orders, got) // long before the lock would have ended
	h.ordersGo(span)
}

func testIDLE_5_HeldDeadLetterKeeps(_ *testing.T, h *fixture) {
	h.create(temporary, locksFor(2*span))
	h.deadLetterTexts("a")
	h.receiveOne(deadOrders)
	h.ordersStay(2 * span)
	h.ordersGo(span)
}

func testIDLE_5_HeldTransferDeadLetterKeeps(_ *testing.T, h *fixture) {
	h.stranded(1, temporary, locksFor(2*span))
	h.forwardTo("")
	h.receiveOne(undelivered(orders))
	ends := h.Now().Add(2 * span)
	h.ordersStay(2 * span)
	h.counts() // which does what is due
	h.same(h.accessed(), ends)
	h.ordersGo(span)

	h.deleteQueue(archive)
	h.stranded(1, temporary, locksFor(2*span))
	h.forwardTo("")
	h.receiveOne(undelivered(orders))
	h.ordersStay(2 * span)
	h.sweep()
	h.ordersGo(span)
}

func testIDLE_5_HeldSessionKeeps(_ *testing.T, h *fixture) {
	h.createSessions(temporary, locksFor(3*span))
	h.accept("a")
	h.ordersStay(3 * span)
	h.ordersGo(span)

	h.createSessions(temporary, locksFor(3*span))
	held := h.accept("a")
	h.ordersStay(2 * span)
	h.closeSession(held)
	h.ordersGo(span)
}

// A sidecar that crashed while it waited stands on the lists of those that wait, and is never heard of again.
func testIDLE_5_WaitOfOneThatIsGoneDoesNotKeep(t *testing.T, h *fixture) {
	h.create(temporary)
	for _, source := range []semantics.Source{orders, deadOrders} {
		h.subscribe(source)
		_, err := h.Store.Receive(t.Context(), source, 1, semantics.RegisterAlways)
		h.ok(err)
	}
	h.ordersGo(span)
}

func testIDLE_5_UseIsNoted(t *testing.T, h *fixture) {
	note := func(uses ...semantics.Use) {
		t.Helper()
		h.ok(h.Store.NoteUse(t.Context(), uses))
	}
	h.create(temporary)
	h.createNamed("stays")
	made := h.Now()
	for range 5 {
		h.ordersStay(span - time.Second)
		note(semantics.Use{Path: "missing"}, semantics.Use{Path: "ORDERS"}, semantics.Use{Path: "stays"})
		h.same(h.accessed(), h.Now())
	}
	stays, err := h.Store.GetEntity(t.Context(), semantics.QueueKind, "stays")
	h.ok(err)
	h.same(stays.AccessedAt, made) // whom it does not concern it need not reach
	h.Advance(time.Minute)
	note(semantics.Use{Path: "orders", Ago: 20*time.Second + time.Millisecond/2})
	h.same(h.accessed(), h.in(-20*time.Second))
	h.sendTexts(1)
	note(semantics.Use{Path: "orders", Ago: time.Second}) // which is older than the last use
	h.same(h.accessed(), h.Now())
	h.ordersGo(span)
	note(semantics.Use{Path: "orders"})
	h.wantCode(h.get(semantics.QueueKind, orders.Path), semantics.EntityNotFound)
	h.create() // and what is made is whole
	h.same(h.runtime(), semantics.Runtime{})
}

func testIDLE_7_WhatLiesThereDoesNotKeep(_ *testing.T, h *fixture) {
	h.create(temporary, locksFor(5*time.Second), delaysFor(time.Hour))
	h.sendTexts(4)
	got := h.receive(orders, 3)
	h.setAside(orders, got[0])
	h.deadLetter(got[1])
	h.abandon(orders, got[2]) // which is delayed for an hour
	h.same(h.counts(), semantics.Runtime{Active: 3, Available: 2, Delayed: 1, Deferred: 1, DeadLetter: 1})
	last := h.Now()
	h.ordersStay(span / 2)
	h.counts()
	h.ordersGo(span - h.Now().Sub(last))
}

func testIDLE_8_WaitsEndAndNameIsFree(t *testing.T, h *fixture) {
	h.create(temporary)
	at := h.newSidecar(h.Store)
	waits := []<-chan outcome{at.waiting(t.Context(), orders, 1), at.waiting(t.Context(), deadOrders, 1)}
	h.Advance(span)
	h.sweep()
	for _, done := range waits {
		h.wantCode(h.await(done).err, semantics.EntityNotFound)
	}
	h.wantCode(second(h.broker.Send(t.Context(), semantics.ToQueue(orders.Path), []*semantics.Message{text("a")})), semantics.EntityNotFound)
	_, created, err := h.Store.CreateEntity(t.Context(), semantics.TopicKind, orders.Path, semantics.DefaultOptions())
	h.ok(err)
	h.same(created, true)
}

// A message whose sender gets a success can be found, whatever was removed meanwhile.
func testIDLE_8_SendAgainstRemoval(t *testing.T, h *fixture) {
	h.races()
	outcomes := map[semantics.Code]int{}
	for range 200 {
		if h.get(semantics.QueueKind, orders.Path) != nil {
			h.create(temporary)
		}
		h.Advance(span + time.Minute)
		var both sync.WaitGroup
		var sent error
		both.Go(func() { _, sent = h.Store.Send(t.Context(), orders.Path, []*semantics.Message{text("a")}) })
		h.sweep()
		both.Wait()
		outcomes[semantics.CodeOf(sent)]++
		if semantics.CodeOf(sent) == semantics.EntityNotFound {
			h.wantCode(h.get(semantics.QueueKind, orders.Path), semantics.EntityNotFound)
			continue
		}
		h.ok(sent)
		h.complete(orders, h.receiveOne(orders))
	}
	t.Logf("outcomes of the sends: %v", outcomes)
}

func testIDLE_8_ManyWhoSweep(t *testing.T, h *fixture) {
	h.races()
	others := []semantics.Store{h.Peer(), h.Peer(), h.Store}
	for range 20 {
		h.create(temporary)
		h.createTopic(temporary)
		h.createSubscription(eu, temporary)
		h.createSubscription(us)
		h.Advance(span + time.Minute)
		var all sync.WaitGroup
		for _, store := range others {
			all.Go(func() {
				if err := h.Sweep(t.Context(), store, h.broker); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		h.Advance(time.Minute)
		h.sweep()
		h.ordersGoneWith()
		h.same(h.listed(semantics.TopicKind, "", 9), []string(nil))
	}
}

func testIDLE_9_DeadLettersGoAlong(_ *testing.T, h *fixture) {
	h.create(temporary)
	h.deadLetterTexts("a", "b")
	h.ordersGo(span)
	h.create()
	h.wantNumbers(h.peek(deadOrders))
}

func testIDLE_9_DeadLettersKeep(_ *testing.T, h *fixture) {
	h.create(temporary, keepsDeadLetters)
	h.deadLetterTexts("a", "b")
	h.ordersStay(5 * span)
	h.complete(deadOrders, h.receiveOne(deadOrders))
	h.ordersStay(5*span + span/3)
	h.complete(deadOrders, h.receiveOne(deadOrders))
	h.ordersGo(span)

	h.create(temporary, keepsDeadLetters)
	h.deadLetterTexts("a")
	h.ordersStay(3*span + span/3)
	h.deleteNumbers(deadOrders, 1)
	h.ordersGo(span)

	h.create(temporary, keepsDeadLetters) // messages that are no dead letters are not kept
	h.sendTexts(1)
	h.ordersGo(span)
}

func testIDLE_9_ExpiredDeadLettersDoNotKeep(_ *testing.T, h *fixture) {
	h.create(temporary, keepsDeadLetters, keepsDeadFor(3*span+time.Second))
	h.deadLetterTexts("a")
	h.ordersStay(3 * span)
	h.ordersGo(time.Second) // it was not used for longer than span already
}

func testENT_14_ForwardingIsUse(_ *testing.T, h *fixture) {
	h.createNamed("elsewhere")
	h.create(temporary, forwardsTo("elsewhere"))
	h.ordersStay(10 * span)
	h.update(forwardsTo(""), "forwardTo")
	h.ordersGo(span)
	h.ordersGoneWith("elsewhere")
}

func testENT_15_ForwardedDeadLettersAreNoUse(_ *testing.T, h *fixture) {
	h.createNamed("elsewhere")
	h.create(temporary, func(o *semantics.Options) { o.ForwardDeadLetteredMessagesTo = "elsewhere" })
	h.ordersGo(span)
	h.ordersGoneWith("elsewhere")
}
