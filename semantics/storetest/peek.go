package storetest

import (
	"testing"

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
}

func testPEEK_1_ChangesNothing(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	h.bury(h.receiveOne(orders))
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
	h.bury(got[2])
	h.Advance(ms)
	h.bury(got[0])
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
	h.bury(got[1])
	h.same(marks(deadOrders), [][2]bool{{false, false}})
	h.receiveOne(deadOrders)
	h.same(marks(deadOrders), [][2]bool{{true, false}})
	h.Advance(lock)
	h.same(marks(orders), [][2]bool{{false, false}}) // the first is gone, the third was never locked
	h.same(marks(deadOrders), [][2]bool{{false, false}})
}
