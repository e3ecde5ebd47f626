package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var scheduleTests = []ruleTest{
	testSCHED_1_NumbersOfABatch,
	testSCHED_2_HiddenUntilDue,
	testSCHED_2_SeenOnPeek,
	testSCHED_2_TakesRoom,
	testSCHED_3_EnqueuedAsIfSentThen,
	testSCHED_3_EveryLookActivates,
	testSCHED_3_WaitSeesTheActivation,
	testSCHED_4_PastAndNowAreAtOnce,
	testSCHED_4_NoUpperLimit,
	testSCHED_6_NeverEarly,
	testSCHED_6_OrderOfActivation,
	testSCHED_6_ManyAtOnce,
	testSCHED_10_BatchIsAllOrNothing,
	testSCHED_12_StatusDoesNotStopActivation,
	testSCHED_12_DeletedQueueTakesThemAlong,
	testTTL_17_LifetimeBeginsAtActivation,
	testTTL_17_DefaultOfTheTimeOfSending,
	testMSG_7_NewNumberAtActivation,
}

func testSCHED_1_NumbersOfABatch(_ *testing.T, h *fixture) {
	h.create()
	at := h.in(time.Second)
	got := h.sendAll(text("a"), later("b", at), later("c", at.Add(time.Second)), text("d"), later("e", h.Now()))
	h.same(got, []semantics.Stored{stored(1), stored(2), stored(3), stored(4), stored(5)})
	h.wantNumbers(h.receive(orders, 9), 1, 4, 5)
	h.ok(h.cancel(2, 3)) // the numbers are those to cancel by
	h.same(h.sendAll(text("f")), []semantics.Stored{stored(6)})
}

func testSCHED_2_HiddenUntilDue(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(1000*ms)), text("b"))
	h.wantNumbers(h.receive(orders, 9), 2)
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1, Scheduled: 1})
	h.same(h.runtime().Total(), int64(2))
	h.same(h.runtime().SizeInBytes, int64(4))
	h.wantMissing(h.receiveNumbers(orders, 1), "1")
	h.wantMissing(h.receiveDeferred(orders, 1), "1")
	h.wantMissing(h.reactivate(orders, 1), "1")
	h.same(h.deleteNumbers(orders, 1), []semantics.Code{semantics.MessageNotFound})
	h.Advance(1000*ms - ms)
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1, Scheduled: 1})
	h.Advance(ms)
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 1, Locked: 1})
	h.wantNumbers(h.receive(orders, 9), 3)
}

func testSCHED_2_SeenOnPeek(_ *testing.T, h *fixture) {
	h.create()
	accepted, at := h.Now(), h.in(5000*ms)
	m := later("a", at)
	m.Properties = map[string]semantics.Value{"p": semantics.Int64(1)}
	h.send(m)
	h.Advance(ms)
	want := semantics.Received{
		Message: *m, SequenceNumber: 1, EnqueuedSequenceNumber: 1, EnqueuedAt: accepted, State: semantics.Scheduled,
		Size: m.Size(), VisibleAt: at,
	}
	h.same(h.peek(orders), []*semantics.Received{&want})
	h.Advance(5000 * ms)
	want.SequenceNumber, want.EnqueuedSequenceNumber, want.EnqueuedAt = 2, 2, h.Now()
	want.State, want.VisibleAt = semantics.Active, time.Time{}
	h.same(h.peek(orders), []*semantics.Received{&want}) // and ScheduledAt stays as it was set
}

func testSCHED_2_TakesRoom(_ *testing.T, h *fixture) {
	h.create(megabytes(1), holdsAtMost(3))
	big := sized(mebibyte - 100)
	big.ScheduledAt = h.in(time.Second)
	h.send(big, text("b"))
	full := sized(97) // two bytes are taken by the text
	full.ScheduledAt = big.ScheduledAt
	err := h.refusedSend(semantics.EntityFull, sized(99))
	h.same(err.Details[semantics.DetailActual], "1048577")
	h.refusedSend(semantics.EntityFull, full, text("too many"))
	h.send(full)
	h.refusedSend(semantics.EntityFull, &semantics.Message{MessageID: "x"})
	h.refusedSend(semantics.EntityFull, &semantics.Message{MessageID: "x", ScheduledAt: big.ScheduledAt})
	h.ok(h.cancel(1))
	h.same(h.runtime().SizeInBytes, int64(99)) // at once
	h.send(text("c"))
	h.refusedSend(semantics.EntityFull, later("d", big.ScheduledAt))
	h.Advance(time.Second)
	h.same(h.counts(), semantics.Runtime{Active: 3, Available: 3})
}

