package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var peekTests = []ruleTest{
	testPEEK_1_ChangesNothing,
	testPEEK_2_ShowsAvailableAndLocked,
	testPEEK_3_AscendingFromInclusive,
	testPEEK_4_Bounds,
	testPEEK_4_CutToMost,
	testPEEK_5_NoSnapshotAcrossCalls,
	testPEEK_6_DeadLetterQueueByItsAddress,
	testPEEK_7_MarksLockedAndExpired,
	testPEEK_2_ShowsEveryState,
	testPEEK_3_ScheduledAmongTheOthers,
	testPEEK_7_ShowChooses,
	testPEEK_7_MarksEveryRow,
	testPEEK_9_CountsAsActivity,
	testPEEK_9_ReceiveStatusForbidsIt,
}

func testPEEK_1_ChangesNothing(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	h.deadLetter(h.receiveOne(orders))
	before := h.snapshot()
	for range 5 {
		h.peek(orders)
		h.peek(deadOrders)
	}
	h.same(h.snapshot(), before)
	h.wantNumbers(h.receive(orders, 3), 2, 3)
	h.wantNumbers(h.receive(deadOrders, 3), 1)
}

func testPEEK_2_ShowsAvailableAndLocked(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	got := h.receive(orders, 2)
	h.wantNumbers(h.peek(orders), 1, 2, 3, 4)
	h.complete(orders, got[1])
	h.wantNumbers(h.peek(orders), 1, 3, 4)
}

func testPEEK_3_AscendingFromInclusive(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(12)
	got := h.receive(orders, 6)
	h.complete(orders, got[2], got[4])
	h.abandon(orders, got[5], got[0])
	h.wantNumbers(h.peekFrom(orders, 0, 100), 1, 2, 4, 6, 7, 8, 9, 10, 11, 12)
	h.wantNumbers(h.peekFrom(orders, 4, 2), 4, 6)
	h.wantNumbers(h.peekFrom(orders, 5, 2), 6, 7) // 5 is gone
	h.wantNumbers(h.peekFrom(orders, 9, 3), 9, 10, 11)
	h.wantNumbers(h.peekFrom(orders, 12, 5), 12)
	h.wantNumbers(h.peekFrom(orders, 13, 5))
	h.wantNumbers(h.peekFrom(orders, 1<<62, 5))
}

func testPEEK_4_Bounds(t *testing.T, h *fixture) {
	h.create()
	for _, c := range []struct {
		from  int64
		limit int
	}{{0, 0}, {0, -1}, {-1, 1}} {
		_, err := h.broker.Peek(t.Context(), orders, c.from, c.limit, semantics.ShowAll)
		h.wantCode(err, semantics.ArgumentOutOfRange)
	}
	h.wantNumbers(h.peek(orders)) // none is an empty list
}

func testPEEK_4_CutToMost(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(251)
	h.same(len(h.peekFrom(orders, 0, 250)), 250)
	h.same(len(h.peekFrom(orders, 0, 251)), 250)
	h.wantNumbers(h.peekFrom(orders, 251, 1000), 251)
}

func testPEEK_5_NoSnapshotAcrossCalls(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	h.wantNumbers(h.peekFrom(orders, 1, 2), 1, 2)
	h.complete(orders, h.receive(orders, 3)...)
	h.sendTexts(1)
	h.wantNumbers(h.peekFrom(orders, 3, 2), 4, 5)
}

func testPEEK_6_DeadLetterQueueByItsAddress(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	got := h.receive(orders, 3)
	h.deadLetter(got[2])
	h.Advance(ms)
	h.deadLetter(got[0])
	h.wantNumbers(h.peek(orders), 2)
	h.wantNumbers(h.peek(deadOrders), 1, 3)
	h.wantNumbers(h.peekFrom(deadOrders, 2, 5), 3)
	h.same(h.peek(orders)[0].DeadLetterReason, "")
}

func testPEEK_7_MarksLockedAndExpired(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("a", 1000*ms), text("b"), text("c"))
	got := h.receive(orders, 2)
	marks := func(source semantics.Source) (rows [][2]bool) {
		for _, m := range h.peek(source) {
			rows = append(rows, [2]bool{m.Locked, m.Expired})
		}
		return rows
	}
	h.Advance(1000*ms - ms)
	h.same(marks(orders), [][2]bool{{true, false}, {true, false}, {false, false}})
	h.Advance(ms)
	h.same(marks(orders), [][2]bool{{true, true}, {true, false}, {false, false}})
	h.deadLetter(got[1])
	h.same(marks(deadOrders), [][2]bool{{false, false}})
	h.receiveOne(deadOrders)
	h.same(marks(deadOrders), [][2]bool{{true, false}})
	h.Advance(lock)
	h.same(marks(orders), [][2]bool{{false, false}}) // the first is gone, the third was never locked
	h.same(marks(deadOrders), [][2]bool{{false, false}})
}

