package semantics

import (
	"context"
	"unicode/utf8"
)

// Bounds of settlement calls (RECV-6, LOCK-5, SETTLE-6).
const (
	MaxSettleTokens      = MaxReceiveMessages
	MaxRenewTokens       = 500
	MaxDeadLetterText    = 4096 // characters of reason and of description
	deadLetterSourceText = "a message in a dead-letter queue cannot be dead-lettered again; complete it"
)

// Complete removes the messages behind the tokens for good (SETTLE-3). It returns one Code per token: empty, or
// MESSAGE_LOCK_LOST (SETTLE-2, SETTLE-14). The call fails as a whole with INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE or
// ENTITY_NOT_FOUND.
func (b *Broker) Complete(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
	return b.settle(ctx, source, tokens, b.store.Complete)
}

// Abandon gives the messages back at once with one delivery more, or dead-letters them when it was the last
// (SETTLE-4, DC-5). Results and errors as Complete.
func (b *Broker) Abandon(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
	return b.settle(ctx, source, tokens, b.store.Abandon)
}

// Release gives the messages back at once and counts nothing (SETTLE-10). Results and errors as Complete.
func (b *Broker) Release(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
	return b.settle(ctx, source, tokens, b.store.Release)
}

// DeadLetter moves the messages to the dead-letter queue of the source with a reason and a description, each of at
// most 4096 characters, both may be empty (SETTLE-6, DLQ-12). From a dead-letter queue it is INVALID_OPERATION
// (SETTLE-8). Results and further errors as Complete.
func (b *Broker) DeadLetter(ctx context.Context, source Source, tokens []LockToken, reason, description string) ([]Code, error) {
	texts := []struct{ field, value string }{{"reason", reason}, {"description", description}}
	for _, text := range texts {
		if !utf8.ValidString(text.value) {
			return nil, fieldError(InvalidArgument, text.field, "must be valid UTF-8")
		}
		if n := utf8.RuneCountInString(text.value); n > MaxDeadLetterText {
			return nil, fieldError(ArgumentOutOfRange, text.field, "is %d characters long, at most %d are allowed", n, MaxDeadLetterText)
		}
	}
	if source.SubQueue == DeadLetterQueue {
		return nil, Errorf(InvalidOperation, deadLetterSourceText).With(DetailSubQueue, source.SubQueue.String())
	}
	return b.settle(ctx, source, tokens, func(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
		return b.store.DeadLetter(ctx, source, tokens, reason, description)
	})
}

// RenewLocks sets the end of the locks to now + LockDuration, as often as one likes (LOCK-3). It returns one Renewal
// per token, at most 500 tokens a call (LOCK-5). Errors as Complete.
func (b *Broker) RenewLocks(ctx context.Context, source Source, tokens []LockToken) ([]Renewal, error) {
	source, err := checkTokens(source, tokens, MaxRenewTokens)
	if err != nil {
		return nil, err
	}
	renewals, err := b.store.RenewLocks(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	b.held.renew(tokens, renewals)
	return renewals, nil
}

func (b *Broker) settle(ctx context.Context, source Source, tokens []LockToken,
	verb func(context.Context, Source, []LockToken) ([]Code, error),
) ([]Code, error) {
	source, err := checkTokens(source, tokens, MaxSettleTokens)
	if err != nil {
		return nil, err
	}
	codes, err := verb(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	b.held.remove(tokens)
	return codes, nil
}

func checkTokens(source Source, tokens []LockToken, most int) (Source, error) {
	path, err := ParsePath(source.Path)
	if err != nil {
		return source, err
	}
	source.Path = path
	if len(tokens) == 0 {
		return source, fieldError(InvalidArgument, "lockTokens", "must contain at least one token")
	}
	if len(tokens) > most {
		return source, fieldError(ArgumentOutOfRange, "lockTokens", "contains %d tokens, at most %d are allowed", len(tokens), most)
	}
	return source, nil
}
