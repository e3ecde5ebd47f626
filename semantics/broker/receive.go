package broker

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// MaxPeekMessages is the most messages of one Peek (PEEK-4).
const MaxPeekMessages = 250

// ReceiveOptions say how much to take, how long to wait for the first message and what becomes of it.
type ReceiveOptions struct {
	MaxMessages int           // 1 to semantics.MaxReceiveMessages, 1000
	MaxWait     time.Duration // 0 to semantics.MaxWait, 5 minutes; 0: only what is there
	Mode        semantics.Mode

	owner stream.Owner // the subscription that receives; nil: a call
}

func (o ReceiveOptions) check() error {
	if n := o.MaxMessages; n < 1 || n > semantics.MaxReceiveMessages {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, "maxMessages", "is %d, must be 1 to %d", n, semantics.MaxReceiveMessages,
		)
	}
	if w := o.MaxWait; w < 0 || w > semantics.MaxWait {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, "maxWait", "is %s, must be 0s to %s", w, semantics.MaxWait,
		)
	}
	if o.Mode > semantics.ReceiveAndDelete {
		return semantics.InvalidField("mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	return nil
}

// Receive takes up to MaxMessages available messages and waits up to options.MaxWait for the first one (RECV-5). A
// wait that ends, also because the Broker drains, returns an empty Delivery and no error. ARGUMENT_OUT_OF_RANGE,
// INVALID_ARGUMENT, ENTITY_NOT_FOUND, ENTITY_DISABLED, THROTTLED, CANCELLED when ctx ends, and INVALID_OPERATION for a
// queue that forwards all it gets (FWD-2).
func (b *Broker) Receive(
	ctx context.Context, source semantics.Source, options ReceiveOptions,
) (*delivery.Delivery, error) {
	if !source.SessionLock.IsZero() {
		b.removals.Await(ctx, source.SessionLock)
	}
	return b.receive(ctx, source, options)
}

// receive is Receive without ending what the client was given before from the same session.
func (b *Broker) receive(
	ctx context.Context, source semantics.Source, options ReceiveOptions,
) (*delivery.Delivery, error) {
	source, err := b.checkSession(source.ParseToReceive())
	if err != nil {
		return nil, err
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	return b.receiveAdmitted(ctx, source, options)
}

// receiveAdmitted receives for a call whose credits are taken.
func (b *Broker) receiveAdmitted(
	ctx context.Context, source semantics.Source, options ReceiveOptions,
) (*delivery.Delivery, error) {
	messages, err := b.receiveOrWait(ctx, source, options)
	if err != nil {
		return nil, err
	}
	return b.deliver(ctx, source, options, messages), nil
}

func (b *Broker) receiveOrWait(
	ctx context.Context, source semantics.Source, options ReceiveOptions,
) ([]*semantics.Received, error) {
	var batch semantics.Batch
	try := func(ctx context.Context, register semantics.Register) (bool, time.Duration, error) {
		err := semantics.MemoryOf(ctx).Take(0, false)
		if err != nil {
			return false, 0, err
		}
		batch, err = b.store.Receive(ctx, source, options.MaxMessages, register)
		found := len(batch.Messages)
		batch.Messages = b.readable(ctx, source, batch.Messages)
		if len(batch.Messages) < found {
			batch.RecheckAfter = 0 // there may be others
		}
		return len(batch.Messages) > 0, batch.RecheckAfter, err
	}
	if err := b.tryOrWait(ctx, source, options.MaxWait, attempt{try: try}); err != nil {
		b.sessionFailed(source, err)
		return nil, err
	}
	if err := b.takeMemory(ctx, source, batch.Messages); err != nil {
		return nil, err
	}
	return batch.Messages, nil
}

func (b *Broker) deliver(
	ctx context.Context, source semantics.Source, options ReceiveOptions, messages []*semantics.Received,
) *delivery.Delivery {
	b.charge(len(messages) - callCost)
	if options.Mode == semantics.PeekLock {
		b.held.add(source, messages, options.owner)
	}
	return delivery.New(ctx, source, options.Mode, messages, settler{b}, b.removals)
}

// settler settles deliveries, which costs clients no credits.
type settler struct{ b *Broker }

func (s settler) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.b.store.Complete(ctx, source, tokens)
}

func (s settler) Release(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	s.b.held.remove(tokens)
	return s.b.store.Release(ctx, source, tokens)
}

// MaxDeferredNumbers is the most sequence numbers of one ReceiveDeferred, ReceiveBySequence or Reactivate (DEFER-4).
const MaxDeferredNumbers = 250

// ReceiveDeferred takes deferred messages by their sequence numbers, all or none (DEFER-3). No numbers give an empty
// Delivery (DEFER-4). INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, ENTITY_DISABLED, and MESSAGE_NOT_FOUND
// when a number is unknown, not deferred, locked or past its time (TTL-18).
func (b *Broker) ReceiveDeferred(
	ctx context.Context, source semantics.Source, numbers []int64, mode semantics.Mode,
) (*delivery.Delivery, error) {
	return b.receiveByNumber(ctx, source, semantics.Deferred, numbers, mode)
}

// ReceiveBySequence takes available messages by their sequence numbers, all or none, out of their order (PURGE-9).
// Results and errors as ReceiveDeferred.
func (b *Broker) ReceiveBySequence(
	ctx context.Context, source semantics.Source, numbers []int64, mode semantics.Mode,
) (*delivery.Delivery, error) {
	return b.receiveByNumber(ctx, source, semantics.Active, numbers, mode)
}

func (b *Broker) receiveByNumber(
	ctx context.Context, source semantics.Source, state semantics.State, numbers []int64, mode semantics.Mode,
) (*delivery.Delivery, error) {
	source, err := b.checkSourceNumbers(source, numbers)
	if err != nil {
		return nil, err
	}
	if mode > semantics.ReceiveAndDelete {
		return nil, semantics.InvalidField("mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return b.deliver(ctx, source, ReceiveOptions{Mode: mode}, nil), nil
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	if err := semantics.MemoryOf(ctx).Take(0, false); err != nil {
		return nil, err
	}
	messages, err := b.store.ReceiveByNumber(ctx, source, state, numbers)
	if err != nil {
		return nil, err
	}
	if messages, err = b.allReadable(ctx, source, messages); err != nil {
		return nil, err
	}
	if err := b.takeMemory(ctx, source, messages); err != nil {
		return nil, err
	}
	return b.deliver(ctx, source, ReceiveOptions{Mode: mode}, messages), nil
}

// Reactivate makes deferred messages available again at their old places, all or none (DEFER-8). Errors as
// ReceiveDeferred.
func (b *Broker) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	source, err := b.checkSourceNumbers(source, numbers)
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

func (b *Broker) checkSourceNumbers(source semantics.Source, numbers []int64) (semantics.Source, error) {
	source, err := b.checkSession(source.ParseToReceive())
	if err != nil {
		return source, err
	}
	return source, checkNumbersOrNone(numbers, MaxDeferredNumbers)
}

// Peek looks at up to limit messages from the given sequence number on, in ascending order, without lock or count
// (PEEK-1, PEEK-3). More than MaxPeekMessages are cut to that. show chooses among them (PEEK-7), zero means ShowAll.
// ARGUMENT_OUT_OF_RANGE, INVALID_ARGUMENT, ENTITY_NOT_FOUND, ENTITY_DISABLED.
func (b *Broker) Peek(
	ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show,
) ([]*semantics.Received, error) {
	source, err := b.checkSession(source.Parse())
	if err != nil {
		return nil, err
	}
	if err := semantics.CheckID("sessionId", source.Session); err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, semantics.FieldError(
			semantics.ArgumentOutOfRange, "maxMessages", "is %d, must be at least 1", limit,
		)
	}
	if from < 0 {
		return nil, semantics.FieldError(
			semantics.ArgumentOutOfRange, "fromSequenceNumber", "is %d, must not be negative", from,
		)
	}
	if show == 0 {
		show = semantics.ShowAll
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	if err := semantics.MemoryOf(ctx).Take(0, false); err != nil {
		return nil, err
	}
	messages, err := b.store.Peek(ctx, source, from, min(limit, MaxPeekMessages), show)
	if err == nil {
		err = semantics.MemoryOf(ctx).Take(semantics.AnswerSize(messages), false)
	}
	if err != nil {
		return nil, err
	}
	markUnreadable(messages)
	b.charge(len(messages) - callCost)
	return messages, nil
}