func testPEEK_2_ShowsEveryState(_ *testing.T, h *fixture) {
	h.oneOfEach()
	h.wantNumbers(h.peek(orders), 1, 2, 3, 4, 5)
	h.wantNumbers(h.peek(deadOrders), 6, 7, 8)
	h.complete(orders, h.receiveOne(orders))
	h.ok(h.cancel(4))
	h.wantNumbers(h.peek(orders), 2, 3, 5)
}

func testPEEK_3_ScheduledAmongTheOthers(_ *testing.T, h *fixture) {
	h.create()
	at := h.in(time.Hour)
	h.send(text("1"), later("2", at), text("3"), later("4", at.Add(-ms)), text("5"), later("6", at))
	h.wantNumbers(h.peekFrom(orders, 0, 3), 1, 2, 3)
	h.wantNumbers(h.peekFrom(orders, 2, 1), 2)
	h.wantNumbers(h.peekFrom(orders, 4, 9), 4, 5, 6)
	h.complete(orders, h.receive(orders, 2)...)
	h.wantNumbers(h.peek(orders), 2, 4, 5, 6)
}

func testPEEK_7_ShowChooses(t *testing.T, h *fixture) {
	h.oneOfEach()
	for show, want := range map[semantics.Show][2][]int64{
		semantics.ShowAvailable:                          {{1, 5}, {6}},
		semantics.ShowLocked:                             {{2}, {7}},
		semantics.ShowDeferred:                           {{3}, {8}},
		semantics.ShowScheduled:                          {{4}, nil},
		semantics.ShowLocked | semantics.ShowScheduled:   {{2, 4}, {7}},
		semantics.ShowAvailable | semantics.ShowDeferred: {{1, 3, 5}, {6, 8}},
		semantics.ShowAll:                                {{1, 2, 3, 4, 5}, {6, 7, 8}},
		0:                                                {{1, 2, 3, 4, 5}, {6, 7, 8}},
		semantics.ShowAll &^ semantics.ShowAvailable:     {{2, 3, 4}, {7, 8}},
		semantics.ShowDeferred | semantics.ShowScheduled: {{3, 4}, {8}},
	} {
		h.same([2][]int64{h.showing(orders, show), h.showing(deadOrders, show)}, want)
	}
	rows, err := h.broker.Peek(t.Context(), orders, 2, 1, semantics.ShowAvailable)
	h.ok(err)
	h.wantNumbers(rows, 5) // the limit is of those that are shown
	rows, err = h.broker.Peek(t.Context(), orders, 0, 1, semantics.ShowAvailable)
	h.ok(err)
	h.wantNumbers(rows, 1)
	h.takeDeferred(orders, 3)
	h.same(h.showing(orders, semantics.ShowLocked), []int64{2, 3}) // a locked one is locked, whatever its state
	h.same(h.showing(orders, semantics.ShowDeferred), []int64(nil))
	h.Advance(lock)
	h.same(h.showing(orders, semantics.ShowDeferred), []int64{3})
}

func testPEEK_7_MarksEveryRow(_ *testing.T, h *fixture) {
	h.oneOfEach()
	type mark struct {
		state     semantics.State
		locked    bool
		visibleAt time.Time
	}
	marks := func(source semantics.Source) (all []mark) {
		for _, m := range h.peek(source) {
			all = append(all, mark{m.State, m.Locked, m.VisibleAt})
		}
		return all
	}
	hour := h.in(time.Hour - ms)
	if diff := marks(orders); !slices.Equal(diff, []mark{
		{}, {locked: true}, {state: semantics.Deferred}, {state: semantics.Scheduled, visibleAt: hour}, {visibleAt: hour},
	}) {
		h.t.Errorf("marks are %v", diff)
	}
	if diff := marks(deadOrders); !slices.Equal(diff, []mark{{}, {locked: true}, {state: semantics.Deferred}}) {
		h.t.Errorf("marks of dead letters are %v", diff)
	}
	m := text("a")
	m.SessionID = "s"
	h.send(m)
	h.same(h.row(orders, 9).SessionID, "s")
}

func testPEEK_9_CountsAsActivity(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.deadLetter(h.receiveOne(orders))
	for _, source := range []semantics.Source{orders, deadOrders} {
		for _, from := range []int64{0, 99} { // also one that finds nothing
			h.Advance(ms)
			h.peekFrom(source, from, 1)
			h.same(h.accessed(), h.Now())
		}
	}
	last := h.Now()
	h.Advance(ms)
	h.runtime() // to look at the counts is none
	h.same(h.accessed(), last)
}

func testPEEK_9_ReceiveStatusForbidsIt(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.deadLetter(h.receiveOne(orders))
	for status, want := range map[semantics.Status]semantics.Code{
		semantics.StatusActive: "", semantics.StatusSendDisabled: "",
		semantics.StatusReceiveDisabled: semantics.EntityDisabled, semantics.StatusDisabled: semantics.EntityDisabled,
	} {
		h.setStatus(status)
		for _, source := range []semantics.Source{orders, deadOrders} {
			rows, err := h.broker.Peek(t.Context(), source, 0, 10, semantics.ShowAll)
			h.wantCode(err, want)
			h.same(len(rows) == 1, want == "")
		}
	}
}
