package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// More than a store may want to do in one step: what is promised of one holds of many.
var sessionManyTests = []ruleTest{
	testSESS_12_ManyExpiredAreNotOffered,
	testSESS_13_ManyLocksEndAtOnce,
	testSESS_21_CloseWithAThousandInFlight,
	testSESS_27_AThousandInFlight,
	testSESS_28_ManyGivenBackInOrder,
	testSESS_37_FewOfMany,
	testDC_5_ManyInOneSession,
	testTTL_23_ManyInOneSession,
	testTTL_23_ManySessions,
	testSETTLE_11_ManyDelaysEndAtOnce,
	testSCHED_9_ManyActivatedAtOnce,
}

// many is more than one step of a store deals with.
const many = 300

func someIDsOf(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%04d", i)
	}
	return ids
}

func testSESS_12_ManyExpiredAreNotOffered(_ *testing.T, h *fixture) {
	h.createSessions()
	var batch []*semantics.Message
	for _, id := range someIDsOf(many) {
		batch = append(batch, of(id, lasting("m", 1000*ms)))
	}
	h.send(append(batch, part("z", "m"))...)
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(h.wantNext("z")[0], 9), many+1)
	h.wantSessions(1, 0, 1)
}

func testSESS_13_ManyLocksEndAtOnce(_ *testing.T, h *fixture) {
	h.createSessions()
	ids := someIDsOf(many)
	h.sendEach(ids...)
	for _, source := range h.wantNext(ids...) {
		h.receiveOne(source)
	}
	h.Advance(lock)
	held := h.wantNext(ids...)
	h.same(len(held), len(ids))
	for _, source := range held[:5] {
		h.same(h.receiveOne(source).DeliveryCount, 2)
	}
	h.wantCounts(many-5, 5, 0)
}

func testSESS_21_CloseWithAThousandInFlight(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1000))
	h.sendTo("a", 1001)
	a := h.accept("a")
	h.same(len(h.receive(a, 1000)), 1000)
	h.closeSession(a)
	h.wantCounts(1001, 0, 0)
	h.inOrder(h.wantNext("a")[0], 1, 1000, 1)
}

// inOrder receives messages of a session with consecutive numbers and checks how often each was delivered.
func (h *fixture) inOrder(source semantics.Source, first, last int64, deliveries int) (all []*semantics.Received) {
	h.t.Helper()
	for next := first; next <= last; {
		got := h.receive(source, 1000)
		if len(got) == 0 {
			h.t.Fatalf("messages from %d on are missing", next)
		}
		for _, m := range got {
			h.same([]int64{m.SequenceNumber, int64(m.DeliveryCount)}, []int64{next, int64(deliveries)})
			next++
		}
		all = append(all, got...)
	}
	return all
}

func testSESS_27_AThousandInFlight(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1000))
	h.sendTo("a", 2001)
	a := h.accept("a")
	got := h.inOrder(a, 1, 1000, 1)
	h.receiveNone(a)
	h.complete(a, got...)
	got = h.inOrder(a, 1001, 2000, 1)
	h.deadLetterIn(a, got[:500]...)
	h.setAside(a, got[500:]...)
	h.pass(a, 2001)
	h.same(h.messageCounts(), semantics.Runtime{Active: 500, Deferred: 500, DeadLetter: 500})
}

func testSESS_28_ManyGivenBackInOrder(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1000))
	h.sendTo("a", 900)
	a := h.accept("a")
	got := h.inOrder(a, 1, 900, 1)
	h.abandon(a, got[450:]...)
	h.abandon(a, got[:450]...)
	h.inOrder(a, 1, 900, 2)
}

func testSESS_37_FewOfMany(_ *testing.T, h *fixture) {
	h.createSessions()
	ids := someIDsOf(many)
	h.sendEach(ids...)
	begin := h.Now()
	h.Advance(ms)
	h.sendEach(ids[many-50])
	last := h.accept(ids[many-1])
	h.setState(last, []byte("note"))
	h.same(idsOf(h.sessions(semantics.SessionFilter{ActiveSince: begin})), []string{ids[many-50], ids[many-1]})
	h.same(idsOf(h.sessionPages(1, semantics.SessionFilter{UpdatedSince: begin})), []string{ids[many-1]})
	h.same(idsOf(h.sessions(semantics.SessionFilter{ActiveSince: h.Now()})), []string(nil))
}

func testDC_5_ManyInOneSession(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1000), deliversAtMost(1))
	h.sendTo("a", many)
	a := h.accept("a")
	h.inOrder(a, 1, many, 1)
	h.Advance(lock)
	h.wantNext()
	for range 20 {
		h.runtime() // in slices
	}
	h.wantCounts(0, 0, many)
	h.wantSessions(0, 0, 0)
}

func testTTL_23_ManyInOneSession(_ *testing.T, h *fixture) {
	for _, flag := range []bool{false, true} {
		h.createSessions(expiresSessions, func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = flag })
		h.send(of("a", lasting("m", 1000*ms)))
		h.sendTo("a", many)
		a := h.accept("a")
		h.Advance(1000 * ms)
		h.receiveNone(a) // not one of them is handed out any more
		for range 20 {
			h.runtime()
		}
		h.receiveNone(a)
		h.wantCounts(0, 0, (many+1)*int64(btoi(flag)))
		h.closeSession(a)
		h.wantSessions(0, 0, 0)
		h.drop()
	}
}

func testTTL_23_ManySessions(_ *testing.T, h *fixture) {
	h.createSessions(expiresSessions, buriesExpired)
	ids := someIDsOf(many)
	for range 2 {
		h.sendEach(ids...)
	}
	var batch []*semantics.Message
	for _, id := range ids {
		batch = append(batch, of(id, lasting("m", 1000*ms)))
	}
	h.send(batch...)
	h.sendEach("z")
	h.Advance(1000 * ms)
	h.wantNext("z")
	h.wantCounts(1, 0, 3*many)
}

func testSETTLE_11_ManyDelaysEndAtOnce(_ *testing.T, h *fixture) {
	h.createSessions()
	ids := someIDsOf(many)
	h.sendEach(ids...)
	h.sendEach(ids...)
	for _, source := range h.wantNext(ids...) {
		h.abandonFor(1000*ms, source, h.receiveOne(source))
		h.closeSession(source)
	}
	h.Advance(1000*ms - ms)
	h.wantNext()
	h.Advance(ms)
	held := h.wantNext(ids...)
	h.wantNumbers(h.receive(held[many-1], 9), many, 2*many)
}

func testSCHED_9_ManyActivatedAtOnce(_ *testing.T, h *fixture) {
	h.createSessions()
	var batch []*semantics.Message
	ids := someIDsOf(many)
	for _, id := range ids {
		batch = append(batch, of(id, later("m", h.in(time.Second))))
	}
	h.send(batch...)
	h.Advance(time.Second)
	for _, source := range h.wantNext(ids...) {
		h.closeSession(source)
	}
	h.wantSessions(many, many, 0)
}
