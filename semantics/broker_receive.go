package semantics

import (
	"context"
	"time"
)

// Bounds of a receive and a peek (RECV-5, RECV-6, PEEK-4).
const (
	MaxReceiveMessages = 1000
	DefaultMaxWait     = time.Minute
	MaxWait            = 5 * time.Minute
	MaxPeekMessages    = 250
)

// Mode is how a receive takes messages (RECV-1).
type Mode uint8

// The receive modes.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
)

// ReceiveOptions say how much to take, how long to wait for the first message and what becomes of it.
type ReceiveOptions struct {
	MaxMessages int
	MaxWait     time.Duration // 0: only what is there
	Mode        Mode
}

// Delivery is what a receive took. Whoever carries it to the client must call exactly one of Delivered and
// Undelivered, once the answer was written or could not be (RECV-7).
type Delivery struct {
	Messages []*Received

	broker *Broker
	source Source
	mode   Mode
	tokens []LockToken
	ended  func(verb Settlement, err error) // is called with what Delivered or Undelivered has done; nil: nothing
}

func (d *Delivery) end(verb Settlement, err error) {
	d.broker.removals.end(d, len(d.tokens))
	if d.ended != nil {
		d.ended(verb, err)
	}
}

// Source is where the messages are to be settled.
func (d *Delivery) Source() Source { return d.source }

// Receive takes up to MaxMessages available messages and waits up to MaxWait for the first one (RECV-5). A wait that
// ends, also because the Broker drains, gives an empty Delivery and no error.
// ARGUMENT_OUT_OF_RANGE, INVALID_ARGUMENT, ENTITY_NOT_FOUND, ENTITY_DISABLED, THROTTLED, CANCELLED when ctx ends, and INVALID_OPERATION
// for a queue that forwards all it gets (FWD-2).
func (b *Broker) Receive(ctx context.Context, source Source, options ReceiveOptions) (*Delivery, error) {
	if !source.SessionLock.IsZero() {
		b.removals.await(ctx, source.SessionLock)
	}
	return b.receive(ctx, source, options)
}

