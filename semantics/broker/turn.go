package broker

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// turn completes messages of sessions for a subscription and takes the next ones (docs/decisions/0036). It takes none
// if a receive would be refused now; the subscription then looks, and hears why.
func (b *Broker) turn(
	ctx context.Context, path string, turns []semantics.Turn, owner stream.Owner,
) []stream.Turned {
	all := make([]stream.Turned, len(turns))
	completes, receives := 0, 0
	for _, t := range turns {
		completes += len(t.Complete)
		if t.Receive > 0 {
			receives += callCost
		}
	}
	if err := b.admit(completes); err != nil {
		for i := range all {
			all[i].Err = err
		}
		return all
	}
	if b.refuseIfDraining() != nil || semantics.MemoryOf(ctx).Take(0, false) != nil || b.admit(receives) != nil {
		for i := range turns {
			turns[i].Receive = 0
		}
	}
	for i, o := range b.store.Turn(ctx, path, turns) {
		all[i] = b.turned(ctx, path, turns[i], o, ReceiveOptions{owner: owner})
	}
	return all
}

// look receives from sessions for a subscription, without a wait. options are for all of them.
func (b *Broker) look(
	ctx context.Context, path string, turns []semantics.Turn, options ReceiveOptions,
) []stream.Turned {
	all := make([]stream.Turned, len(turns))
	err := b.refuseIfDraining()
	if err == nil {
		err = semantics.MemoryOf(ctx).Take(0, false)
	}
	admitted := 0
	for err == nil && admitted < len(turns) {
		if err = b.admit(callCost); err == nil {
			admitted++
		}
	}
	for i := range all[admitted:] {
		all[admitted+i].Failure = err
	}
	if admitted == 0 {
		return all
	}
	for i, o := range b.store.Turn(ctx, path, turns[:admitted]) {
		all[i] = b.turned(ctx, path, turns[i], o, options)
	}
	return all
}

// turned does what follows from a turn in the store.
func (b *Broker) turned(
	ctx context.Context, path string, turn semantics.Turn, o semantics.TurnOutcome, options ReceiveOptions,
) stream.Turned {
	source := semantics.Source{Path: path, SessionLock: turn.Session}
	t := stream.Turned{Codes: o.Codes, Err: o.Err, Failure: o.Failure}
	if o.Err == nil {
		b.held.ended(source, turn.Complete, o.Codes)
	}
	b.sessionFailed(source, o.Err)
	b.sessionFailed(source, o.Failure)
	if o.Err != nil || o.Failure != nil || turn.Receive == 0 {
		return t
	}
	messages, err := b.handedOut(ctx, source, o.Batch.Messages)
	if len(messages) == len(o.Batch.Messages) { // else there may be others
		t.Recheck = o.Batch.RecheckAfter
	}
	if err == nil {
		err = b.takeMemory(ctx, source, messages)
	}
	switch t.Failure = err; {
	case err != nil:
		t.Recheck = 0 // nothing wakes the session for what was given back
	case len(messages) > 0:
		t.Delivery = b.deliver(ctx, source, options, messages)
	}
	return t
}
