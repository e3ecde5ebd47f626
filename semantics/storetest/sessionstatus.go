package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var sessionStatusTests = []ruleTest{
	testSTAT_2_SessionVerbs,
	testSTAT_2_SessionsHeldBeforeCanBeEnded,
	testSTAT_3_SessionsWhileDisabled,
	testCNT_5_SessionVerbsAreActivity,
	testIDLE_7_ListingSessionsIsNoActivity,
	testERR_6_EndedSessionCallChangesNothing,
	testENT_4_NamesOfSessionQueues,
	testENT_10_UpdateLeavesSessionsAlone,
	testQUOTA_12_FullQueueWithSessions,
}

func testSTAT_2_SessionVerbs(t *testing.T, h *fixture) {
	ctx := t.Context()
	for _, status := range allStatuses {
		h.createSessions()
		h.sendTo("a", 3)
		h.sendEach("b", "c")
		a := h.accept("a")
		h.setAside(a, h.receiveOne(a))
		h.setState(a, []byte("note"))
		h.setStatus(status)
		before := h.snapshot()
		allowed := status.CanReceive()
		for verb, call := range map[string]func() error{
			"accept": func() error { return second(h.tryAccept("b")) },
			"accept held": func() error {
				return second(h.broker.AcceptSession(ctx, "orders", broker.AcceptOptions{SessionID: "a", MaxWait: ms}))
			},
			"accept next": func() error {
				return second(h.broker.AcceptSession(ctx, "orders", broker.AcceptOptions{MaxWait: patience}))
			},
			"state":          func() error { return second(h.broker.SessionState(ctx, a)) },
			"set state":      func() error { return second(h.trySetState(a, []byte("x"))) },
			"clear state":    func() error { return second(h.trySetState(a, nil)) },
			"receive":        func() error { return second(h.broker.Receive(ctx, a, broker.ReceiveOptions{MaxMessages: 1})) },
			"deferred":       func() error { return h.receiveDeferred(a, 1) },
			"peek":           func() error { return second(h.broker.Peek(ctx, a, 0, 1, semantics.ShowAll)) },
			"peek of one":    func() error { return second(h.broker.Peek(ctx, sessionOf("b"), 0, 1, semantics.ShowAll)) },
			"purge":          func() error { return second(h.broker.Purge(ctx, sessionOf("c"), broker.PurgeOptions{})) },
			"reactivate":     func() error { return h.reactivate(orders, 99) },
			"delete numbers": func() error { return second(h.broker.DeleteBySequence(ctx, a, []int64{99})) },
		} {
			err := call()
			switch got := h.codeOf(err); {
			case !allowed && got != semantics.EntityDisabled:
				t.Errorf("%s while %s: got %v, want %s", verb, status, err, semantics.EntityDisabled)
			case allowed && got == semantics.EntityDisabled:
				t.Errorf("%s while %s: %v", verb, status, err)
			}
		}
		if !allowed {
			h.same(h.snapshot(), before)
		}
		h.ok(h.broker.UnblockSession(ctx, "orders", "c"))
		h.sessionIDs()
		h.drop()
	}
}

func testSTAT_2_SessionsHeldBeforeCanBeEnded(_ *testing.T, h *fixture) {
	for _, status := range allStatuses[1:] {
		h.createSessions(deliversAtMost(2))
		h.sendTo("a", 7)
		a := h.accept("a")
		got := h.receive(a, 6)
		h.setStatus(status)
		h.Advance(ms)
		h.same(h.renewSession(a), h.in(lock))
		h.complete(a, got[0])
		h.abandon(a, got[1])
		h.release(a, got[2])
		h.deadLetterIn(a, got[3])
		h.setAside(a, got[4])
		h.closeSession(a)
		h.same(h.messageCounts(), semantics.Runtime{Active: 5, Available: 4, Deferred: 1, DeadLetter: 1})
		h.drop()
	}
}

func testSTAT_3_SessionsWhileDisabled(_ *testing.T, h *fixture) {
	h.createSessions(buriesExpired)
	h.sendEach("a", "c")
	h.send(of("b", lasting("m", lock)))
	a := h.accept("a")
	h.receiveOne(a)
	h.setState(a, []byte("note"))
	h.setStatus(semantics.StatusDisabled)
	h.Advance(lock)
	h.wantSessions(2, 2, 0) // locks end and messages expire all the same
	h.wantCounts(2, 0, 1)
	h.setStatus(semantics.StatusActive)
	held := h.wantNext("c", "a") // which was ready before
	h.wantState(h.state(held[1]), []byte("note"))
	h.sessionLost(a)
}

func testCNT_5_SessionVerbsAreActivity(t *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(100))
	h.sendTo("a", 9)
	h.sendEach("b", "dead")
	a, dead := h.accept("a"), h.accept("dead")
	h.deadLetterIn(dead, h.receiveOne(dead))
	h.closeSession(dead)
	ctx := t.Context()
	for name, active := range map[string]func(){
		"accept":      func() { h.closeSession(h.accept("c")) },
		"accept next": func() { h.closeSession(h.wantNext("b")...) },
		"accept next, none": func() {
			b := h.accept("b")
			h.Advance(ms)
			h.acceptNext()
			h.same(h.accessed(), h.Now())
			h.closeSession(b)
		},
		"renew":           func() { h.renewSession(a) },
		"state":           func() { h.state(a) },
		"set state":       func() { h.setState(a, []byte("note")) },
		"clear state":     func() { h.setState(a, nil) },
		"receive nothing": func() { h.receiveNone(h.accept("empty")) },
		"settle":          func() { got := h.receiveOne(a); h.Advance(ms); h.release(a, got) },
		"receive":         func() { h.ok(h.receiveAs(a, 1, semantics.PeekLock).Undelivered(ctx)) },
		"receive deferred": func() {
			h.setAside(a, h.receiveOne(a))
			number := h.showing(a, semantics.ShowDeferred)[0]
			h.Advance(ms)
			h.abandon(a, h.takeDeferred(a, number)...)
			h.same(h.accessed(), h.Now())
			h.Advance(ms)
			h.ok(h.reactivate(a, number))
		},
		"peek":      func() { h.peek(a) },
		"peek one":  func() { h.peek(sessionOf("b")) },
		"purge one": func() { h.purge(sessionOf("nobody"), broker.PurgeOptions{}) },
	} {
		h.Advance(ms)
		active()
		if got := h.accessed(); !got.Equal(h.Now()) {
			t.Errorf("%s: AccessedAt = %s, want now", name, got)
		}
	}
	h.Advance(ms)
	h.closeSession(a)
	h.same(h.accessed(), h.Now())
}

