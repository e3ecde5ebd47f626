package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var sessionLockTests = []ruleTest{
	testSESS_14_PresentAndComingMessages,
	testSESS_15_EndsByCloseOrByTime,
	testSESS_16_OnlyToItsHolder,
	testSESS_18_RenewSetsFullDuration,
	testSESS_18_RenewAsOftenAsOneLikes,
	testSESS_18_RenewTakesThePresentDuration,
	testSESS_18_MessagesAreLockedAsLongAsTheSession,
	testSESS_18_RenewAfterLoss,
	testSESS_19_WrongTokens,
	testSESS_19_TokenIsNewForEveryAccept,
	testSESS_19_AnotherSessionsMessages,
	testSESS_20_ReceivingDoesNotRenew,
	testSETTLE_2_UnderASession,
	testLOCK_8_AnotherSidecarMayUseTheSession,
}

func testSESS_14_PresentAndComingMessages(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	h.sendTo("a", 1)
	h.send(of("a", later("m", h.in(10*ms))))
	h.notFree("a")
	h.wantNext()
	h.pass(a, 1, 2, 3)
	h.wantNext()
	h.Advance(10 * ms)
	h.wantNext()
	h.pass(a, 5) // whatever arrives while it is held is its holder's
	h.sendTo("a", 1)
	h.wantNext()
	h.closeSession(a)
	h.wantNext("a")
}

func testSESS_15_EndsByCloseOrByTime(_ *testing.T, h *fixture) {
	h.createSessions(locksFor(7000 * ms))
	h.sendEach("a", "b")
	a, b := h.accept("a"), h.accept("b")
	h.Advance(7000*ms - ms)
	h.closeSession(a)
	h.notFree("b")
	a = h.accept("a")
	h.Advance(ms)
	b2 := h.accept("b")
	h.pass(b2, 2)
	h.pass(a, 1)
	h.sessionLost(b)
}

func testSESS_16_OnlyToItsHolder(t *testing.T, h *fixture) {
	h.createSessions()
	ids := []string{"a", "b", "c"}
	want := map[string][]int64{}
	for n := range int64(30) { // interleaved without any pattern
		id := ids[n*n%7%3]
		want[id] = append(want[id], h.sendTo(id, 1))
	}
	brokers := h.sidecars() // as on several machines
	held := map[string]semantics.Source{}
	for i, id := range ids {
		a, err := brokers[i%len(brokers)].AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: id})
		h.ok(err)
		held[id] = a.Source()
	}
	got := map[string][]int64{}
	for range 10 {
		for i, id := range ids {
			b := brokers[i%len(brokers)]
			delivery, err := b.Receive(t.Context(), held[id], broker.ReceiveOptions{MaxMessages: i + 1})
			h.ok(err)
			for _, m := range delivery.Messages {
				h.same(m.SessionID, id)
				codes, err := b.Complete(t.Context(), held[id], tokensOf(m))
				h.settled(codes, err)
			}
			got[id] = append(got[id], numbersOf(delivery.Messages)...)
		}
	}
	for _, id := range ids { // what is left of the longest
		for h.sessionHas(id) {
			m := h.receiveOne(held[id])
			h.complete(held[id], m)
			got[id] = append(got[id], m.SequenceNumber)
		}
	}
	h.same(got, want)
	h.wantCounts(0, 0, 0)
}

// sessionHas reports whether a session has messages.
func (h *fixture) sessionHas(id string) bool {
	h.t.Helper()
	return len(h.peek(sessionOf(id))) > 0
}

func testSESS_18_RenewSetsFullDuration(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	got := h.receive(a, 2)
	h.Advance(lock / 3)
	h.same(h.renewSession(a), h.in(lock)) // not the old end + duration
	h.same(h.sessionRow("a").LockedUntil, h.in(lock))
	h.Advance(lock - ms)
	h.notFree("a")
	h.complete(a, got[0]) // the locks of its messages went along
	h.wantCounts(1, 1, 0)
	h.same(h.receiveOne(a).LockedUntil, h.in(ms))
	h.Advance(ms)
	h.sessionLost(a, got[1])
	h.wantCounted(orders, 1, 1)
}

func testSESS_18_RenewAsOftenAsOneLikes(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	a := h.accept("a")
	got := h.receiveOne(a)
	for range 50 {
		h.Advance(lock - ms)
		h.renewSession(a)
	}
	h.wantCounted(orders, 0)
	h.complete(a, got)
	h.wantCounts(0, 0, 0)
}

func testSESS_18_RenewTakesThePresentDuration(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	a := h.accept("a")
	got := h.receiveOne(a)
	h.update(locksFor(10*time.Second), "lockDuration")
	h.same(h.sessionRow("a").LockedUntil, h.in(lock)) // which an update does not change (ENT-10)
	h.same(h.renewSession(a), h.in(10*time.Second))   // and may be earlier than before
	h.Advance(10 * time.Second)
	h.sessionLost(a, got)
	h.same(h.take("a").Session.LockedUntil, h.in(10*time.Second))
}

func testSESS_18_MessagesAreLockedAsLongAsTheSession(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 4)
	a := h.take("a")
	end, source := a.Session.LockedUntil, a.Source()
	h.Advance(lock / 2)
	h.setAside(source, h.receiveOne(source))
	h.same(h.takeDeferred(source, 1)[0].LockedUntil, end)
	h.same(h.receiveOne(source).LockedUntil, end)
	h.update(locksFor(5*time.Second), "lockDuration")
	h.same(h.receiveOne(source).LockedUntil, end) // whatever the queue's duration has become
	h.Advance(lock/2 - ms)
	h.wantCounts(1, 3, 0)
	got := h.receiveOne(source)
	h.same(got.LockedUntil, h.in(ms))
	h.Advance(ms)
	h.same(h.messageCounts(), semantics.Runtime{Active: 4, Available: 3, Deferred: 1})
	h.wantCounted(orders, 1, 1, 1, 1)
}

