package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// How long the state of a session at rest is kept.
var sessionStateTTLTests = []ruleTest{
	testSESS_33c_StateTTL,
	testSESS_33c_StateTTLWaitsForRest,
	testSESS_33c_StateTTLFromTheLastActivity,
	testSESS_33c_StateTTLOfTheTimeOfRest,
	testSESS_33c_StateTTLSetToNever,
	testSESS_33c_StateTTLFreesEverything,
	testSESS_33c_StateTTLOfABlockedSession,
	testSESS_33c_StateTTLOfAnUnblockedSession,
}

func testSESS_33c_StateTTL(_ *testing.T, h *fixture) {
	h.createSessions(keepsStateFor(10 * time.Second))
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.closeSession(a)
	h.Advance(10*time.Second - ms)
	h.wantState(h.take("a").Session.State, []byte("note"))
	h.Advance(lock)
	h.wantSessions(0, 0, 0) // it became idle when that lock ended, and its time was over
	h.same(h.runtime(), semantics.Runtime{})

	a = h.accept("a")
	h.setState(a, []byte("note"))
	h.closeSession(a)
	h.Advance(10*time.Second - ms)
	h.same(h.sessionIDs(), []string{"a"})
	h.Advance(ms)
	h.same(h.sessionIDs(), []string(nil))
	h.wantState(h.take("a").Session.State, nil)
}

func testSESS_33c_StateTTLWaitsForRest(_ *testing.T, h *fixture) {
	h.createSessions(keepsStateFor(10*time.Second), locksFor(5*time.Minute))
	h.send(part("messages", "1"), part("deferred", "2"), of("scheduled", later("3", h.in(time.Minute))), part("consumed", "4"))
	for _, id := range []string{"messages", "deferred", "scheduled", "consumed", "held", "rests"} {
		source := h.accept(id)
		h.setState(source, []byte("note"))
		switch id {
		case "deferred":
			h.setAside(source, h.receiveOne(source))
		case "consumed":
			h.complete(source, h.receiveOne(source))
		case "held":
			continue
		}
		h.closeSession(source)
	}
	h.Advance(10 * time.Second)
	h.same(h.sessionIDs(), []string{"deferred", "held", "messages", "scheduled"})
	h.Advance(50 * time.Second)
	h.wantState(h.take("scheduled").Session.State, []byte("note"))
	h.Advance(ms)
	h.purge(orders, broker.PurgeOptions{Deferred: true})  // now there are no messages
	h.same(h.sessionIDs(), []string{"held", "scheduled"}) // and these are held
	h.Advance(4 * time.Minute)
	h.same(h.sessionIDs(), []string{"scheduled"})
	h.Advance(time.Minute)
	h.same(h.runtime(), semantics.Runtime{})
}

func testSESS_33c_StateTTLFromTheLastActivity(_ *testing.T, h *fixture) {
	h.createSessions(keepsStateFor(10 * time.Second))
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.Advance(4 * time.Second)
	h.sendTo("a", 1)
	h.Advance(4 * time.Second)
	h.pass(a, 1)
	h.closeSession(a)
	h.Advance(6*time.Second - ms) // 10 s from the message on
	h.same(h.sessionIDs(), []string{"a"})
	h.closeSession(h.accept("a")) // which is not activity
	h.same(h.sessionIDs(), []string{"a"})
	h.Advance(ms)
	h.same(h.sessionIDs(), []string(nil))

	a = h.accept("a")
	h.setState(a, []byte("note"))
	h.closeSession(a)
	h.Advance(9 * time.Second)
	h.sendTo("a", 1) // in time
	h.Advance(9 * time.Second)
	h.wantState(h.take("a").Session.State, []byte("note"))
}

func testSESS_33c_StateTTLOfTheTimeOfRest(_ *testing.T, h *fixture) {
	h.createSessions()
	rest := func(id string) {
		source := h.accept(id)
		h.setState(source, []byte("note"))
		h.closeSession(source)
	}
	rest("never")
	h.update(keepsStateFor(10*time.Second), "sessionStateTtl")
	rest("10 s")
	h.update(keepsStateFor(5*time.Second), "sessionStateTtl")
	rest("5 s")
	h.Advance(5 * time.Second)
	h.same(h.sessionIDs(), []string{"10 s", "never"})
	h.Advance(5 * time.Second)
	h.same(h.sessionIDs(), []string{"never"})
	h.Advance(1000 * time.Hour)
	h.same(h.sessionIDs(), []string{"never"})
}

func testSESS_33c_StateTTLSetToNever(_ *testing.T, h *fixture) {
	h.createSessions(keepsStateFor(10 * time.Second))
	rest := func(id string) {
		source := h.accept(id)
		h.setState(source, []byte("note"))
		h.closeSession(source)
	}
	rest("over")
	h.Advance(10 * time.Second)
	h.same(h.sessionIDs(), []string(nil))
	rest("rests")
	h.update(keepsStateFor(semantics.Never), "sessionStateTtl")
	h.Advance(1000 * time.Hour)
	h.same(h.sessionIDs(), []string{"rests"})
	h.update(keepsStateFor(10*time.Second), "sessionStateTtl") // counts from when it becomes idle the next time
	h.Advance(1000 * time.Hour)
	h.same(h.sessionIDs(), []string{"rests"})
	source := h.accept("rests")
	h.wantState(h.state(source), []byte("note"))
	h.closeSession(source)
	h.Advance(10 * time.Second)
	h.same(h.sessionIDs(), []string(nil))
}

func testSESS_33c_StateTTLFreesEverything(_ *testing.T, h *fixture) {
	h.createSessions(keepsStateFor(10*time.Second), megabytes(1))
	a := h.accept("a")
	h.setState(a, make([]byte, mebibyte))
	h.closeSession(a)
	h.refusedSend(semantics.EntityFull, part("b", "m"))
	h.Advance(10 * time.Second)
	h.same(h.runtime(), semantics.Runtime{})
	h.send(of("b", sized(mebibyte-1)))
}

func testSESS_33c_StateTTLOfABlockedSession(_ *testing.T, h *fixture) {
	h.createSessions(keepsStateFor(10*time.Second), blocksOnDeadLetter)
	h.sendTo("a", 1)
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.deadLetterIn(a, h.receiveOne(a))
	h.closeSession(a)
	h.Advance(10*time.Second - ms)
	h.same(h.sessionRow("a").StateSize, int64(4))
	h.Advance(ms)
	row := h.sessionRow("a")
	// it goes on to be blocked
	h.same([]any{row.StateSize, row.StateVersion, row.Blocked}, []any{int64(0), int64(0), true})
	h.unblock("a")
	h.wantSessions(0, 0, 0)
}

// An unblocked session is not idle: the state stays if it was to stay.
func testSESS_33c_StateTTLOfAnUnblockedSession(_ *testing.T, h *fixture) {
	for _, unblock := range []func(){func() { h.unblock("a") }, func() { h.deadLetterRest("a") }} {
		h.createSessions(blocksOnDeadLetter)
		h.sendTo("a", 1)
		a := h.accept("a")
		h.setState(a, []byte("note"))
		h.deadLetterIn(a, h.receiveOne(a))
		h.closeSession(a)
		h.update(keepsStateFor(10*time.Second), "sessionStateTtl")
		h.Advance(time.Minute)
		unblock()
		h.Advance(time.Hour)
		h.same(h.sessionRow("a").StateSize, int64(4))
		h.drop()
	}
}