func testIDLE_7_ListingSessionsIsNoActivity(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a")
	last := h.Now()
	h.Advance(ms)
	h.sessionIDs()
	h.runtime()
	_, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("m")})
	h.wantCode(err, semantics.SessionIDMissing)
	h.same(h.accessed(), last)
}

func testERR_6_EndedSessionCallChangesNothing(t *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendTo("a", 2)
	h.sendTo("b", 1)
	h.deadLetterTo("c")
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.Advance(ms)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"accept": func() error { return second(h.Store.AcceptSession(ended, "orders", "b")) },
		"accept next": func() error {
			_, _, err := h.Store.AcceptNextSession(ended, "orders", semantics.RegisterNever)
			return err
		},
		"renew":       func() error { return second(h.Store.RenewSessionLock(ended, a)) },
		"close":       func() error { return h.Store.CloseSession(ended, a) },
		"state":       func() error { return second(h.Store.SessionState(ended, a)) },
		"set state":   func() error { return second(h.Store.SetSessionState(ended, a, []byte("x"), nil)) },
		"clear state": func() error { return second(h.Store.SetSessionState(ended, a, nil, nil)) },
		"list": func() error {
			_, _, err := h.Store.ListSessions(ended, "orders", "", 1, semantics.SessionFilter{})
			return err
		},
		"unblock": func() error { return h.Store.UnblockSession(ended, "orders", "c") },
		"receive": func() error { return second(h.Store.Receive(ended, a, 1, semantics.RegisterNever)) },
	} {
		before := h.snapshot()
		if got := h.codeOf(call()); got != semantics.Cancelled {
			t.Errorf("%s: got %s, want %s", name, got, semantics.Cancelled)
		}
		h.same(h.snapshot(), before)
	}
}

func testENT_4_NamesOfSessionQueues(t *testing.T, h *fixture) {
	h.createNamed("Team/Orders", hasSessions)
	_, err := h.broker.Send(t.Context(), semantics.ToQueue("team/orders"), []*semantics.Message{part("Id", "m"), part("id", "m")})
	h.ok(err)
	a, err := h.broker.AcceptSession(t.Context(), `TEAM\ORDERS`, broker.AcceptOptions{SessionID: "Id"})
	h.ok(err)
	_, err = h.broker.AcceptSession(t.Context(), "team/orders", broker.AcceptOptions{SessionID: "Id"})
	h.wantCode(err, semantics.SessionCannotBeLocked)
	lower := semantics.Source{Path: "team/orders", SessionLock: a.Session.Lock}
	got := h.receiveOne(lower)
	h.same(got.SessionID, "Id")
	h.complete(a.Source(), got)
	h.setState(lower, []byte("note"))
	rows, _, err := h.broker.ListSessions(t.Context(), "TEAM/orders", 0, "", semantics.SessionFilter{})
	h.ok(err)
	h.same(idsOf(rows), []string{"Id", "id"}) // ids have case
	h.ok(h.broker.CloseSession(t.Context(), semantics.Source{Path: "tEAM/oRDERS", SessionLock: a.Session.Lock}))
}

func testENT_10_UpdateLeavesSessionsAlone(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	got := h.receive(a, 2)
	version := h.setState(a, []byte("note"))
	end := h.in(lock)
	h.update(locksFor(5*time.Second), "lockDuration")
	h.update(sessionInFlight(1), "sessionInFlight")
	h.update(forbidsAcceptNext, "acceptNext")
	row := h.sessionRow("a")
	h.same([]any{row.LockedUntil, row.Locked, row.StateVersion}, []any{end, int64(2), version})
	h.Advance(lock - ms)
	h.complete(a, got...)
	h.pass(a, 3)
	h.closeSession(a)
	h.same(h.take("a").Session.LockedUntil, h.in(5*time.Second))
}

func testQUOTA_12_FullQueueWithSessions(_ *testing.T, h *fixture) {
	h.createSessions(megabytes(1), holdsAtMost(5))
	h.send(of("a", sized(mebibyte-5*10-1)))
	for range 4 {
		h.send(of("b", sized(9)))
	}
	h.refusedSend(semantics.EntityFull, part("c", "m"))
	a, b := h.accept("a"), h.accept("b")
	h.renewSession(b)
	got := h.receive(b, 4)
	h.abandon(b, got[0])
	h.deadLetterIn(b, got[1])
	h.setAside(b, got[2])
	h.closeSession(b)
	h.refused(semantics.EntityFull, func() error { return second(h.trySetState(a, make([]byte, 11+1))) })
	h.pass(a, 1)
	h.setState(a, make([]byte, 12))
}
