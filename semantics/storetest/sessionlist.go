package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var sessionListTests = []ruleTest{
	testSESS_35_AllSessions,
	testSESS_36_MessagesNotConsumedOrState,
	testSESS_37_UpdatedSince,
	testSESS_37_ActiveSince,
	testSESS_38_Rows,
	testSESS_38_LastActivity,
	testSESS_38_Pages,
	testSESS_38_Bounds,
	testSESS_38_OddIDsAndTokens,
	testSESS_38_NeedsNoLock,
}

func testSESS_35_AllSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	h.same(h.sessions(semantics.SessionFilter{}), []semantics.SessionRow(nil))
	var want []string
	for i := range 250 { // more than a page
		want = append(want, fmt.Sprintf("s%03d", i))
	}
	h.sendEach(want...)
	h.same(h.sessionIDs(), want)
}

func testSESS_36_MessagesNotConsumedOrState(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendEach("available", "locked", "deferred", "delayed", "consumed", "purged", "dead", "blocked and purged", "blocked and purged")
	h.send(of("scheduled", later("m", h.in(time.Hour))), of("expired", lasting("m", 1000*ms)), of("cancelled", later("m", h.in(time.Hour))))
	for _, id := range []string{"empty", "cleared", "state"} {
		h.closeSession(h.accept(id))
	}
	locked, deferred, delayed, consumed, dead := h.accept("locked"), h.accept("deferred"), h.accept("delayed"), h.accept("consumed"), h.accept("dead")
	h.receiveOne(locked)
	h.setAside(deferred, h.receiveOne(deferred))
	h.abandonFor(time.Hour, delayed, h.receiveOne(delayed))
	h.complete(consumed, h.receiveOne(consumed))
	h.deadLetterIn(dead, h.receiveOne(dead))
	blocked, cleared, state := h.accept("blocked and purged"), h.accept("cleared"), h.accept("state")
	h.deadLetterIn(blocked, h.receiveOne(blocked))
	h.setState(cleared, []byte("note"))
	h.setState(cleared, nil)
	h.setState(state, []byte("note"))
	h.Advance(1000 * ms)
	h.purge(sessionOf("purged"), broker.PurgeOptions{})
	h.purge(sessionOf("blocked and purged"), broker.PurgeOptions{})
	h.ok(h.cancel(12))
	h.accept("held")
	want := []string{"available", "blocked and purged", "dead", "deferred", "delayed", "locked", "scheduled", "state"}
	h.same(h.sessionIDs(), want)
	h.unblock("dead")
	h.unblock("blocked and purged")
	h.same(h.sessionIDs(), slices.DeleteFunc(want, func(id string) bool { return id == "dead" || id == "blocked and purged" }))
}

func testSESS_37_UpdatedSince(_ *testing.T, h *fixture) {
	h.createSessions()
	begin := h.Now()
	since := func(d time.Duration) []string {
		h.t.Helper()
		return idsOf(h.sessions(semantics.SessionFilter{UpdatedSince: begin.Add(d)}))
	}
	h.sendEach("messages only", "a", "c")
	a, b, c := h.accept("a"), h.accept("b"), h.accept("c")
	h.Advance(10 * ms)
	h.setState(a, []byte("1"))
	h.Advance(10 * ms)
	h.setState(b, []byte{})
	h.setState(c, []byte("1"))
	h.Advance(10 * ms)
	h.sendEach("a", "b") // which is nothing to their states
	h.state(a)
	h.closeSession(a)
	h.setState(c, nil) // it has none any more
	h.same(since(-ms), []string{"a", "b"})
	h.same(since(10*ms-ms), []string{"a", "b"})
	h.same(since(10*ms), []string{"b"}) // after the instant
	h.same(since(20*ms-ms), []string{"b"})
	h.same(since(20*ms), []string(nil))
	h.Advance(10 * ms)
	h.setState(b, []byte{}) // the same bytes again
	h.same(since(20*ms), []string{"b"})
	h.same(h.sessionIDs(), []string{"a", "b", "c", "messages only"})
}

func testSESS_37_ActiveSince(_ *testing.T, h *fixture) {
	h.createSessions()
	begin := h.Now()
	since := func(d time.Duration) []string {
		h.t.Helper()
		return idsOf(h.sessions(semantics.SessionFilter{ActiveSince: begin.Add(d)}))
	}
	h.sendEach("a", "b", "c")
	h.Advance(10 * ms)
	b := h.accept("b")
	h.setState(b, []byte("1"))
	h.receive(b, 9)
	h.Advance(10 * ms)
	h.sendEach("c")
	h.closeSession(b)
	h.closeSession(h.accept("a")) // which are no activity
	h.same(since(-ms), []string{"a", "b", "c"})
	h.same(since(0), []string{"b", "c"})
	h.same(since(10*ms-ms), []string{"b", "c"})
	h.same(since(10*ms), []string{"c"})
	h.same(since(20*ms), []string(nil))
	both := semantics.SessionFilter{UpdatedSince: begin, ActiveSince: begin.Add(ms)}
	h.same(idsOf(h.sessions(both)), []string{"b"})
}