func testSESS_18_RenewAfterLoss(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	a := h.accept("a")
	got := h.receiveOne(a)
	h.Advance(lock) // without a call since then
	for range 2 {
		h.wantCode(second(h.broker.RenewSessionLock(t.Context(), a)), semantics.SessionLockLost)
	}
	h.wantSessions(1, 1, 0)
	h.sessionLost(a, got)
	again := h.accept("a")
	h.wantCode(second(h.broker.RenewSessionLock(t.Context(), a)), semantics.SessionLockLost)
	h.renewSession(again)
}

func testSESS_19_WrongTokens(_ *testing.T, h *fixture) {
	h.createSessions()
	h.createNamed("other", hasSessions)
	h.sendTo("a", 2)
	a := h.accept("a")
	got := h.receiveOne(a)
	h.setState(a, []byte("note"))
	h.sessionLost(unheld(), got)
	// a message's token is not a session's
	h.sessionLost(semantics.Source{Path: "orders", SessionLock: got.LockToken}, got)
	h.wantSettlements(h.settlements(a, []semantics.LockToken{a.SessionLock}), 1, semantics.MessageLockLost)

	elsewhere := semantics.Source{Path: "other", SessionLock: a.SessionLock}
	h.wantAll(h.holderVerbs(elsewhere), semantics.SessionLockLost)
	h.wantSettlements(h.settlements(elsewhere, tokensOf(got)), 1, semantics.SessionLockLost)
	// names have no case
	h.same(string(h.state(semantics.Source{Path: "ORDERS", SessionLock: a.SessionLock}).Data), "note")
	h.complete(a, got)
}

func testSESS_19_TokenIsNewForEveryAccept(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	seen := map[semantics.LockToken]bool{}
	fresh := func(token semantics.LockToken) {
		if token.IsZero() || seen[token] {
			t.Fatalf("token %s is not new", token)
		}
		seen[token] = true
	}
	for range 5 {
		a := h.accept("a")
		fresh(a.SessionLock)
		fresh(h.receiveOne(a).LockToken)
		for token := range seen {
			if token != a.SessionLock {
				h.wantCode(h.broker.CloseSession(t.Context(), semantics.Source{Path: "orders", SessionLock: token}), semantics.SessionLockLost)
			}
		}
		h.closeSession(a)
	}
}

func testSESS_19_AnotherSessionsMessages(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b", "a")
	a, b := h.accept("a"), h.accept("b")
	ofA, ofB := h.receiveOne(a), h.receiveOne(b)
	before := h.snapshot()
	h.wantSettlements(h.settlements(a, tokensOf(ofB)), 1, semantics.MessageLockLost)
	h.wantSettlements(h.settlements(b, tokensOf(ofA)), 1, semantics.MessageLockLost)
	h.same(h.snapshot(), before)
	codes, err := h.broker.Complete(h.t.Context(), a, tokensOf(ofB, ofA))
	h.wantCodes(codes, err, semantics.MessageLockLost, "")
	h.complete(b, ofB)
}

func testSESS_20_ReceivingDoesNotRenew(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 7)
	a := h.accept("a")
	end := h.in(lock)
	h.Advance(lock / 2)
	got := h.receive(a, 6)
	h.complete(a, got[0])
	h.abandon(a, got[1])
	h.release(a, got[2])
	h.setAside(a, got[3])
	h.deadLetterIn(a, got[4])
	h.takeDeferred(a, 4)
	h.setState(a, []byte("note"))
	h.state(a)
	h.peek(a)
	h.sendTo("a", 1)
	h.same(h.sessionRow("a").LockedUntil, end)
	h.Advance(lock / 2)
	h.sessionLost(a, got...)
}

func testSETTLE_2_UnderASession(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(1000))
	h.sendTo("a", 6)
	a := h.accept("a")
	got := h.receive(a, 6)
	h.complete(a, got[0])
	h.abandon(a, got[1])
	h.release(a, got[2])
	h.setAside(a, got[3])
	h.deadLetterIn(a, got[4])
	ended := tokensOf(got[:5]...)
	before := h.snapshot()
	h.wantSettlements(h.settlements(a, ended), len(ended), semantics.MessageLockLost) // the session holds
	h.same(h.snapshot(), before)
	codes, err := h.broker.Complete(h.t.Context(), a, tokensOf(got[5], got[0], got[5]))
	h.wantCodes(codes, err, "", semantics.MessageLockLost, semantics.MessageLockLost)
	h.closeSession(a)
	h.sessionLost(a, got...)
}

func testLOCK_8_AnotherSidecarMayUseTheSession(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	got := h.receiveOne(a)
	brokers := h.sidecars()
	other := brokers[len(brokers)-1]
	if len(brokers) > 1 {
		h.broker.Close() // the one that took it is gone
	}
	h.Advance(ms)
	until, err := other.RenewSessionLock(t.Context(), a)
	h.ok(err)
	h.same(until, h.in(lock))
	codes, err := other.Complete(t.Context(), a, tokensOf(got))
	h.settled(codes, err)
	delivery, err := other.Receive(t.Context(), a, broker.ReceiveOptions{MaxMessages: 9})
	h.ok(err)
	h.wantNumbers(delivery.Messages, 2, 3)
	h.ok(other.CloseSession(t.Context(), a))
	h.wantCode(other.CloseSession(t.Context(), a), semantics.SessionLockLost)
}
