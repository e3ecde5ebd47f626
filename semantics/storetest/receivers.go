package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var receiversTests = []ruleTest{
	testCNT_6_Sessions,
	testCNT_6_Locks,
	testCNT_6_FirstOfMany,
	testCNT_6_WaitingSidecars,
	testCNT_6_NotFound,
}

func (h *fixture) receivers(limit int) semantics.Receivers {
	h.t.Helper()
	who, err := h.Store.Receivers(h.t.Context(), orders.Path, limit)
	h.ok(err)
	return who
}

func testCNT_6_Sessions(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	begin := h.Now()
	h.sendEach("first", "held", "blocked", "consumed")
	h.Advance(ms)
	h.sendEach("second", "second", "first")
	h.send(of("scheduled", later("m", h.in(time.Hour))))
	blocked := h.accept("blocked")
	h.deadLetterIn(blocked, h.receiveOne(blocked))
	h.closeSession(blocked)
	h.pass(h.accept("consumed"), 4)
	h.Advance(ms)
	held := h.accept("held")
	own := h.Store.Sidecar()
	if own == "" {
		h.t.Fatal("the store has no name")
	}
	ready := []semantics.ReadySession{
		{ID: "first", Since: begin, Available: 2}, {ID: "second", Since: begin.Add(ms), Available: 2},
	}
	h.same(h.receivers(10), semantics.Receivers{Held: []semantics.HeldSession{
		{ID: "consumed", Holder: own, LockedUntil: begin.Add(ms + lock)},
		{ID: "held", Holder: own, LockedUntil: begin.Add(2*ms + lock), Available: 1},
	}, Ready: ready})
	h.Advance(lock - ms) // the lock of consumed has ended
	h.renewSession(held)
	h.same(h.receivers(10), semantics.Receivers{Held: []semantics.HeldSession{
		{ID: "held", Holder: own, LockedUntil: h.in(lock), Available: 1},
	}, Ready: ready})
}

func testCNT_6_FirstOfMany(_ *testing.T, h *fixture) {
	h.createSessions()
	for _, id := range []string{"d", "c", "b", "a", "e", "f"} {
		h.sendTo(id, 1)
		h.Advance(ms)
	}
	for _, id := range []string{"b", "e", "c"} {
		h.accept(id)
		h.Advance(ms)
	}
	who := h.receivers(2)
	h.same([]string{who.Held[0].ID, who.Held[1].ID, who.Ready[0].ID, who.Ready[1].ID}, []string{"b", "e", "d", "a"})
	h.same([]int{len(who.Held), len(who.Ready)}, []int{2, 2})
}

func testCNT_6_WaitingSidecars(t *testing.T, h *fixture) {
	h.createSessions()
	_, _, err := h.Store.AcceptNextSession(t.Context(), orders.Path, semantics.RegisterAlways)
	h.ok(err)
	h.same(h.receivers(10).Waiting, []semantics.WaitingSidecar{{Sidecar: h.Store.Sidecar(), Since: h.Now()}})
	h.sendTo("a", 1) // which wakes it
	h.same(h.receivers(10).Waiting, []semantics.WaitingSidecar(nil))
}

func testCNT_6_NotFound(t *testing.T, h *fixture) {
	h.createTopic()
	for _, path := range []string{"none", "news"} {
		_, err := h.Store.Receivers(t.Context(), path, 1)
		h.wantCode(err, semantics.EntityNotFound)
	}
}

// Without sessions, receivers hold messages.
func testCNT_6_Locks(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	h.same(h.receivers(10), semantics.Receivers{})
	h.receive(orders, 1)
	first := h.in(lock)
	h.Advance(ms)
	h.receive(orders, 2)
	h.Advance(ms)
	h.receive(orders, 1)
	h.same(h.receivers(10), semantics.Receivers{FirstLock: first, LastLock: h.in(lock)})
	h.Advance(lock - ms)
	h.same(h.receivers(10), semantics.Receivers{FirstLock: h.in(ms), LastLock: h.in(ms)})
	h.Advance(ms)
	h.same(h.receivers(10), semantics.Receivers{})
}
