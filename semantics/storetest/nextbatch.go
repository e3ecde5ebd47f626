package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var nextBatchTests = []ruleTest{
	testRECV_15_OneStep,
	testRECV_15_RowsOfTheirOwn,
	testRECV_15_WhatWasDeliveredBefore,
	testRECV_15_NothingToReceive,
	testRECV_15_LocksThatHaveEnded,
	testRECV_15_Drain,
	testRECV_15_ManyCallers,
}

// next completes messages of orders and receives up to n of the next ones.
func (h *fixture) next(n int, done ...*semantics.Received) []*semantics.Received {
	h.t.Helper()
	next, err := h.broker.CompleteAndReceive(h.t.Context(), orders, tokensOf(done...), broker.ReceiveOptions{MaxMessages: n})
	h.wantCodes(next.Codes, err, make([]semantics.Code, len(done))...)
	h.ok(next.Failure)
	return next.Delivery.Messages
}

func testRECV_15_OneStep(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(6)
	got := h.receive(orders, 2)
	got = h.next(3, got...)
	h.wantNumbers(got, 3, 4, 5)
	h.wantCounts(1, 3, 0)
	got = append(got[:1:1], h.next(1, got[1])...) // the lock of the others stays
	h.wantNumbers(got, 3, 6)
	h.wantCounts(0, 3, 0)
	h.complete(orders, got...)
	h.wantCounts(0, 1, 0)
	h.Advance(lock)
	h.wantNumbers(h.next(1), 5)
}

func testRECV_15_RowsOfTheirOwn(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	got := h.receive(orders, 3)
	h.complete(orders, got[1])
	twice := append(got, got[0])
	next, err := h.broker.CompleteAndReceive(t.Context(), orders, tokensOf(twice...), broker.ReceiveOptions{MaxMessages: 5})
	h.wantCodes(next.Codes, err, "", semantics.MessageLockLost, "", semantics.MessageLockLost)
	h.ok(next.Failure)
	h.wantNumbers(next.Delivery.Messages, 4)
	h.wantCounts(0, 1, 0)
}

func testRECV_15_WhatWasDeliveredBefore(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	got := h.receive(orders, 3)
	h.abandon(orders, got[0])
	next := h.next(2, got[1:]...)
	h.wantNumbers(next, 1, 4)
	h.same(next[0].DeliveryCount, 2)
	h.next(1, next...)
	h.wantCounts(0, 0, 0)
}

func testRECV_15_NothingToReceive(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.wantNumbers(h.next(1, h.receiveOne(orders)))
	h.wantCounts(0, 0, 0)
}

func testRECV_15_LocksThatHaveEnded(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 1)
	h.Advance(lock)
	next, err := h.broker.CompleteAndReceive(t.Context(), orders, tokensOf(got...), broker.ReceiveOptions{MaxMessages: 2})
	h.wantCodes(next.Codes, err, semantics.MessageLockLost)
	h.ok(next.Failure)
	h.wantNumbers(next.Delivery.Messages, 1, 2)
}

func testRECV_15_Drain(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receiveOne(orders)
	h.broker.BeginDrain()
	next, err := h.broker.CompleteAndReceive(t.Context(), orders, tokensOf(got), broker.ReceiveOptions{MaxMessages: 1})
	h.wantCodes(next.Codes, err, "")
	h.wantCode(next.Failure, semantics.StoreUnavailable)
	h.wantCounts(1, 0, 0)
}

// Calls that share scripts get what is theirs: each message goes to one of them, and all are completed.
func testRECV_15_ManyCallers(_ *testing.T, h *fixture) {
	h.create()
	const senders, each, callers = 4, 50, 8
	book, ctx := h.consumeUntil(senders*each, 0, 1, nil)
	var callersWork sync.WaitGroup
	for range callers {
		callersWork.Go(func() { h.turnOver(ctx, book) })
	}
	h.produce(senders, each)
	callersWork.Wait()
	book.await(ctx, h, senders*each, true)
	h.wantCounts(0, 0, 0)
}

// turnOver completes what it has received and receives the next messages, one or two at a time, until ctx ends.
func (h *fixture) turnOver(ctx context.Context, book *ledger) {
	var done []*semantics.Received
	for n := 1; ctx.Err() == nil; n++ {
		next, err := h.broker.CompleteAndReceive(
			context.WithoutCancel(ctx), orders, tokensOf(done...), broker.ReceiveOptions{MaxMessages: 1 + n%2},
		)
		if err != nil || next.Failure != nil {
			h.t.Errorf("%v, %v", err, next.Failure)
			return
		}
		for i, m := range done {
			if next.Codes[i] != "" {
				h.t.Errorf("message %d: %s", m.SequenceNumber, next.Codes[i])
			}
			book.note(m.SequenceNumber, true)
		}
		done = next.Delivery.Messages
	}
	if len(done) > 0 {
		h.t.Errorf("%d messages came after the last one", len(done))
	}
}
