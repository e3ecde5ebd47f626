package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var statusTests = []ruleTest{
	testSTAT_1_FourValues,
	testSTAT_2_BlockedVerbs,
	testSTAT_2_LocksTakenBeforeCanBeSettled,
	testSTAT_3_MessagesStayWhileDisabled,
	testSTAT_3_LifetimesRunWhileDisabled,
	testSTAT_3_ManagementStaysAllowed,
}

var countTests = []ruleTest{
	testCNT_1_CountsAndTimes,
	testCNT_2_ActiveIsEverythingInTheMainQueue,
	testCNT_2_OldestEnqueuedTime,
	testCNT_3_ExpiredInHandCountsAsActive,
	testCNT_5_AccessedAtFollowsActivity,
	testCNT_5_UpdatedAtFollowsUpdates,
}

var allStatuses = []semantics.Status{
	semantics.StatusActive, semantics.StatusDisabled, semantics.StatusSendDisabled, semantics.StatusReceiveDisabled,
}

func testSTAT_1_FourValues(t *testing.T, h *fixture) {
	h.create()
	for _, status := range allStatuses {
		queue, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: status}, []string{"status"})
		h.ok(err)
		h.same(queue.Options.Status, status)
		queue, err = h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
		h.ok(err)
		h.same(queue.Options.Status, status)
	}
	h.setStatus(semantics.StatusActive)
	h.refused(semantics.InvalidArgument, func() error {
		_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: 4}, []string{"status"})
		return err
	})
}

func testSTAT_2_BlockedVerbs(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(9)
	h.deadLetter(h.receive(orders, 3)...)
	h.setAside(orders, h.takeNumbers(orders, 9)...)
	h.send(later("a", h.in(time.Hour)))
	want := func(allowed bool) semantics.Code {
		if allowed {
			return ""
		}
		return semantics.EntityDisabled
	}
	orNotFound := func(allowed bool) semantics.Code {
		if allowed {
			return semantics.MessageNotFound
		}
		return semantics.EntityDisabled
	}
	for _, status := range allStatuses {
		h.setStatus(status)
		canSend := status == semantics.StatusActive || status == semantics.StatusReceiveDisabled
		canReceive := status == semantics.StatusActive || status == semantics.StatusSendDisabled
		before := h.snapshot()
		_, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("a")})
		h.wantCode(err, want(canSend))
		for _, source := range []semantics.Source{orders, deadOrders} {
			for _, wait := range []time.Duration{0, patience} {
				delivery, err := h.broker.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1, MaxWait: wait})
				h.wantCode(err, want(canReceive))
				if err == nil {
					h.ok(delivery.Undelivered(t.Context()))
				}
			}
			_, err = h.broker.Peek(t.Context(), source, 0, 1, semantics.ShowAll)
			h.wantCode(err, want(canReceive))
		}
		_, err = h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{later("b", h.in(time.Hour))})
		h.wantCode(err, want(canSend))
		h.wantCode(h.cancel(99), orNotFound(canSend)) // whatever it would find
		_, err = h.cancelIDs("none")
		h.wantCode(err, orNotFound(canSend))
		h.wantCode(h.receiveDeferred(orders, 99), orNotFound(canReceive))
		h.wantCode(h.receiveNumbers(orders, 99), orNotFound(canReceive))
		h.wantCode(h.reactivate(orders, 99), orNotFound(canReceive))
		_, err = h.broker.DeleteBySequence(t.Context(), orders, []int64{99})
		h.wantCode(err, want(canReceive))
		_, err = h.broker.Purge(t.Context(), orders, broker.PurgeOptions{Before: time.UnixMilli(1)})
		h.wantCode(err, want(canReceive))
		if !canReceive {
			h.wantCode(h.receiveDeferred(orders, 9), semantics.EntityDisabled)
			h.wantCode(h.receiveNumbers(orders, 4), semantics.EntityDisabled)
			h.wantCode(h.reactivate(orders, 9), semantics.EntityDisabled)
		}
		if !canSend {
			h.wantCode(h.cancel(10), semantics.EntityDisabled)
			h.same(h.snapshot(), before)
		}
	}
}

