package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var sessionAcceptTests = []ruleTest{
	testSESS_11_TakesAFreeSession,
	testSESS_11_EmptySession,
	testSESS_11_HeldIsRefusedAtOnce,
	testSESS_11_WaitEndsInTheSameError,
	testSESS_11_Bounds,
	testSESS_11_OddIDs,
	testSESS_11_RaceHasOneWinner,
	testSESS_12_OnlyWithSomethingToReceive,
	testSESS_12_NoneIsNoError,
	testSESS_12_FoundAtOnceDoesNotWait,
	testSESS_17_UnclaimedGetsNoDeliveries,
	testCON_1_UnclaimedDelaysNobody,
	testRR_5_AcceptNextForbidden,
	testRECV_7_UndeliveredSession,
}

func testSESS_11_TakesAFreeSession(_ *testing.T, h *fixture) {
	h.createSessions(locksFor(7001 * ms))
	h.sendTo("a", 2)
	h.sendTo("b", 1)
	h.Advance(3 * ms)
	a := h.take("a")
	h.same(a.Session.LockedUntil, h.in(7001*ms))
	h.same([]bool{a.Session.Lock.IsZero(), a.Session.State.Data == nil, a.Session.State.Version == 0}, []bool{false, true, true})
	h.same(a.Source(), semantics.Source{Path: "orders", SessionLock: a.Session.Lock})
	h.wantSessions(2, 1, 1)
	h.wantNumbers(h.receive(a.Source(), 9), 1, 2)
	h.wantCounted(orders, 0, 0, 0)
}

func testSESS_11_EmptySession(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	h.receiveNone(a)
	h.notFree("a")
	h.wantSessions(1, 0, 1)
	h.sendTo("a", 1)
	h.wantNext() // it is held from before its first message
	h.pass(a, 1)
	h.closeSession(a)
	h.closeSession(h.accept("a")) // and its last one is gone
}

func testSESS_11_HeldIsRefusedAtOnce(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	a := h.accept("a")
	h.Advance(ms)
	h.notFree("a") // not even for its holder, whose lock is not extended by it
	for _, b := range h.sidecars() {
		h.wantCode(second(b.AcceptSession(t.Context(), "ORDERS", broker.AcceptOptions{SessionID: "a"})), semantics.SessionCannotBeLocked)
	}
	h.Advance(lock - 2*ms)
	h.notFree("a")
	h.renewSession(a)
	h.closeSession(a)
	h.accept("a")
}

func testSESS_11_WaitEndsInTheSameError(t *testing.T, h *fixture) {
	h.createSessions()
	h.accept("a")
	for range 2 {
		h.refused(semantics.SessionCannotBeLocked, func() error {
			return second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: "a", MaxWait: 20 * ms}))
		})
	}
}

func testSESS_11_Bounds(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	accept := func(o broker.AcceptOptions) error { return second(h.broker.AcceptSession(t.Context(), "orders", o)) }
	for _, o := range []broker.AcceptOptions{
		{SessionID: "a", MaxWait: -ms},
		{SessionID: "a", MaxWait: time.Minute + ms},
		{MaxWait: -ms},
		{MaxWait: 5*time.Minute + ms},
	} {
		h.refused(semantics.ArgumentOutOfRange, func() error { return accept(o) })
	}
	for _, id := range []string{strings.Repeat("x", 129), strings.Repeat("\U0001D11E", 64) + "x", "\xff"} {
		h.refused(semantics.InvalidArgument, func() error { return accept(broker.AcceptOptions{SessionID: id}) })
	}
	h.ok(accept(broker.AcceptOptions{SessionID: "b", MaxWait: time.Minute}))
	h.ok(accept(broker.AcceptOptions{MaxWait: 5 * time.Minute}))
	h.ok(accept(broker.AcceptOptions{SessionID: strings.Repeat("\U0001D11E", 64)}))
	h.refused(semantics.InvalidArgument, func() error { return h.broker.UnblockSession(t.Context(), "orders", "") })
	h.refused(semantics.InvalidArgument, func() error { return h.broker.UnblockSession(t.Context(), "orders", strings.Repeat("x", 129)) })
	for _, id := range []string{"", strings.Repeat("x", 129)} {
		h.refused(semantics.InvalidArgument, func() error { return h.broker.DeadLetterRest(t.Context(), "orders", id) })
	}
	// without a token
	h.refused(semantics.InvalidArgument, func() error { return h.broker.CloseSession(t.Context(), orders) })
}

