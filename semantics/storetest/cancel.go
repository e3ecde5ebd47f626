package storetest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var cancelTests = []ruleTest{
	testSCHED_5_CancelRemoves,
	testSCHED_5_OnlyWhileScheduled,
	testSCHED_5_ExactlyUntilDue,
	testSCHED_5_AllOrNone,
	testSCHED_5_Bounds,
	testSCHED_5_CancelAgainstActivation,
	testSCHED_5_TwoCancelsHaveOneWinner,
	testSCHED_8_CancelByMessageID,
	testSCHED_8_NoneIsNotFound,
	testSCHED_8_ManyOfOneID,
	testSCHED_8_Bounds,
}

func testSCHED_5_CancelRemoves(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(1000*ms)), later("b", h.in(1000*ms)))
	h.ok(h.cancel(1))
	h.same(h.counts(), semantics.Runtime{Scheduled: 1})
	h.same(h.runtime().SizeInBytes, int64(2))
	h.wantNumbers(h.peek(orders), 2)
	h.Advance(1000 * ms)
	h.same(h.receiveOne(orders).MessageID, "b")
	h.receiveNone(orders)
	h.wantNumbers(h.peek(deadOrders))
}

func testSCHED_5_OnlyWhileScheduled(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(1000*ms)), text("active"), text("deferred"), text("dead"), later("gone", h.in(1000*ms)))
	h.ok(h.cancel(5))
	h.setAside(orders, h.takeNumbers(orders, 3)...)
	h.deadLetter(h.takeNumbers(orders, 4)...)
	h.receiveOne(orders)
	for number, list := range map[int64]string{2: "2", 3: "3", 4: "4", 5: "5", 6: "6"} {
		h.refused(semantics.MessageNotFound, func() error {
			err := h.cancel(number)
			h.wantMissing(err, list)
			return err
		})
	}
	h.ok(h.cancel(1))
	h.wantMissing(h.cancel(1), "1")
}

func testSCHED_5_ExactlyUntilDue(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(1000*ms)), later("b", h.in(1000*ms)))
	h.Advance(1000*ms - ms)
	h.ok(h.cancel(1))
	h.Advance(ms) // without a call since then
	h.wantMissing(h.cancel(2), "2")
	h.same(h.receiveOne(orders).MessageID, "b")
}

func testSCHED_5_AllOrNone(t *testing.T, h *fixture) {
	h.create()
	var batch []*semantics.Message
	for range 4 {
		batch = append(batch, later("a", h.in(1000*ms)))
	}
	h.send(batch...)
	h.sendTexts(1)
	err := h.refused(semantics.MessageNotFound, func() error { return h.cancel(1, 99, 2, 5, 3) })
	h.same(err.Details[semantics.DetailNumbers], "99,5")
	n, cancelErr := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("orders"), []int64{4, 1, 4, 1}, nil)
	h.ok(cancelErr)
	h.same(n, 2) // one that is named twice counts once
	h.wantNumbers(h.peek(orders), 2, 3, 5)
}

func testSCHED_5_Bounds(t *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(time.Second)))
	many := make([]int64, broker.MaxCancelNumbers+1)
	for i := range many {
		many[i] = 1
	}
	h.ok(h.cancel(many[:broker.MaxCancelNumbers]...))
	h.send(later("a", h.in(time.Second)))
	for code, numbers := range map[semantics.Code][][]int64{
		semantics.InvalidArgument:    {nil},
		semantics.ArgumentOutOfRange: {many, {2, 0}, {-1}},
	} {
		for _, n := range numbers {
			h.refused(code, func() error { return h.cancel(n...) })
		}
	}
	h.refused(semantics.InvalidOperation, func() error {
		_, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue(deadOrders.String()), []int64{2}, nil)
		return err
	})
}