func testSTAT_2_LocksTakenBeforeCanBeSettled(_ *testing.T, h *fixture) {
	for _, status := range allStatuses[1:] {
		h.create(deliversAtMost(2))
		h.sendTexts(7)
		h.deadLetter(h.receiveOne(orders))
		got, dead := h.receive(orders, 5), h.receiveOne(deadOrders)
		h.setStatus(status)
		h.renew(orders, got[0])
		h.complete(orders, got[0])
		h.abandon(orders, got[1])
		h.release(orders, got[2])
		h.deadLetter(got[3])
		h.setAside(orders, got[4])
		h.complete(deadOrders, dead)
		h.same(h.counts(), semantics.Runtime{Active: 4, Available: 3, Deferred: 1, DeadLetter: 1})
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testSTAT_3_MessagesStayWhileDisabled(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	locked := h.receiveOne(orders)
	h.setStatus(semantics.StatusDisabled)
	h.wantCounts(1, 1, 0)
	h.Advance(lock)
	h.wantCounts(2, 0, 0)
	h.setStatus(semantics.StatusActive)
	h.wantNumbers(h.receive(orders, 2), locked.SequenceNumber, 2)
}

func testSTAT_3_LifetimesRunWhileDisabled(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("short", 1000*ms), lasting("long", 1001*ms))
	h.setStatus(semantics.StatusDisabled)
	h.Advance(1000 * ms)
	h.setStatus(semantics.StatusActive)
	h.wantNumbers(h.receive(orders, 2), 2)
	h.wantNumbers(h.receive(deadOrders, 2), 1)
}

func testSTAT_3_ManagementStaysAllowed(t *testing.T, h *fixture) {
	h.create()
	h.setStatus(semantics.StatusDisabled)
	_, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{MaxDeliveryCount: 2}, []string{"maxDeliveryCount"})
	h.ok(err)
	h.runtime()
	_, err = h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
	h.ok(err)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
}

func testCNT_1_CountsAndTimes(t *testing.T, h *fixture) {
	h.create()
	h.same(h.runtime(), semantics.Runtime{})
	h.sendTexts(7)
	got := h.receive(orders, 4)
	h.deadLetter(got[:2]...)
	h.complete(orders, got[2])
	r := h.runtime()
	h.same(r, semantics.Runtime{Active: 4, Available: 3, Locked: 1, DeadLetter: 2, SizeInBytes: r.SizeInBytes, OldestEnqueuedAt: h.Now(), AvailableSince: h.Now()})
	h.same(r.Total(), int64(7-1))
	h.same(r.SizeInBytes, int64(6*2*len("m1"))) // id and body of each
	h.complete(deadOrders, h.receive(deadOrders, 2)...)
	h.same(h.runtime().SizeInBytes, int64(4*2*len("m1")))
	queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same([]time.Time{queue.CreatedAt, queue.UpdatedAt, queue.AccessedAt}, []time.Time{h.Now(), h.Now(), h.Now()})
}

func testCNT_2_ActiveIsEverythingInTheMainQueue(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	h.wantCounts(3, 0, 0)
	got := h.receive(orders, 2)
	h.wantCounts(1, 2, 0)
	h.abandon(orders, got[0])
	h.wantCounts(2, 1, 0)
	h.Advance(lock - ms)
	h.wantCounts(2, 1, 0)
	h.Advance(ms)
	h.wantCounts(3, 0, 0)
	h.deadLetter(h.receiveOne(orders))
	h.wantCounts(2, 0, 1)
	h.receiveOne(deadOrders)
	h.wantCounts(2, 0, 1) // a locked dead letter is a dead letter
}

func testCNT_2_OldestEnqueuedTime(_ *testing.T, h *fixture) {
	h.create()
	first := h.Now()
	h.sendTexts(1)
	h.Advance(3 * ms)
	second := h.Now()
	h.sendTexts(1)
	h.Advance(3 * ms)
	got := h.receiveOne(orders)
	h.same(h.runtime().OldestEnqueuedAt, first) // locked ones are there too
	h.deadLetter(got)
	h.same(h.runtime().OldestEnqueuedAt, second)
	h.complete(orders, h.receiveOne(orders))
	h.same(h.runtime().OldestEnqueuedAt, time.Time{})
}

