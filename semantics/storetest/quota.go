package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

var quotaTests = []ruleTest{
	testMSG_23_LargeMessagesCountOnce,
	testQUOTA_6_SizeLimit,
	testQUOTA_6_CountLimit,
	testQUOTA_7_LimitsOfOneMessage,
	testQUOTA_12_DetailsNameTheShareOfDeadLetters,
	testQUOTA_12_TheRestGoesOn,
	testQUOTA_12_SizeFreesAtOnce,
	testQUOTA_12_ShrinkingOnlyStopsSends,
	testQUOTA_13_NeverPassedByParallelSenders,
	testQUOTA_13_MovesAreNotRefusedForSize,
}

// megabytes bounds the size and lets one message take all of it.
func megabytes(n int64) change {
	return func(o *semantics.Options) { o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = n, n<<10 }
}

const mebibyte = 1 << 20

func testMSG_23_LargeMessagesCountOnce(_ *testing.T, h *fixture) {
	h.create(megabytes(4))
	total := int64(0)
	for i, size := range []int64{mebibyte, mebibyte + 1, 2*mebibyte - 1} {
		number := h.send(sized(size))
		total += size
		h.same(number, int64(i+1))
		h.same([]int64{h.runtime().SizeInBytes, h.row(orders, number).Size}, []int64{total, size})
	}
	h.refusedSend(semantics.EntityFull, sized(6)) // so the last one filled it exactly
	first := h.receiveOne(orders)
	h.deadLetter(h.receiveOne(orders))
	h.abandon(orders, h.receiveOne(orders))
	h.same(h.runtime().SizeInBytes, total)
	h.complete(orders, first)
	h.same(h.runtime().SizeInBytes, total-mebibyte)
	h.complete(deadOrders, h.receiveOne(deadOrders))
	h.same(h.runtime().SizeInBytes, int64(2*mebibyte-1))
	h.complete(orders, h.receiveOne(orders))
	h.same(h.runtime(), semantics.Runtime{})
}

func testQUOTA_6_SizeLimit(_ *testing.T, h *fixture) {
	h.create(megabytes(1))
	h.send(sized(mebibyte - 100))
	h.refusedSend(semantics.EntityFull, sized(101))
	h.refusedSend(semantics.EntityFull, sized(50), sized(51))
	h.same(h.send(sized(50), sized(50)), int64(2)) // exactly full, and no number was used up
	h.refusedSend(semantics.EntityFull, sized(6))
}

func testQUOTA_6_CountLimit(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageCount = 3 })
	h.sendTexts(2)
	err := h.refusedSend(semantics.EntityFull, text("3"), text("4"))
	h.same([]string{err.Details[semantics.DetailLimit], err.Details[semantics.DetailActual]}, []string{"3", "4"})
	h.sendTexts(1)
	h.refusedSend(semantics.EntityFull, text("4"))
	got := h.receive(orders, 3)
	h.refusedSend(semantics.EntityFull, text("4")) // locked ones are active
	h.deadLetter(got[0])
	h.complete(orders, got[1])
	h.sendTexts(2) // dead letters are not
	h.refusedSend(semantics.EntityFull, text("6"))
}

func testQUOTA_7_LimitsOfOneMessage(_ *testing.T, h *fixture) {
	h.create()
	h.send(sized(256 << 10))
	h.refusedSend(semantics.MessageSizeExceeded, sized(256<<10+1))
}

func testQUOTA_12_DetailsNameTheShareOfDeadLetters(_ *testing.T, h *fixture) {
	h.create(megabytes(1))
	h.send(sized(1000))
	h.send(sized(mebibyte - 1000))
	h.deadLetter(h.receiveOne(orders))
	err := h.refusedSend(semantics.EntityFull, sized(6))
	h.same(err.Details[semantics.DetailLimit], fmt.Sprint(mebibyte))
	h.same(err.Details[semantics.DetailActual], fmt.Sprint(mebibyte+6))
	h.same(err.Details[semantics.DetailDeadSize], "1000")
	if !err.Code.Retryable() {
		h.t.Error("ENTITY_FULL must be retryable")
	}
}

func testQUOTA_12_TheRestGoesOn(_ *testing.T, h *fixture) {
	h.create(megabytes(1), buriesExpired)
	h.send(lasting("expires", 1000*ms))
	h.send(text("a"), text("b"), text("c"), text("d"))
	h.send(sized(mebibyte - h.runtime().SizeInBytes))
	h.refusedSend(semantics.EntityFull, text("x"))
	h.Advance(1000 * ms)
	got := h.receive(orders, 4)
	h.wantNumbers(got, 2, 3, 4, 5)
	h.same(h.peek(deadOrders)[0].DeadLetterReason, "TTLExpiredException")
	h.renew(orders, got[0])
	h.complete(orders, got[0])
	h.abandon(orders, got[1])
	h.release(orders, got[2])
	h.deadLetter(got[3])
	h.wantCounts(3, 0, 2)
}

func testQUOTA_12_SizeFreesAtOnce(_ *testing.T, h *fixture) {
	h.create(megabytes(1))
	full := func() *semantics.Message { return sized(mebibyte) }
	h.send(full())
	got := h.receiveOne(orders)
	h.refusedSend(semantics.EntityFull, text("x"))
	h.complete(orders, got)
	h.send(full())
	h.deadLetter(h.receiveOne(orders))
	h.refusedSend(semantics.EntityFull, text("x"))
	h.complete(deadOrders, h.receiveOne(deadOrders))
	last := full()
	ttl := 1000 * ms
	last.TimeToLive = &ttl
	h.send(last)
	h.Advance(ttl)
	h.receiveNone(orders)
	h.send(full())
}

func testQUOTA_12_ShrinkingOnlyStopsSends(_ *testing.T, h *fixture) {
	h.create(megabytes(2))
	h.send(sized(mebibyte))
	h.send(sized(mebibyte))
	h.update(func(o *semantics.Options) { o.MaxSizeInMegabytes = 1 }, "maxSizeInMegabytes")
	h.wantCounts(2, 0, 0)
	h.refusedSend(semantics.EntityFull, text("x"))
	h.complete(orders, h.receiveOne(orders))
	h.refusedSend(semantics.EntityFull, text("x"))
	h.complete(orders, h.receiveOne(orders))
	h.send(text("x"))
}

func testQUOTA_13_NeverPassedByParallelSenders(t *testing.T, h *fixture) {
	h.races()
	const limit, senders, each = 50, 8, 10
	h.create(func(o *semantics.Options) { o.MaxMessageCount = limit })
	var sent atomic.Int64
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			for range each {
				_, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("a")})
				switch semantics.CodeOf(err) {
				case "":
					sent.Add(1)
				case semantics.EntityFull:
				default:
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	h.same(sent.Load(), int64(limit))
	h.wantCounts(limit, 0, 0)
}

func testQUOTA_13_MovesAreNotRefusedForSize(t *testing.T, h *fixture) {
	h.create(megabytes(1), deliversAtMost(1))
	h.send(sized(mebibyte-100), sized(50), sized(50))
	got := h.receive(orders, 3)
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[0]), why("reason", "a description with bytes of its own"))
	h.settled(codes, err)
	h.abandon(orders, got[1])
	h.release(orders, got[2])
	h.wantCounts(1, 0, 2)
}