func testSCHED_3_EnqueuedAsIfSentThen(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("scheduled", h.in(1000*ms)))
	first := h.Now()
	h.Advance(10 * ms)
	h.sendTexts(2)
	h.Advance(1000 * ms)
	late := h.Now() // 10 ms after it was due
	h.same(h.runtime().OldestEnqueuedAt, first.Add(10*ms))
	h.Advance(ms)
	h.sendTexts(1)
	got := h.receive(orders, 9)
	h.wantNumbers(got, 2, 3, 4, 5) // at the tail of what was there
	h.same(got[2].MessageID, "scheduled")
	h.same(got[2].EnqueuedAt, late)
	h.same(got[2].State, semantics.Active)
}

func testSCHED_3_EveryLookActivates(_ *testing.T, h *fixture) {
	for name, look := range h.looks() {
		h.create()
		h.send(later("a", h.in(100*ms)))
		h.Advance(150 * ms)
		want := h.Now()
		look()
		h.Advance(50 * ms)
		rows := h.peek(orders)
		if len(rows) != 1 || rows[0].SequenceNumber != 2 || !rows[0].EnqueuedAt.Equal(want) {
			h.t.Errorf("%s does not activate: %+v", name, rows)
		}
		h.drop()
	}
}

func testSCHED_3_WaitSeesTheActivation(t *testing.T, h *fixture) {
	// No wake-up is sent: the receive must look again, by its own clock, when the message is due.
	h.create()
	h.send(later("a", h.in(30*ms)))
	done := h.newSidecar(h.Store).waiting(t.Context(), orders, 1)
	h.Advance(30 * ms)
	h.awaitNumbers(done, 2)
}

func testSCHED_4_PastAndNowAreAtOnce(_ *testing.T, h *fixture) {
	h.create()
	got := h.sendAll(later("past", h.in(-time.Hour)), later("epoch", time.UnixMilli(0).UTC()), later("now", h.Now()), later("next", h.in(ms)))
	h.same(got, []semantics.Stored{stored(1), stored(2), stored(3), stored(4)})
	h.same(h.counts(), semantics.Runtime{Active: 3, Available: 3, Scheduled: 1})
	rows := h.receive(orders, 9)
	h.wantNumbers(rows, 1, 2, 3)
	h.same(rows[0].ScheduledAt, h.in(-time.Hour))
	h.same(rows[0].EnqueuedAt, h.Now())
	h.wantMissing(h.cancel(1), "1") // it is active, not scheduled
	h.ok(h.cancel(4))
}

func testSCHED_4_NoUpperLimit(_ *testing.T, h *fixture) {
	h.create()
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	h.send(later("a", last))
	h.same([]time.Time{h.row(orders, 1).ScheduledAt, h.row(orders, 1).VisibleAt}, []time.Time{last, last})
	h.Advance(100 * 365 * 24 * time.Hour)
	h.same(h.counts(), semantics.Runtime{Scheduled: 1})
}

func testSCHED_6_NeverEarly(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(2*ms)), later("b", h.in(3*ms)))
	h.receiveNone(orders)
	h.Advance(ms)
	h.receiveNone(orders)
	h.Advance(ms) // now == due of the first
	h.same(h.receiveOne(orders).MessageID, "a")
	h.receiveNone(orders)
	h.Advance(ms)
	h.same(h.receiveOne(orders).MessageID, "b")
}

func testSCHED_6_OrderOfActivation(_ *testing.T, h *fixture) {
	h.create()
	at := func(n time.Duration) time.Time { return h.in(n * 100 * ms) }
	h.send(later("5", at(5)), later("3a", at(3)), later("9", at(9)), later("3b", at(3)))
	h.send(later("1", at(1)), later("3c", at(3)))
	h.Advance(800 * ms) // one look activates them all
	var ids []string
	for i, m := range h.receive(orders, 9) {
		ids = append(ids, m.MessageID)
		h.same(m.SequenceNumber, int64(7+i))
	}
	h.same(ids, []string{"1", "3a", "3b", "3c", "5"})
	h.same(h.counts(), semantics.Runtime{Active: 5, Locked: 5, Scheduled: 1})
}

func testSCHED_6_ManyAtOnce(_ *testing.T, h *fixture) {
	h.create()
	const many = 700 // more than a store may want to activate in one step
	batch := make([]*semantics.Message, many)
	for i := range batch {
		batch[i] = &semantics.Message{MessageID: "i", ScheduledAt: h.in(time.Second)}
	}
	h.send(batch...)
	h.Advance(time.Second)
	var numbers []int64
	for range 100 {
		got := h.receive(orders, 1000)
		if len(got) == 0 {
			break
		}
		numbers = append(numbers, numbersOf(got)...)
	}
	h.same(len(numbers), many)
	for i, number := range numbers {
		h.same(number, int64(many+1+i))
	}
	h.same(h.counts(), semantics.Runtime{Active: many, Locked: many})
}

