package broker

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

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
	tokens := make([]semantics.LockToken, len(messages))
	for i, r := range messages {
		tokens[i] = r.LockToken
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.SettleTimeout)
	defer cancel()
	_, _ = b.store.Release(ctx, source, tokens) // what cannot be given back comes again when its lock ends
	return err
}
