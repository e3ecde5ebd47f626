package broker

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

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
		if batch, err = b.store.Receive(ctx, source, options.MaxMessages, register); err != nil {
			return false, batch.RecheckAfter, err
		}
		found := len(batch.Messages)
		batch.Messages, err = b.handedOut(ctx, source, batch.Messages)
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

// takeMemory takes memory for an answer with messages. When there is none, what was locked for it is given back,
// uncounted.
func (b *Broker) takeMemory(ctx context.Context, source semantics.Source, messages []*semantics.Received) error {
	m := semantics.MemoryOf(ctx)
	if len(messages) == 0 {
		return nil
	}
	err := m.Take(semantics.AnswerSize(messages), false)
	if err == nil || messages[0].LockToken.IsZero() {
		return err
	}
	b.giveBack(ctx, source, messages)
	return err
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
