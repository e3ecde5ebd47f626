package storetest

import (
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// later is a text to be enqueued at an instant.
func later(id string, at time.Time) *semantics.Message {
	m := text(id)
	m.ScheduledAt = at
	return m
}

// in is an instant that lies ahead by the store's clock.
func (h *fixture) in(d time.Duration) time.Time { return h.Now().Add(d) }

// sendAll sends messages to orders in one call and returns what became of each.
func (h *fixture) sendAll(messages ...*semantics.Message) []semantics.Stored {
	h.t.Helper()
	results, err := h.broker.Send(h.t.Context(), semantics.ToQueue(orders.Path), messages)
	h.ok(err)
	stored := make([]semantics.Stored, len(results))
	for i, r := range results {
		stored[i] = r.Stored
	}
	return stored
}

// stored and duplicate are what a sender hears of a message.
func stored(number int64) semantics.Stored { return semantics.Stored{SequenceNumber: number} }

func duplicate(original int64) semantics.Stored {
	return semantics.Stored{SequenceNumber: original, Deduplicated: true}
}

func (h *fixture) cancel(numbers ...int64) error {
	_, err := h.broker.CancelScheduled(h.t.Context(), semantics.ToQueue(orders.Path), numbers, nil)
	return err
}

func (h *fixture) cancelIDs(ids ...string) (int, error) {
	return h.broker.CancelScheduled(h.t.Context(), semantics.ToQueue(orders.Path), nil, ids)
}

// takeDeferred receives deferred messages that must be there.
func (h *fixture) takeDeferred(source semantics.Source, numbers ...int64) []*semantics.Received {
	h.t.Helper()
	delivery, err := h.broker.ReceiveDeferred(h.t.Context(), source, numbers, semantics.PeekLock)
	h.ok(err)
	h.wantNumbers(delivery.Messages, numbers...)
	return delivery.Messages
}

func (h *fixture) receiveDeferred(source semantics.Source, numbers ...int64) error {
	_, err := h.broker.ReceiveDeferred(h.t.Context(), source, numbers, semantics.PeekLock)
	return err
}

// takeNumbers receives available messages by number that must be there.
func (h *fixture) takeNumbers(source semantics.Source, numbers ...int64) []*semantics.Received {
	h.t.Helper()
	delivery, err := h.broker.ReceiveBySequence(h.t.Context(), source, numbers, semantics.PeekLock)
	h.ok(err)
	h.wantNumbers(delivery.Messages, numbers...)
	return delivery.Messages
}

func (h *fixture) receiveNumbers(source semantics.Source, numbers ...int64) error {
	_, err := h.broker.ReceiveBySequence(h.t.Context(), source, numbers, semantics.PeekLock)
	return err
}

func (h *fixture) reactivate(source semantics.Source, numbers ...int64) error {
	return h.broker.Reactivate(h.t.Context(), source, numbers)
}

// wantMissing checks that a call found nothing under the given numbers, and that it says so.
func (h *fixture) wantMissing(err error, list string) {
	h.t.Helper()
	e := h.wantCode(err, semantics.MessageNotFound)
	h.same(e.Details[semantics.DetailNumbers], list)
}

func (h *fixture) purge(source semantics.Source, options broker.PurgeOptions) int64 {
	h.t.Helper()
	result, err := h.broker.Purge(h.t.Context(), source, options)
	h.ok(err)
	return result.Deleted
}

func (h *fixture) deleteNumbers(source semantics.Source, numbers ...int64) []semantics.Code {
	h.t.Helper()
	codes, err := h.broker.DeleteBySequence(h.t.Context(), source, numbers)
	h.ok(err)
	return codes
}

// resubmit sends dead letters of orders again and returns what became of each.
func (h *fixture) resubmit(options broker.ResubmitOptions) []broker.ResubmitResult {
	h.t.Helper()
	results, _, err := h.broker.Resubmit(h.t.Context(), deadOrders, options)
	h.ok(err)
	return results
}

// deadLetterTexts sends texts to orders and dead-letters them. The queue must be empty of others.
func (h *fixture) deadLetterTexts(ids ...string) {
	h.t.Helper()
	var messages []*semantics.Message
	for _, id := range ids {
		messages = append(messages, text(id))
	}
	h.send(messages...)
	h.deadLetter(h.receive(orders, len(ids))...)
}

// showing returns the numbers of the messages of source that are in one of the groups.
func (h *fixture) showing(source semantics.Source, show semantics.Show) []int64 {
	h.t.Helper()
	rows, err := h.broker.Peek(h.t.Context(), source, 0, broker.MaxPeekMessages, show)
	h.ok(err)
	return numbersOf(rows)
}

func (h *fixture) row(source semantics.Source, number int64) *semantics.Received {
	h.t.Helper()
	rows := h.peekFrom(source, number, 1)
	if len(rows) != 1 || rows[0].SequenceNumber != number {
		h.t.Fatalf("%s has no message %d", source, number)
	}
	return rows[0]
}

// counts returns the message counts of orders.
func (h *fixture) counts() semantics.Runtime {
	h.t.Helper()
	r := h.runtime()
	r.SizeInBytes, r.OldestEnqueuedAt, r.AvailableSince, r.Partitions = 0, time.Time{}, time.Time{}, nil
	return r
}

// accessed is when something last happened to orders.
func (h *fixture) accessed() time.Time {
	h.t.Helper()
	queue, err := h.broker.GetEntity(h.t.Context(), semantics.QueueKind, orders.Path)
	h.ok(err)
	return queue.AccessedAt
}

// drop deletes orders, so that a test can begin again.
func (h *fixture) drop() {
	h.t.Helper()
	h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, orders.Path))
}

// looks are the calls that carry out what is due, on orders and without touching anything that is not, if no message
// has one of the numbers and ids used here.
func (h *fixture) looks() map[string]func() {
	const none = 1 << 40
	ctx := h.t.Context()
	nothing := semantics.Purge{Show: semantics.ShowAvailable, Before: time.UnixMilli(1), Limit: 1}
	notFound := func(err error) { h.wantCode(err, semantics.MessageNotFound) }
	looks := map[string]func(){
		"runtime":   func() { h.runtime() },
		"cancel":    func() { notFound(h.cancel(none)) },
		"cancel id": func() { _, err := h.cancelIDs("no such id"); notFound(err) },
		"resubmit": func() {
			_, err := h.Store.Resubmit(ctx, deadOrders, orders.Path, []semantics.Resubmission{{SequenceNumber: none}}, false)
			h.ok(err)
		},
	}
	for _, source := range []semantics.Source{orders, deadOrders} {
		at := " " + source.SubQueue.String()
		looks["receive"+at] = func() { _, err := h.Store.Receive(ctx, source, 1, semantics.RegisterNever); h.ok(err) }
		looks["peek"+at] = func() { h.peekFrom(source, none, 1) }
		looks["receive deferred"+at] = func() { notFound(h.receiveDeferred(source, none)) }
		looks["receive by number"+at] = func() { notFound(h.receiveNumbers(source, none)) }
		looks["reactivate"+at] = func() { notFound(h.reactivate(source, none)) }
		looks["delete by number"+at] = func() { h.same(h.deleteNumbers(source, none), []semantics.Code{semantics.MessageNotFound}) }
		looks["purge"+at] = func() { _, err := h.Store.Purge(ctx, source, nothing); h.ok(err) }
	}
	return looks
}

func int64Text(n int64) string { return strconv.FormatInt(n, 10) }
