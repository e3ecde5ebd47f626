package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Which session is next.
var sessionReadyTests = []ruleTest{
	testSESS_13_LongestReadyFirst,
	testSESS_13_EqualInstantsByID,
	testSESS_13_RoundRobin,
	testSESS_13_FromTheFirstMessageWhileUnlocked,
	testSESS_13_FromTheUnlock,
	testSESS_13_FromTheEndOfALock,
	testSESS_13_FromTheLookThatEndsALock,
	testSESS_13_FromTheEndOfADelay,
	testSESS_13_FromWhatMakesItReceivable,
	testSESS_13_NotAnyLongerWithoutMessages,
	testSESS_13_StaysInItsPlace,
	testSESS_13_AThousandSessions,
	testSESS_13_TwoCallersNeverGetTheSame,
	testCNT_2_Sessions,
	testCNT_2_SessionsOfEveryState,
	testCNT_2_BlockedSessions,
}

func testSESS_13_LongestReadyFirst(_ *testing.T, h *fixture) {
	h.createSessions()
	for _, id := range []string{"c", "a", "d", "b"} {
		h.sendTo(id, 1)
		h.Advance(ms)
	}
	h.sendTo("b", 9) // more messages do not help it
	h.sendTo("c", 1) // nor do they harm
	h.wantNext("c", "a", "d", "b")
}

func testSESS_13_EqualInstantsByID(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("b", "10", "ab", "ü", "a\x00", "9", "B", "a")
	h.wantNext("10", "9", "B", "a", "a\x00", "ab", "b", "ü")
}

func testSESS_13_RoundRobin(_ *testing.T, h *fixture) {
	h.createSessions()
	for range 4 {
		h.sendEach("a", "b", "c")
	}
	h.Advance(ms)
	for n := range 12 {
		a := h.acceptNext()
		h.same(a.Session.ID, []string{"a", "b", "c"}[n%3])
		h.pass(a.Source(), int64(n+1))
		h.Advance(ms)
		h.closeSession(a.Source())
	}
	h.wantNext()
}

func testSESS_13_FromTheFirstMessageWhileUnlocked(_ *testing.T, h *fixture) {
	h.createSessions()
	a, c := h.accept("a"), h.accept("c")
	h.Advance(ms)
	h.sendEach("a", "c")
	h.Advance(ms)
	h.sendTo("b", 1)
	h.pass(c, 2)
	h.closeSession(c) // it has nothing left, so this makes it no readier
	h.Advance(ms)
	h.closeSession(a)
	h.Advance(ms)
	h.sendTo("c", 1)
	h.wantNext("b", "a", "c")
}

func testSESS_13_FromTheUnlock(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b", "c", "d")
	a, b, d := h.accept("a"), h.accept("b"), h.accept("d")
	got := h.receiveOne(d)
	h.Advance(ms)
	h.closeSession(b)
	h.Advance(ms)
	h.closeSession(d) // whose message is in flight
	h.Advance(ms)
	h.closeSession(a)
	h.wantNext("c", "b", "d", "a")
	h.sessionLost(d, got)
}

func testSESS_13_FromTheEndOfALock(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b", "c")
	c := h.accept("c")
	h.receiveOne(c)
	h.Advance(ms)
	h.accept("a")
	h.Advance(lock - ms)
	h.runtime() // the lock of c ends
	h.Advance(ms)
	h.runtime() // and that of a
	h.Advance(ms)
	h.sendTo("d", 1)
	h.wantNext("b", "c", "a", "d")
}

// The first call that looks processes what has become due; until then a session counts as held.
func testSESS_13_FromTheLookThatEndsALock(_ *testing.T, h *fixture) {
	h.createSessions()
	h.accept("b")
	h.Advance(ms)
	h.accept("a")
	h.Advance(lock)
	h.sendEach("b", "a") // a send does not look
	h.Advance(ms)
	h.sendTo("c", 1)
	h.Advance(ms)
	h.wantNext("c", "a", "b")
}

