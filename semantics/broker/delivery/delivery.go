// Package delivery has what a receive took while it is on its way to the client: the messages, the tokens of their
// locks, and what becomes of both once the answer was written or could not be. The broker makes deliveries; streams and
// requests carry them too. A Delivery is used by one goroutine at a time, Removals by any number.
package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// SettleTimeout bounds the work that follows a written or unwritten answer, when the call itself may be over.
const SettleTimeout = 5 * time.Second

// Settler settles the messages of a Delivery.
type Settler interface {
	// Complete removes messages.
	Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error)
	// Release makes messages available again, and counts nothing.
	Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error)
}

// Delivery is what a receive took. The caller that carries it to the client must call exactly one of Delivered and
// Undelivered, once the answer was written or could not be (RECV-7).
type Delivery struct {
	Messages []*semantics.Received

	source   semantics.Source
	mode     semantics.Mode
	tokens   []semantics.LockToken
	settler  Settler
	removals *Removals
	memory   semantics.Memory                           // of the answer; nil: not bounded
	ended    func(verb semantics.Settlement, err error) // nil: nothing
}

// New makes a Delivery of messages that were locked for a call with ctx. In ReceiveAndDelete mode the messages lose
// their tokens, which the Delivery keeps.
func New(
	ctx context.Context, source semantics.Source, mode semantics.Mode, messages []*semantics.Received, settler Settler,
	removals *Removals,
) *Delivery {
	d := &Delivery{
		Messages: messages, source: source, mode: mode, tokens: make([]semantics.LockToken, len(messages)),
		settler: settler, removals: removals, memory: semantics.MemoryOf(ctx),
	}
	for i, m := range messages {
		d.tokens[i] = m.LockToken
		if mode == semantics.ReceiveAndDelete {
			m.LockToken, m.LockedUntil = semantics.LockToken{}, time.Time{}
		}
	}
	removals.begin(d)
	return d
}

// Source is where the messages are to be settled.
func (d *Delivery) Source() semantics.Source { return d.source }

// Tokens returns the tokens of the messages' locks, in the order of the messages. The caller must not change them.
func (d *Delivery) Tokens() []semantics.LockToken { return d.tokens }

// OnEnd lets do be called with what Delivered or Undelivered has done.
func (d *Delivery) OnEnd(do func(verb semantics.Settlement, err error)) { d.ended = do }

// Delivered records that the answer was accepted by the client's connection. In ReceiveAndDelete mode only now the
// messages are removed (RECV-7). If that fails they come back when their locks end. It blocks for one round trip.
func (d *Delivery) Delivered(ctx context.Context) (err error) {
	defer func() { d.end(d.settler.Complete, err) }()
	if d.mode != semantics.ReceiveAndDelete || len(d.tokens) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	codes, err := d.settler.Complete(ctx, d.source, d.tokens)
	if err == nil && slices.ContainsFunc(codes, hasStayed) { // the others were removed
		err = semantics.Errorf(semantics.StoreUnavailable, "messages of a partition were not removed; they come again")
	}
	return err
}

// hasStayed reports whether a message that was to be removed is still there by its code, because its partition failed.
func hasStayed(code semantics.Code) bool {
	return code == semantics.StoreUnavailable || code == semantics.Internal
}

// Undelivered records that the answer did not reach the client: the messages are available again at once and nothing
// is counted (RECV-7). If that fails they come back when their locks end. It blocks for one round trip.
func (d *Delivery) Undelivered(ctx context.Context) (err error) {
	defer func() { d.end(d.settler.Release, err) }()
	if len(d.tokens) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	_, err = d.settler.Release(ctx, d.source, d.tokens)
	return err
}

func (d *Delivery) end(verb semantics.Settlement, err error) {
	d.FreeMemory()
	d.removals.end(d, len(d.tokens))
	if d.ended != nil {
		d.ended(verb, err)
	}
}

// FreeMemory notes that nothing of the delivery is in this process any more, except what the wire has.
func (d *Delivery) FreeMemory() {
	if d.memory != nil {
		d.memory.Give(semantics.AnswerSize(d.Messages))
	}
}

// Split leaves the first n messages in a delivery and returns the others as one of their own.
func (d *Delivery) Split(n int) *Delivery {
	rest := *d
	rest.Messages, rest.tokens = d.Messages[n:], d.tokens[n:]
	d.Messages, d.tokens = d.Messages[:n:n], d.tokens[:n:n]
	return &rest
}

// Keep leaves only the messages whose tokens are wanted. The others are lost, so nothing removes them.
func (d *Delivery) Keep(wanted func(semantics.LockToken) bool) {
	n, bytes := 0, int64(0)
	for i, t := range d.tokens {
		if !wanted(t) {
			bytes += d.Messages[i].AnswerSize()
		} else {
			d.Messages[n], d.tokens[n] = d.Messages[i], t
			n++
		}
	}
	d.removals.end(d, len(d.tokens)-n)
	if d.memory != nil && bytes > 0 {
		d.memory.Give(bytes)
	}
	d.Messages, d.tokens = d.Messages[:n], d.tokens[:n]
}

// Add appends a message of another delivery of the same source.
func (d *Delivery) Add(message *semantics.Received, token semantics.LockToken) {
	d.Messages, d.tokens = append(d.Messages, message), append(d.tokens, token)
}

// Empty returns a delivery of the same source without messages.
func (d *Delivery) Empty() *Delivery {
	empty := *d
	empty.Messages, empty.tokens = nil, nil
	return &empty
}