// receive is Receive but for what the client was given before from the same session and may not be removed yet.
func (b *Broker) receive(ctx context.Context, source Source, options ReceiveOptions) (*Delivery, error) {
	source, err := checkReceiveSource(source)
	if err != nil {
		return nil, err
	}
	if n := options.MaxMessages; n < 1 || n > MaxReceiveMessages {
		return nil, fieldError(ArgumentOutOfRange, "maxMessages", "is %d, must be 1 to %d", n, MaxReceiveMessages)
	}
	if w := options.MaxWait; w < 0 || w > MaxWait {
		return nil, fieldError(ArgumentOutOfRange, "maxWait", "is %s, must be 0s to %s", w, MaxWait)
	}
	if options.Mode > ReceiveAndDelete {
		return nil, fieldError(InvalidArgument, "mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	messages, err := b.receiveOrWait(ctx, source, options)
	if err != nil {
		return nil, err
	}
	return b.deliver(source, options.Mode, messages), nil
}

func (b *Broker) receiveOrWait(ctx context.Context, source Source, options ReceiveOptions) ([]*Received, error) {
	var batch Batch
	try := func(ctx context.Context, register Register) (bool, time.Duration, error) {
		var err error
		batch, err = b.store.Receive(ctx, source, options.MaxMessages, register)
		return len(batch.Messages) > 0, batch.RecheckAfter, err
	}
	if err := b.tryOrWait(ctx, source, options.MaxWait, attempt{try: try}); err != nil {
		b.sessionFailed(source, err)
		return nil, err
	}
	return batch.Messages, nil
}

// tryOrWait tries once without any preparation, which is all a busy source needs, and only then goes into the waiting room.
func (b *Broker) tryOrWait(ctx context.Context, source Source, maxWait time.Duration, a attempt) error {
	deadline := time.Now().Add(maxWait)
	if maxWait == 0 || !b.rooms.isOpen(source) {
		for {
			found, recheck, err := a.try(ctx, b.rooms.registerFor(source))
			if found || maxWait == 0 && (err != nil || recheck > 0) || err != nil && !a.mayWait(err) {
				return err
			}
			if err != nil || recheck > 0 {
				break
			}
		}
	}
	room, err := b.rooms.enter(ctx, source)
	if err != nil {
		return err
	}
	defer b.rooms.leave(ctx, room)
	b.uses.begin(ctx, source.Path)
	defer b.uses.end(source.Path)
	return room.wait(ctx, b.draining, deadline, a)
}

// checkSource checks a source that may be a held session.
func checkSource(source Source) (Source, error) {
	path, err := source.parsePath()
	if err != nil {
		return source, err
	}
	source.Path = path
	if source.SubQueue != MainQueue && (!source.SessionLock.IsZero() || source.Session != "") {
		return source, Errorf(SessionNotSupported, "a dead-letter queue has no sessions; leave the session out").
			With(DetailEntity, path).With(DetailSubQueue, source.SubQueue.String())
	}
	return source, nil
}

// checkReceiveSource is checkSource for verbs that take messages, for which a session must be held.
func checkReceiveSource(source Source) (Source, error) {
	source, err := checkSource(source)
	if err == nil && source.Session != "" {
		err = Errorf(SessionRequired, "a session must be accepted before its messages are received").With(DetailEntity, source.Path)
	}
	return source, err
}

func (b *Broker) deliver(source Source, mode Mode, messages []*Received) *Delivery {
	b.charge(len(messages) - callCost)
	d := &Delivery{Messages: messages, broker: b, source: source, mode: mode, tokens: make([]LockToken, len(messages))}
	for i, m := range messages {
		d.tokens[i] = m.LockToken
		if mode == ReceiveAndDelete {
			m.LockToken, m.LockedUntil = LockToken{}, time.Time{}
		}
	}
	if mode == PeekLock {
		b.held.add(source, messages)
	}
	b.removals.begin(d)
	return d
}

// settleTimeout bounds the work that follows a written or unwritten answer, when the call itself may be over.
const settleTimeout = 5 * time.Second

// Delivered says that the answer was accepted by the client's connection. In ReceiveAndDelete mode only now the
// messages are removed (RECV-7). If that fails they come back when their locks end. It blocks for one round trip.
func (d *Delivery) Delivered(ctx context.Context) (err error) {
	defer func() { d.end(d.broker.store.Complete, err) }()
	if d.mode != ReceiveAndDelete || len(d.tokens) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_, err = d.broker.store.Complete(ctx, d.source, d.tokens)
	return err
}

// Undelivered says that the answer did not reach the client: the messages are available again at once and nothing
// is counted (RECV-7). If that fails they come back when their locks end. It blocks for one round trip.
func (d *Delivery) Undelivered(ctx context.Context) (err error) {
	defer func() { d.end(d.broker.store.Release, err) }()
	if len(d.tokens) == 0 {
		return nil
	}
	d.broker.held.remove(d.tokens)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_, err = d.broker.store.Release(ctx, d.source, d.tokens)
	return err
}

// MaxDeferredNumbers is the most sequence numbers of one ReceiveDeferred, ReceiveBySequence or Reactivate (DEFER-4).
const MaxDeferredNumbers = 250

// ReceiveDeferred takes deferred messages by their sequence numbers, all or none (DEFER-3). No numbers give an empty
// Delivery (DEFER-4). INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, ENTITY_DISABLED, and MESSAGE_NOT_FOUND
// when a number is unknown, not deferred, locked or past its time (TTL-18).
func (b *Broker) ReceiveDeferred(ctx context.Context, source Source, numbers []int64, mode Mode) (*Delivery, error) {
	return b.receiveByNumber(ctx, source, Deferred, numbers, mode)
}

// ReceiveBySequence takes available messages by their sequence numbers, all or none, out of their order (PURGE-9).
// Results and errors as ReceiveDeferred.
func (b *Broker) ReceiveBySequence(ctx context.Context, source Source, numbers []int64, mode Mode) (*Delivery, error) {
	return b.receiveByNumber(ctx, source, Active, numbers, mode)
}

func (b *Broker) receiveByNumber(ctx context.Context, source Source, state State, numbers []int64, mode Mode) (*Delivery, error) {
	source, err := checkSourceNumbers(source, numbers)
	if err != nil {
		return nil, err
	}
	if mode > ReceiveAndDelete {
		return nil, fieldError(InvalidArgument, "mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return b.deliver(source, mode, nil), nil
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	messages, err := b.store.ReceiveByNumber(ctx, source, state, numbers)
	if err != nil {
		return nil, err
	}
	return b.deliver(source, mode, messages), nil
}

// Reactivate makes deferred messages available again at their old places, all or none (DEFER-8). Errors as
// ReceiveDeferred.
func (b *Broker) Reactivate(ctx context.Context, source Source, numbers []int64) error {
	source, err := checkSourceNumbers(source, numbers)
	if err != nil || len(numbers) == 0 {
		return err
	}
	if err := b.admit(callCost); err != nil {
		return err
	}
	if err := b.store.Reactivate(ctx, source, numbers); err != nil {
		return err
	}
	b.charge(len(unique(numbers)))
	return nil
}

func checkSourceNumbers(source Source, numbers []int64) (Source, error) {
	source, err := checkReceiveSource(source)
	if err != nil {
		return source, err
	}
	return source, checkNumbersOrNone(numbers, MaxDeferredNumbers)
}

// Peek looks at up to limit messages from the given sequence number on, in ascending order, without lock or count
// (PEEK-1, PEEK-3). More than MaxPeekMessages are cut to that. show chooses among them (PEEK-7), zero means ShowAll.
// ARGUMENT_OUT_OF_RANGE, INVALID_ARGUMENT, ENTITY_NOT_FOUND, ENTITY_DISABLED.
func (b *Broker) Peek(ctx context.Context, source Source, from int64, limit int, show Show) ([]*Received, error) {
	source, err := checkSource(source)
	if err != nil {
		return nil, err
	}
	if err := validateID("sessionId", source.Session); err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, fieldError(ArgumentOutOfRange, "maxMessages", "is %d, must be at least 1", limit)
	}
	if from < 0 {
		return nil, fieldError(ArgumentOutOfRange, "fromSequenceNumber", "is %d, must not be negative", from)
	}
	if show == 0 {
		show = ShowAll
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	messages, err := b.store.Peek(ctx, source, from, min(limit, MaxPeekMessages), show)
	b.charge(len(messages) - callCost)
	return messages, err
}

func cancelled(ctx context.Context) *Error {
	return &Error{Code: Cancelled, Message: "the caller went away", Err: context.Cause(ctx)}
}