func testCNT_3_ExpiredInHandCountsAsActive(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("a", 1000*ms))
	got := h.receiveOne(orders)
	h.Advance(1000 * ms)
	h.wantCounts(0, 1, 0)
	h.complete(orders, got)
	h.wantCounts(0, 0, 0)
}

func testCNT_5_AccessedAtFollowsActivity(t *testing.T, h *fixture) {
	h.create(deliversAtMost(100))
	h.sendTexts(5)
	accessed := func() time.Time {
		queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
		h.ok(err)
		return queue.AccessedAt
	}
	var got *semantics.Received
	take := func() { got = h.receiveOne(orders) }
	h.send(later("scheduled", h.in(time.Hour)))
	for name, active := range map[string]func(){
		"send": func() { h.sendTexts(1) },
		"receive": func() {
			take()
			h.release(orders, got)
		},
		"receive nothing": func() { h.receiveNone(deadOrders) },
		"peek":            func() { h.peek(orders) },
		"peek dead":       func() { h.peek(deadOrders) },
		"schedule":        func() { h.send(later("scheduled", h.in(time.Hour))) },
		"cancel": func() {
			_, err := h.cancelIDs("scheduled")
			h.ok(err)
		},
		"receive by number": func() { h.release(orders, h.takeNumbers(orders, 1)...) },
		"purge":             func() { h.purge(orders, broker.PurgeOptions{Before: time.UnixMilli(1)}) },
		"delete by number":  func() { h.deleteNumbers(orders, 99) },
		"update":            func() { h.update(deliversAtMost(99), "maxDeliveryCount") }, // IDLE-2
	} {
		h.Advance(ms)
		active()
		if got := accessed(); !got.Equal(h.Now()) {
			t.Errorf("%s: AccessedAt = %s, want now", name, got)
		}
	}
	for name, active := range map[string]func(){
		"renew":    func() { h.renew(orders, got) },
		"complete": func() { h.complete(orders, got) },
		"abandon":  func() { h.abandon(orders, got) },
		"defer": func() {
			h.setAside(orders, got)
			h.same(accessed(), h.Now())
			h.Advance(ms)
			got = h.takeDeferred(orders, got.SequenceNumber)[0]
			h.same(accessed(), h.Now())
			h.setAside(orders, got)
			h.Advance(ms)
			h.ok(h.reactivate(orders, got.SequenceNumber))
		},
		"release": func() { h.release(orders, got) },
	} {
		take()
		h.Advance(ms)
		active()
		if got := accessed(); !got.Equal(h.Now()) {
			t.Errorf("%s: AccessedAt = %s, want now", name, got)
		}
	}
	take()
	h.Advance(ms)
	h.deadLetter(got)
	h.same(accessed(), h.Now())

	// IDLE-7: a look at the queue from outside is not activity, nor is a call that fails.
	last := h.Now()
	h.Advance(ms)
	h.runtime()
	_, _, err := h.broker.ListEntities(t.Context(), semantics.QueueKind, "", 0, "")
	h.ok(err)
	_, err = h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
	h.ok(err)
	_, err = h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{sized(256<<10 + 1)})
	h.wantCode(err, semantics.MessageSizeExceeded)
	h.same(accessed(), last)
}

func testCNT_5_UpdatedAtFollowsUpdates(t *testing.T, h *fixture) {
	created := h.create()
	h.Advance(ms)
	h.sendTexts(1)
	h.complete(orders, h.receiveOne(orders))
	queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same([]time.Time{queue.CreatedAt, queue.UpdatedAt}, []time.Time{created.CreatedAt, created.CreatedAt})
	for range 2 { // the second one changes no value
		h.Advance(ms)
		h.update(deliversAtMost(4), "maxDeliveryCount")
		queue, err = h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
		h.ok(err)
		h.same([]time.Time{queue.CreatedAt, queue.UpdatedAt}, []time.Time{created.CreatedAt, h.Now()})
	}
}