func testSCHED_10_BatchIsAllOrNothing(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(2), func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	at := h.in(time.Second)
	h.refusedSend(semantics.MessageSizeExceeded, later("a", at), sized(1025))
	h.refusedSend(semantics.EntityFull, later("a", at), later("b", at), text("c"))
	h.refusedSend(semantics.ArgumentOutOfRange, later("a", at), lasting("b", 0))
	h.same(h.sendAll(later("a", at), text("b")), []semantics.Stored{stored(1), stored(2)})
}

func testSCHED_12_StatusDoesNotStopActivation(_ *testing.T, h *fixture) {
	for _, status := range allStatuses[1:] {
		h.create(holdsAtMost(2))
		h.send(later("a", h.in(1000*ms)), text("b"))
		h.setStatus(status)
		h.update(holdsAtMost(1), "maxMessageCount") // nor does a quota
		h.Advance(1000 * ms)
		h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2})
		h.setStatus(semantics.StatusActive)
		h.wantNumbers(h.receive(orders, 9), 2, 3)
		h.drop()
	}
}

func testSCHED_12_DeletedQueueTakesThemAlong(_ *testing.T, h *fixture) {
	h.create()
	h.send(text("a"), later("b", h.in(1000*ms)))
	h.drop()
	h.create()
	h.wantMissing(h.cancel(2), "2")
	h.Advance(1000 * ms)
	h.same(h.runtime(), semantics.Runtime{})
	h.receiveNone(orders)
	h.same(h.send(text("c")), int64(1))
}

func testTTL_17_LifetimeBeginsAtActivation(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	m := lasting("a", 10*time.Minute)
	m.ScheduledAt = h.in(5 * time.Minute)
	want := h.in(15 * time.Minute)
	h.send(m, later("never", m.ScheduledAt))
	h.same(h.row(orders, 1).ExpiresAt, want)
	h.same(h.row(orders, 2).ExpiresAt, time.Time{})
	h.Advance(5 * time.Minute)
	got := h.receive(orders, 2)
	h.same(got[0].ExpiresAt, want)
	h.same(*got[0].TimeToLive, 10*time.Minute)
	h.release(orders, got...)
	h.Advance(10*time.Minute - ms)
	h.release(orders, h.receive(orders, 2)...)
	h.Advance(ms)
	h.wantNumbers(h.receive(orders, 2), 4)
	h.wantNumbers(h.peek(deadOrders), 3)
	h.drop()

	// One that is due long before anybody looks lives from then on; before that nothing of it can expire.
	h.create(buriesExpired)
	m = lasting("a", 1000*ms)
	m.ScheduledAt = h.in(1000 * ms)
	h.send(m)
	h.Advance(time.Hour)
	row := h.peek(orders)[0]
	h.same([]time.Time{row.EnqueuedAt, row.ExpiresAt}, []time.Time{h.Now(), h.in(1000 * ms)})
	h.Advance(1000 * ms)
	h.receiveNone(orders)
	h.wantCounts(0, 0, 1)
}

func testTTL_17_DefaultOfTheTimeOfSending(_ *testing.T, h *fixture) {
	h.create(livesFor(2000 * ms))
	longer := lasting("longer", time.Hour)
	longer.ScheduledAt = h.in(1000 * ms)
	h.send(longer, later("none", h.in(1000*ms)))
	h.update(livesFor(9000*ms), "defaultMessageTimeToLive") // changes nothing stored (TTL-22)
	h.same(h.row(orders, 1).ExpiresAt, h.in(3000*ms))
	h.Advance(1000 * ms)
	for _, m := range h.receive(orders, 2) {
		h.same(*m.TimeToLive, 2000*ms)
		h.same(m.ExpiresAt, h.in(2000*ms))
	}
}

func testMSG_7_NewNumberAtActivation(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(ms)))
	h.sendTexts(3)
	h.Advance(ms)
	got := h.takeNumbers(orders, 5)[0]
	h.same([]int64{got.SequenceNumber, got.EnqueuedSequenceNumber}, []int64{5, 5})
	h.wantMissing(h.receiveNumbers(orders, 1), "1") // the old number is dead
	h.wantMissing(h.cancel(1), "1")
	h.wantMissing(h.cancel(5), "5")
	h.wantNumbers(h.peekFrom(orders, 1, 1), 2)
}