func testSESS_11_OddIDs(_ *testing.T, h *fixture) {
	h.createSessions()
	numbers, held := map[string][]int64{}, map[string]semantics.Source{}
	for range 2 {
		for _, id := range oddIDs {
			numbers[id] = append(numbers[id], h.send(part(id, "m")))
		}
	}
	sorted := slices.Sorted(slices.Values(oddIDs))
	h.same(h.sessionIDs(), sorted)
	for _, id := range oddIDs {
		held[id] = h.accept(id)
		h.setState(held[id], []byte("of "+id))
	}
	h.wantSessions(int64(len(oddIDs)), 0, int64(len(oddIDs)))
	for _, id := range oddIDs {
		h.same(string(h.state(held[id]).Data), "of "+id)
		h.wantNumbers(h.peek(sessionOf(id)), numbers[id]...)
		got := h.receive(held[id], 9)
		h.wantNumbers(got, numbers[id]...)
		h.same([]string{got[0].SessionID, got[1].SessionID}, []string{id, id})
		h.complete(held[id], got[0])
		h.closeSession(held[id])
	}
	for _, row := range h.sessions(semantics.SessionFilter{}) {
		h.same([]int64{row.Available, row.Locked, row.StateSize}, []int64{1, 0, int64(len("of " + row.ID))})
	}
	for _, source := range h.wantNext(sorted...) { // all became ready at the same instant
		h.setState(source, nil)
		h.complete(source, h.receiveOne(source))
		h.closeSession(source)
	}
	h.same(h.runtime(), semantics.Runtime{})
}

func testSESS_11_RaceHasOneWinner(t *testing.T, h *fixture) {
	h.races()
	h.createSessions()
	brokers := h.sidecars()
	for range 10 {
		h.Advance(ms)
		h.sendTo("a", 1)
		won := make(chan semantics.Source, 100)
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				options := broker.AcceptOptions{SessionID: []string{"a", ""}[i/4]}
				a, err := brokers[i%len(brokers)].AcceptSession(t.Context(), "orders", options)
				switch {
				case semantics.CodeOf(err) == semantics.SessionCannotBeLocked && options.SessionID != "":
				case err != nil:
					t.Error(err)
				case a.Session != nil:
					won <- a.Source()
				}
			})
		}
		work.Wait()
		h.same(len(won), 1)
		a := <-won
		h.complete(a, h.receiveOne(a))
		h.closeSession(a)
	}
}

func testSESS_12_OnlyWithSomethingToReceive(t *testing.T, h *fixture) {
	h.createSessions(buriesExpired)
	h.sendEach("held", "deferred", "delayed", "behind", "locked")
	h.send(of("scheduled", later("m", h.in(time.Hour))), of("expired", lasting("m", 1000*ms)))
	h.accept("held")
	deferred, delayed, behind, state := h.accept("deferred"), h.accept("delayed"), h.accept("behind"), h.accept("state")
	h.setAside(deferred, h.receiveOne(deferred))
	h.abandonFor(lock-ms, delayed, h.receiveOne(delayed))
	h.abandonFor(lock-ms, behind, h.receiveOne(behind))
	h.sendEach("behind")
	h.setState(state, []byte("note"))
	locked := h.accept("locked")
	h.receiveOne(locked)
	h.closeSession(deferred, delayed, behind, state, h.accept("empty"))
	h.Advance(1000 * ms)
	h.wantNext()
	h.wantSessions(7, 0, 2) // the expired one and the empty one are gone
	h.same(h.sessionIDs(), []string{"behind", "deferred", "delayed", "held", "locked", "scheduled", "state"})

	// Each of them is ready as soon as it has something.
	h.closeSession(locked)
	h.wantNext("locked")
	h.ok(h.reactivate(orders, 2))
	h.wantNext("deferred")
	h.sendEach("state", "expired", "delayed")
	h.wantNext("expired", "state") // what is behind a delayed one is not
	h.Advance(lock - 1001*ms)
	h.wantNext("behind", "delayed")
	h.accept("scheduled") // by its name it could be had all the time
	h.wantCode(second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{Strict: true})), semantics.ServiceTimeout)
}