func testSESS_13_FromTheEndOfADelay(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b")
	a, b := h.accept("a"), h.accept("b")
	h.abandonFor(20*ms, a, h.receiveOne(a))
	h.abandonFor(10*ms, b, h.receiveOne(b))
	h.closeSession(a, b)
	h.sendEach("a") // behind the delayed one
	h.Advance(10 * ms)
	h.runtime()
	h.Advance(ms)
	h.sendTo("c", 1)
	h.Advance(9 * ms)
	h.wantNext("b", "c", "a")
}

func testSESS_13_FromWhatMakesItReceivable(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("deferred", "dead")
	h.send(of("scheduled", later("m", h.in(20*ms))), of("twice", later("m", h.in(10*ms))))
	deferred, dead := h.accept("deferred"), h.accept("dead")
	h.setAside(deferred, h.receiveOne(deferred))
	h.deadLetterIn(dead, h.receiveOne(dead))
	h.closeSession(deferred, dead)
	h.Advance(10 * ms) // "twice" is due
	h.runtime()
	h.Advance(ms)
	h.resubmit(broker.ResubmitOptions{})
	h.Advance(ms)
	h.sendTo("a", 1)
	h.Advance(8 * ms) // "scheduled" is due
	h.runtime()
	h.Advance(ms)
	h.ok(h.reactivate(orders, 1))
	h.Advance(ms)
	h.sendEach("twice", "scheduled", "dead", "b")
	h.wantNext("twice", "dead", "a", "scheduled", "deferred", "b")
}

func testSESS_13_NotAnyLongerWithoutMessages(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("purged", "deleted")
	h.send(of("expired", lasting("m", 10*ms)))
	h.Advance(10 * ms)
	h.purge(sessionOf("purged"), broker.PurgeOptions{})
	h.deleteNumbers(orders, 2)
	h.wantNext()
	h.wantSessions(0, 0, 0)
	h.sendEach("a")
	h.Advance(ms)
	h.sendEach("deleted", "expired", "purged")
	h.wantNext("a", "deleted", "expired", "purged")
}

func testSESS_13_StaysInItsPlace(_ *testing.T, h *fixture) {
	h.createSessions()
	for _, id := range []string{"purged", "expired", "deleted"} {
		h.send(of(id, lasting("m", 10*ms)), part(id, "m"))
	}
	h.Advance(ms)
	h.sendEach("a")
	h.purge(sessionOf("purged"), broker.PurgeOptions{MaxMessages: 1})
	h.deleteNumbers(orders, 5)
	h.Advance(9 * ms)
	h.runtime()
	h.wantNext("deleted", "expired", "purged", "a") // what is left of them was there all the time
}

func testSESS_13_AThousandSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	const many = 1000
	ids := make([]string, many)
	for i, n := range rand.New(rand.NewPCG(1, 3)).Perm(many) {
		ids[i] = fmt.Sprint("session ", n)
	}
	for some := range slices.Chunk(ids, 20) {
		h.sendEach(some...)
		slices.Sort(some) // those of one instant are in this order
		h.Advance(ms)
	}
	h.wantSessions(many, many, 0)
	h.wantNext(ids...)
	h.wantSessions(many, 0, many)
	rows := h.sessions(semantics.SessionFilter{})
	h.same(len(rows), many)
	for i, row := range rows {
		if row.LockedUntil.IsZero() || i > 0 && rows[i-1].ID >= row.ID {
			h.t.Fatalf("row %d is %+v", i, row)
		}
	}
	h.Advance(lock) // many locks end at once
	for range 20 {
		h.runtime()
	}
	h.wantSessions(many, many, 0)
}

