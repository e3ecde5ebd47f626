package storetest

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What counts as a failed delivery in a session.
var sessionCountTests = []ruleTest{
	testDC_1_SessionLockEndCounts,
	testDC_2_NotInASession,
	testDC_3_LockOfAnAcceptedSessionRunsOut,
	testDC_3_ClosedWithMessagesNotCompleted,
	testDC_3_CompletedThenClosed,
	testDC_4_OnlyWhatWasHandedOutAndNotSettled,
	testDC_8_OnlyAnExplicitCloseCountsNothing,
	testDC_8_PoisonDoesNotLoopForEver,
}

func testDC_1_SessionLockEndCounts(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	h.abandon(a, h.receiveOne(a))
	h.wantCounted(orders, 1, 0)
	h.wantNumbers(h.receive(a, 9), 1, 2)
	h.Advance(10 * lock) // one lock ended, however long ago
	h.wantCounted(orders, 2, 1)
	h.runtime()
	h.wantCounted(orders, 2, 1)
}

func testDC_2_NotInASession(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	h.Advance(ms)
	h.renewSession(a)
	h.release(a, h.receive(a, 9)...)
	h.ok(h.receiveAs(a, 9, semantics.PeekLock).Undelivered(t.Context()))
	h.peek(a)
	h.setAside(a, h.receiveOne(a))
	h.ok(h.reactivate(a, 1))
	h.receive(a, 9)
	h.closeSession(a)
	h.wantCounted(orders, 0, 0, 0)
	h.accept("a") // and is never received from
	h.Advance(lock)
	h.wantCounted(orders, 0, 0, 0)
	a = h.accept("a")
	h.deadLetterIn(a, h.receiveOne(a))
	h.wantCounted(deadOrders, 0)
}

// The three rows of the table in the seed 004_7e309082fb6d87a6.txt. Row one: the session is accepted, but its lock runs
// out (by timeout). Is the delivery count raised? Yes.
func testDC_3_LockOfAnAcceptedSessionRunsOut(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	for n := 1; n <= 3; n++ {
		a := h.accept("a")
		for _, m := range h.receive(a, 2) {
			h.same(m.DeliveryCount, n)
		}
		h.Advance(lock)
		h.wantCounted(orders, n, n)
	}
}

// Row two: the session is accepted, its messages are not completed (even if they are locked), and the session is
// closed. No.
func testDC_3_ClosedWithMessagesNotCompleted(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(2))
	h.sendTo("a", 3)
	for range 5 { // more often than deliveries are permitted
		a := h.accept("a")
		got := h.receive(a, 2) // two are locked and one is not
		h.same([]int{got[0].DeliveryCount, got[1].DeliveryCount}, []int{1, 1})
		h.Advance(lock - ms)
		h.closeSession(a)
		h.wantCounted(orders, 0, 0, 0)
		h.Advance(lock) // nor later
		h.wantCounted(orders, 0, 0, 0)
	}
}

// Row three: the session is accepted, messages are completed, then it is closed explicitly. Not applicable: this is the
// normal course, and the messages are gone.
func testDC_3_CompletedThenClosed(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	got := h.receive(a, 2)
	h.complete(a, got...)
	h.closeSession(a)
	h.wantNumbers(h.peek(orders), 3)
	h.wantNumbers(h.peek(deadOrders))
	h.wantCounted(orders, 0)
	h.Advance(lock)
	a = h.accept("a")
	h.pass(a, 3)
	h.closeSession(a)
	h.same(h.runtime(), semantics.Runtime{})
}

func testDC_4_OnlyWhatWasHandedOutAndNotSettled(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 7)
	h.sendTo("b", 1)
	a, b := h.accept("a"), h.accept("b")
	got := h.receive(a, 5)
	h.release(a, got[0])
	h.abandon(a, got[1])
	h.setAside(a, got[2])
	h.abandon(a, got[4])
	h.wantNumbers(h.receive(a, 2), 1, 2) // again: each counts once for the end
	h.receiveOne(b)
	h.Advance(lock - ms)
	h.renewSession(b)
	h.Advance(ms)
	//                     1  2  3  4  5  6  7  and that of b, which is held on
	h.wantCounted(orders, 1, 2, 0, 1, 1, 0, 0, 0)
	h.Advance(lock)
	h.wantCounted(orders, 1, 2, 0, 1, 1, 0, 0, 1)
}

func testDC_8_OnlyAnExplicitCloseCountsNothing(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	brokers := h.sidecars()
	gone := h.newBroker(h.Store)
	a, err := gone.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: "a"})
	h.ok(err)
	_, err = gone.Receive(t.Context(), a.Source(), broker.ReceiveOptions{MaxMessages: 1})
	h.ok(err)
	gone.Close() // its sidecar has vanished
	h.notFree("a")
	h.wantCounted(orders, 0)
	h.Advance(lock)
	h.wantCounted(orders, 1)
	b, err := brokers[len(brokers)-1].AcceptSession(t.Context(), "orders", broker.AcceptOptions{})
	h.ok(err)
	h.same(h.receiveOne(b.Source()).DeliveryCount, 2)
	h.closeSession(b.Source())
	h.wantCounted(orders, 1)
}

func testDC_8_PoisonDoesNotLoopForEver(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(3), sessionInFlight(1))
	h.sendTo("a", 2) // the receiver of the first crashes
	for range 3 {
		a := h.wantNext("a")[0]
		h.same(h.receiveOne(a).SequenceNumber, int64(1))
		h.Advance(lock)
	}
	h.pass(h.wantNext("a")[0], 2)
	h.wantNumbers(h.peek(deadOrders), 1)
}
