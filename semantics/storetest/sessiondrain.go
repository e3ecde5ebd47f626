package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What a sidecar that goes down does with its sessions.
var sessionDrainTests = []ruleTest{
	testSESS_21_ReleaseHeldClosesSessions,
	testSESS_21_DrainEndsSessionWaits,
	testSESS_21_AccountOfHeldSessions,
}

// inTime moves the clock to that of the machine, by which a Broker keeps account.
func (h *fixture) inTime() {
	h.Advance(max(0, time.Since(h.Now())).Truncate(ms) + ms)
}

func testSESS_21_ReleaseHeldClosesSessions(t *testing.T, h *fixture) {
	h.inTime()
	h.createSessions(deliversAtMost(1), delaysFor(time.Hour))
	h.sendTo("a", 3)
	h.sendEach("b", "c")
	h.deadLetterTo("d")
	a, b := h.accept("a"), h.accept("b")
	h.accept("empty")
	got := h.receive(a, 2)
	h.receive(b, 1)
	h.receive(deadOrders, 1)
	other := h.newBroker(h.Store)
	h.ok(other.CloseSession(t.Context(), b)) // of which this one knows nothing
	h.same(h.broker.Held(), 7)               // three sessions and four messages
	h.broker.BeginDrain()
	for _, id := range []string{"c", ""} {
		err := h.refused(semantics.StoreUnavailable, func() error {
			return second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: id, MaxWait: patience}))
		})
		h.same(err.Details[semantics.DetailCause], "draining")
	}
	h.wantCode(second(h.broker.Receive(t.Context(), a, broker.ReceiveOptions{MaxMessages: 1})), semantics.StoreUnavailable)
	h.complete(a, got[0]) // locked messages can be settled
	h.setState(a, []byte("note"))
	h.renewSession(a)
	h.same(h.broker.Held(), 6)
	h.ok(h.broker.ReleaseHeld(t.Context()))
	h.same(h.broker.Held(), 0)
	h.wantSessions(3, 3, 0)
	h.wantCounts(4, 0, 1)
	h.wantCounted(orders, 0, 0, 0, 0)
	next, err := other.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: "a"})
	h.ok(err)
	h.wantState(next.Session.State, []byte("note"))
	delivery, err := other.Receive(t.Context(), next.Source(), broker.ReceiveOptions{MaxMessages: 9})
	h.ok(err)
	h.wantNumbers(delivery.Messages, 2, 3)
}

func testSESS_21_DrainEndsSessionWaits(t *testing.T, h *fixture) {
	h.races()
	h.createSessions()
	a := h.accept("a")
	s := h.newSidecar(h.Store)
	received := s.waiting(t.Context(), a, 1)
	next := s.accepting(t.Context(), "")
	named := s.accepting(t.Context(), "a")
	strict := make(chan error, 1)
	go func() {
		strict <- second(s.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{MaxWait: time.Minute, Strict: true}))
	}()
	s.awaitEmpty()
	s.broker.BeginDrain()
	h.awaitNumbers(received)
	got := h.awaitAccept(next)
	h.ok(got.err)
	h.same(got.acceptance.Session == nil, true)
	h.wantCode(h.awaitAccept(named).err, semantics.SessionCannotBeLocked)
	select {
	case err := <-strict:
		h.wantCode(err, semantics.ServiceTimeout)
	case <-time.After(patience):
		t.Fatal("the strict accept still waits")
	}
	h.wantSessions(1, 0, 1) // the other sidecar's is untouched
}

func testSESS_21_AccountOfHeldSessions(t *testing.T, h *fixture) {
	h.races()
	h.inTime()
	h.createSessions()
	h.sendTo("a", 4)
	a := h.accept("a")
	got := h.receive(a, 3)
	h.same(h.broker.Held(), 4)
	h.abandon(a, got[0])
	h.same(h.broker.Held(), 3)
	left := make(chan int, 1)
	go func() { left <- h.broker.AwaitSettled(t.Context()) }()
	h.complete(a, got[1])
	h.closeSession(a) // and with it the third
	h.same(h.broker.Held(), 0)
	select {
	case n := <-left:
		h.same(n, 0)
	case <-time.After(patience):
		t.Fatal("AwaitSettled still waits")
	}
	a = h.accept("a")
	h.receive(a, 3)
	h.Advance(lock)
	h.wantCode(second(h.broker.RenewSessionLock(t.Context(), a)), semantics.SessionLockLost)
	h.same(h.broker.Held(), 0) // it has heard of the loss
}
