package broker

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// turn completes messages of sessions for a subscription and takes the next ones (docs/decisions/0036). It takes none
// if a receive would be refused now; the subscription then receives, and hears why.
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
		source := semantics.Source{Path: path, SessionLock: turns[i].Session}
		all[i].Codes, all[i].Err = o.Codes, o.Err
		if o.Err == nil {
			b.held.ended(source, turns[i].Complete, o.Codes)
		}
		b.sessionFailed(source, o.Failure)
		// Without the payload key of the next one, there is none: the subscription then receives, and hears that.
		messages, _ := b.handedOut(ctx, source, o.Batch.Messages)
		if len(messages) > 0 && b.takeMemory(ctx, source, messages) == nil {
			all[i].Delivery = b.deliver(ctx, source, ReceiveOptions{owner: owner}, messages)
		}
	}
	return all
}