func testSESS_13_TwoCallersNeverGetTheSame(t *testing.T, h *fixture) {
	h.races()
	h.createSessions()
	const many = 60
	for i := range many {
		h.sendTo(fmt.Sprint(i), 1)
	}
	brokers := h.sidecars()
	taken := make(chan string, 1000)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for {
				a, err := brokers[i%len(brokers)].AcceptSession(t.Context(), "orders", broker.AcceptOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if a.Session == nil {
					return
				}
				taken <- a.Session.ID
			}
		})
	}
	work.Wait()
	close(taken)
	owners := map[string]int{}
	for id := range taken {
		owners[id]++
	}
	h.same(len(owners), many)
	for id, n := range owners {
		if n != 1 {
			t.Errorf("session %s has %d holders at a time", id, n)
		}
	}
}

func testCNT_2_Sessions(_ *testing.T, h *fixture) {
	h.createSessions()
	h.wantSessions(0, 0, 0)
	h.sendEach("a", "b", "a")
	h.wantSessions(2, 2, 0)
	a := h.accept("a")
	h.wantSessions(2, 1, 1)
	h.pass(a, 1)
	h.wantSessions(2, 1, 1)
	h.setState(a, []byte{})
	h.pass(a, 3)
	h.wantSessions(2, 1, 1)
	h.closeSession(a)
	h.wantSessions(2, 1, 0) // it has a state
	a = h.accept("a")
	h.setState(a, nil)
	h.wantSessions(2, 1, 1) // it has a holder
	h.Advance(lock - ms)
	h.wantSessions(2, 1, 1)
	h.Advance(ms)
	h.wantSessions(1, 1, 0)
	b := h.accept("b")
	h.wantSessions(1, 0, 1)
	h.receiveOne(b)
	h.Advance(lock)
	h.wantSessions(1, 1, 0)
	h.purge(orders, broker.PurgeOptions{})
	h.wantSessions(0, 0, 0)
}

func testCNT_2_SessionsOfEveryState(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendEach("available", "locked", "deferred", "delayed", "blocked")
	h.send(of("scheduled", later("m", h.in(time.Hour))))
	locked, deferred, delayed, blocked := h.accept("locked"), h.accept("deferred"), h.accept("delayed"), h.accept("blocked")
	h.receiveOne(locked)
	h.setAside(deferred, h.receiveOne(deferred))
	h.abandonFor(time.Hour, delayed, h.receiveOne(delayed))
	h.deadLetterIn(blocked, h.receiveOne(blocked))
	h.closeSession(deferred, delayed, blocked)
	h.wantSessions(6, 1, 1)
	r := h.messageCounts()
	h.same(r, semantics.Runtime{Active: 4, Available: 2, Delayed: 1, Locked: 1, Deferred: 1, Scheduled: 1, DeadLetter: 1})
	h.ok(h.cancel(6))
	h.wantSessions(5, 1, 1)
	h.deleteNumbers(orders, 3)
	h.wantSessions(4, 1, 1)
	h.deleteNumbers(orders, 4)
	h.wantSessions(3, 1, 1)
	h.unblock("blocked")
	h.wantSessions(2, 1, 1)
}

func testCNT_2_BlockedSessions(_ *testing.T, h *fixture) {
	want := func(n int64) { h.t.Helper(); h.same(h.runtime().BlockedSessions, n) }
	h.createSessions(blocksOnDeadLetter)
	want(0)
	h.sendTo("a", 3)
	a := h.accept("a")
	got := h.receive(a, 2)
	h.deadLetterIn(a, got[0])
	want(1) // a holder does not matter
	h.deadLetterIn(a, got[1])
	want(1) // it was blocked before
	h.closeSession(a)
	h.deadLetterTo("b") // of which nothing else is left
	want(2)
	h.purge(orders, broker.PurgeOptions{})
	want(2)
	h.unblock("a")
	want(1)
	h.unblock("a")
	want(1)
	h.deadLetterTo("a")
	want(2)
	h.deadLetterRest("a")
	want(1)
	h.unblock("b")
	want(0)
}