func testSESS_38_Rows(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendTo("a", 9)
	h.send(of("a", later("m", h.in(time.Hour))), of("a", later("m", h.in(time.Hour))), part("b", "m"), part("b", "m"), part("c", "m"))
	sent := h.Now()
	h.Advance(ms)
	a := h.take("a")
	source := a.Source()
	got := h.receive(source, 7)
	h.complete(source, got[0])
	h.setAside(source, got[1:4]...)
	h.skipFor(time.Hour, source, got[4])
	h.takeDeferred(source, 3)
	version := h.setState(source, []byte("12345"))
	b := h.accept("b")
	h.deadLetterIn(b, h.receiveOne(b))
	h.closeSession(b)
	h.same(h.sessions(semantics.SessionFilter{}), []semantics.SessionRow{
		{
			ID: "a", Available: 3, Delayed: 1, Locked: 3, Deferred: 2, Scheduled: 2, LockedUntil: a.Session.LockedUntil, LastActivity: h.Now(),
			StateSize: 5, StateVersion: version,
		},
		{ID: "b", Available: 1, LastActivity: sent, Blocked: true},
		{ID: "c", Available: 1, LastActivity: sent},
	})
	h.Advance(lock)
	row := h.sessionRow("a")
	h.same([]any{row.Available, row.Locked, row.Deferred, row.LockedUntil}, []any{int64(5), int64(0), int64(3), time.Time{}})
}

func testSESS_38_LastActivity(_ *testing.T, h *fixture) {
	h.createSessions(detectsDuplicates)
	want := h.Now()
	check := func(what string, active bool) {
		h.t.Helper()
		if active {
			want = h.Now()
		}
		if got := h.sessionRow("a").LastActivity; !got.Equal(want) {
			h.t.Errorf("%s: LastActivity is %s, want %s", what, got, want)
		}
		h.Advance(ms)
	}
	h.send(part("a", "1"), part("a", "2"))
	check("send", true)
	h.send(of("a", later("3", h.in(10*ms))))
	check("schedule", true)
	h.send(part("a", "1"))
	check("a duplicate", false)
	h.sendEach("b")
	check("send to another", false)
	a := h.accept("a")
	check("accept", false)
	got := h.receive(a, 2)
	check("receive", false)
	h.renewSession(a)
	check("renew", false)
	h.deadLetterIn(a, got[0])
	h.release(a, got[1])
	check("settle", false)
	h.Advance(10 * ms)
	h.runtime()
	check("activation", true)
	h.resubmit(broker.ResubmitOptions{BypassDuplicates: true})
	check("resubmit", true)
	h.setState(a, []byte("note"))
	check("set state", true)
	h.state(a)
	h.peek(a)
	check("look", false)
	h.setState(a, nil)
	check("clear state", true)
	h.setState(a, nil)
	check("clear what is clear", true)
	h.wantCode(second(h.trySetState(a, []byte("x"), 99)), semantics.PreconditionFailed)
	check("a refused state", false)
	h.closeSession(a)
	check("close", false)
}

func testSESS_38_Pages(_ *testing.T, h *fixture) {
	h.createSessions()
	var want []string
	for i := range 23 {
		want = append(want, fmt.Sprintf("s%02d", i))
	}
	h.sendEach(want...)
	for i, id := range want { // some of them are nothing to show
		if i%3 == 0 {
			h.deleteNumbers(orders, int64(i+1))
			h.accept(id)
		}
	}
	want = slices.DeleteFunc(want, func(id string) bool { return (int(id[1]-'0')*10+int(id[2]-'0'))%3 == 0 })
	for _, size := range []int{1, 2, 7, 15, 16, 100} {
		h.same(idsOf(h.sessionPages(size, semantics.SessionFilter{})), want)
	}
	rows, next, err := h.broker.ListSessions(h.t.Context(), "orders", 0, "", semantics.SessionFilter{}) // 0 means 100
	h.ok(err)
	h.same([]any{idsOf(rows), next}, []any{want, ""})

	// Sessions that begin or end between two pages do not move others.
	rows, next, err = h.broker.ListSessions(h.t.Context(), "orders", 3, "", semantics.SessionFilter{})
	h.ok(err)
	h.same(idsOf(rows), []string{"s01", "s02", "s04"})
	h.purge(sessionOf("s04"), broker.PurgeOptions{Before: h.in(ms)})
	h.sendEach("s00", "s041")
	rows, _, err = h.broker.ListSessions(h.t.Context(), "orders", 2, next, semantics.SessionFilter{})
	h.ok(err)
	h.same(idsOf(rows), []string{"s041", "s05"})
}

func testSESS_38_Bounds(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b")
	list := func(size int, token string) error {
		_, _, err := h.broker.ListSessions(t.Context(), "orders", size, token, semantics.SessionFilter{})
		return err
	}
	for _, size := range []int{-1, 101} {
		h.wantCode(list(size, ""), semantics.ArgumentOutOfRange)
	}
	for _, token := range []string{"!", "_w"} { // the latter is not text
		h.wantCode(list(1, token), semantics.InvalidArgument)
	}
	h.ok(list(100, ""))
}

func testSESS_38_OddIDsAndTokens(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach(oddIDs...)
	sorted := slices.Sorted(slices.Values(oddIDs))
	for _, size := range []int{1, 2, 3, 10, 100} {
		h.same(idsOf(h.sessionPages(size, semantics.SessionFilter{})), sorted)
	}
}

func testSESS_38_NeedsNoLock(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b")
	h.accept("a")
	for _, status := range allStatuses {
		h.setStatus(status)
		rows, _, err := h.broker.ListSessions(t.Context(), "ORDERS", 0, "", semantics.SessionFilter{})
		h.ok(err)
		h.same(idsOf(rows), []string{"a", "b"})
	}
}