func testSESS_12_NoneIsNoError(t *testing.T, h *fixture) {
	h.createSessions()
	h.accept("a")
	h.sendTo("a", 1)
	for _, wait := range []time.Duration{0, 20 * ms, 20 * ms} {
		a, err := h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{MaxWait: wait})
		h.ok(err)
		h.same(a.Session == nil, true)
		h.ok(a.Undelivered(t.Context())) // nothing to give back
		err = h.wantCode(second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{MaxWait: wait, Strict: true})), semantics.ServiceTimeout)
		h.same(semantics.AsError(err).Code.Retryable(), true)
	}
	h.wantSessions(1, 0, 1)
}

func testSESS_12_FoundAtOnceDoesNotWait(t *testing.T, h *fixture) {
	h.createSessions()
	s := h.newSidecar(h.Store)
	h.sendEach("a", "b")
	for _, want := range []string{"a", "b"} { // without a waiting list, and with one that an earlier wait opened
		a, err := s.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{MaxWait: 5 * time.Minute, Strict: true})
		h.ok(err)
		h.same(a.Session.ID, want)
		h.ok(second(s.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: "free " + want, MaxWait: time.Minute})))
		h.wantCode(second(s.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: want, MaxWait: ms})), semantics.SessionCannotBeLocked)
	}
}

func testSESS_17_UnclaimedGetsNoDeliveries(_ *testing.T, h *fixture) {
	h.createSessions()
	for range 3 {
		h.sendEach("1", "2", "3", "4")
	}
	held := []semantics.Source{h.accept("1"), h.accept("2"), h.accept("3")}
	for range 2 {
		for i, source := range held {
			h.wantNumbers(h.receive(source, 9), int64(i+1), int64(i+5), int64(i+9))
		}
		h.Advance(lock - ms)
		for i, source := range held {
			h.renewSession(source)
			h.receiveNone(source)
			row := h.sessionRow("4")
			h.same([]any{row.Available, row.Locked, row.LockedUntil}, []any{int64(3), int64(0), time.Time{}})
			h.closeSession(source)
			held[i] = h.accept([]string{"1", "2", "3"}[i])
		}
	}
	h.pass(h.wantNext("4")[0], 4, 8, 12)
}

func testCON_1_UnclaimedDelaysNobody(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("4", 300) // at the head of the queue, and without a receiver
	h.sendEach("1", "2", "3", "1", "2", "3")
	one, two, three := h.accept("1"), h.accept("2"), h.accept("3")
	h.pass(three, 303, 306)
	h.pass(one, 301, 304)
	h.pass(two, 302, 305)
	h.closeSession(one, two, three)
	h.Advance(ms)
	h.sendEach("5")
	held := h.wantNext("4", "5") // nor does one that is held delay the next
	h.pass(held[1], 307)
	h.wantCounts(300, 0, 0)
}

func testRR_5_AcceptNextForbidden(t *testing.T, h *fixture) {
	h.createSessions(forbidsAcceptNext)
	h.sendTo("a", 1)
	for _, wait := range []time.Duration{0, patience} {
		for _, strict := range []bool{false, true} {
			h.refused(semantics.InvalidOperation, func() error {
				return second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{MaxWait: wait, Strict: strict}))
			})
		}
	}
	a := h.accept("a")
	h.wantNumbers(h.receive(a, 9), 1)
	h.closeSession(a)
	h.update(func(o *semantics.Options) { o.AcceptNext = semantics.AcceptNextAllowed }, "acceptNext")
	h.wantNext("a")
	h.update(forbidsAcceptNext, "acceptNext")
	h.refused(semantics.InvalidOperation, func() error {
		return second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{}))
	})
}

func testRECV_7_UndeliveredSession(t *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(1))
	h.sendTo("a", 2)
	for range 3 { // more often than deliveries are permitted
		for _, a := range []*broker.Acceptance{h.take("a"), nil} {
			if a == nil {
				a = h.acceptNext()
			}
			h.ok(a.Undelivered(t.Context()))
			h.sessionLost(a.Source())
			h.wantSessions(1, 1, 0)
		}
		a := h.accept("a")
		for _, mode := range []semantics.Mode{semantics.PeekLock, semantics.ReceiveAndDelete} {
			delivery := h.receiveAs(a, 9, mode)
			h.wantNumbers(delivery.Messages, 1, 2)
			h.ok(delivery.Undelivered(t.Context()))
			h.wantCounts(2, 0, 0)
		}
		h.closeSession(a)
	}
	h.wantCounted(orders, 0, 0)

	ended, cancel := context.WithCancel(t.Context())
	a := h.take("a")
	cancel()
	h.ok(a.Undelivered(ended)) // the call may be over by now
	h.wantNext("a")
}
