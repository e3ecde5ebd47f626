package broker

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

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
