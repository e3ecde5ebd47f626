package broker

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// MaxPeekMessages is the most messages of one Peek (PEEK-4).
const MaxPeekMessages = 250

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