// However cancel and activation meet, exactly one of them gets the message.
func testSCHED_5_CancelAgainstActivation(_ *testing.T, h *fixture) {
	h.races()
	h.create()
	brokers := h.sidecars()
	for range 20 {
		number := h.send(later("a", h.in(ms)))
		var work sync.WaitGroup
		var cancelled error
		var taken []*semantics.Received
		work.Go(func() { h.Advance(ms) })
		work.Go(func() {
			_, cancelled = brokers[0].CancelScheduled(h.t.Context(), semantics.ToQueue("orders"), []int64{number}, nil)
		})
		work.Go(func() {
			delivery, err := brokers[1%len(brokers)].Receive(h.t.Context(), orders, broker.ReceiveOptions{MaxMessages: 9})
			if err != nil {
				h.t.Error(err)
				return
			}
			taken = delivery.Messages
		})
		work.Wait()
		taken = append(taken, h.receive(orders, 9)...)
		if cancelled == nil {
			h.wantNumbers(taken)
		} else {
			h.wantMissing(cancelled, int64Text(number))
			h.wantNumbers(taken, number+1)
			h.complete(orders, taken...)
		}
		h.same(h.counts(), semantics.Runtime{})
	}
}

func testSCHED_5_TwoCancelsHaveOneWinner(_ *testing.T, h *fixture) {
	h.races()
	h.create()
	brokers := h.sidecars()
	for range 10 {
		first := h.send(later("a", h.in(time.Second)), later("b", h.in(time.Second)))
		errs := make([]error, 4)
		var work sync.WaitGroup
		for i := range errs {
			work.Go(func() {
				numbers := []int64{first, first + 1}
				_, errs[i] = brokers[i%len(brokers)].CancelScheduled(h.t.Context(), semantics.ToQueue("orders"), numbers[i%2:], nil)
			})
		}
		work.Wait()
		h.same(h.counts().Scheduled <= 1, true)
		wins := map[bool]int{}
		for i, err := range errs {
			if err == nil {
				wins[i%2 == 0]++
			} else {
				h.wantCode(err, semantics.MessageNotFound)
			}
		}
		// Either one call took both, or one took the second alone, after which none can have both.
		h.same(wins[true]+wins[false], 1)
		if wins[false] == 1 {
			h.ok(h.cancel(first))
		}
	}
}

func testSCHED_8_CancelByMessageID(_ *testing.T, h *fixture) {
	h.create()
	at := h.in(1000 * ms)
	h.send(later("x", at), later("y", at.Add(ms)), later("x", at.Add(time.Hour)), text("x"), later("xx", at), later("X", at), later("z", at))
	n, err := h.cancelIDs("x", "z", "none", "x")
	h.ok(err)
	h.same(n, 3)
	h.wantNumbers(h.peek(orders), 2, 4, 5, 6) // the active one stays, and other ids
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1, Scheduled: 3})
	h.same(h.runtime().SizeInBytes, int64(2+2+4+2))
	h.Advance(1000 * ms)
	h.same(h.counts(), semantics.Runtime{Active: 3, Available: 3, Scheduled: 1})
}

func testSCHED_8_NoneIsNotFound(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("x", h.in(1000*ms)))
	h.refused(semantics.MessageNotFound, func() error {
		_, err := h.cancelIDs("other")
		return err
	})
	h.Advance(1000 * ms)
	_, err := h.cancelIDs("x") // it is due, so it is active
	h.wantCode(err, semantics.MessageNotFound)
	h.wantNumbers(h.receive(orders, 9), 2)
}

func testSCHED_8_ManyOfOneID(_ *testing.T, h *fixture) {
	h.create()
	batch := make([]*semantics.Message, 1200) // more than a store may want to remove in one step
	for i := range batch {
		batch[i] = &semantics.Message{MessageID: "same", ScheduledAt: h.in(time.Duration(i+1) * time.Second)}
	}
	h.send(batch...)
	n, err := h.cancelIDs("same")
	h.ok(err)
	h.same(n, len(batch))
	h.same(h.runtime(), semantics.Runtime{})
}

func testSCHED_8_Bounds(t *testing.T, h *fixture) {
	h.create()
	h.send(later("x", h.in(1000*ms)))
	ids := make([]string, broker.MaxCancelNumbers+1)
	for i := range ids {
		ids[i] = "x"
	}
	for code, bad := range map[semantics.Code][][]string{
		semantics.ArgumentOutOfRange: {ids},
		semantics.InvalidArgument:    {{""}, {"x", strings.Repeat("x", 129)}, {"\xff"}},
	} {
		for _, list := range bad {
			h.refused(code, func() error {
				_, err := h.cancelIDs(list...)
				return err
			})
		}
	}
	h.refused(semantics.InvalidArgument, func() error {
		_, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("orders"), []int64{1}, []string{"x"})
		return err
	})
	n, err := h.cancelIDs(ids[1:]...)
	h.ok(err)
	h.same(n, 1)
}
