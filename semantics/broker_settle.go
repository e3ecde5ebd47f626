package semantics

import (
	"context"
	"maps"
	"time"
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
// MESSAGE_LOCK_LOST (SETTLE-2, SETTLE-14); under a session whose lock does not hold it is SESSION_LOCK_LOST for all. The call
// fails as a whole with INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, SESSION_REQUIRED or
// SESSION_NOT_SUPPORTED.
func (b *Broker) Complete(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
	return b.settle(ctx, source, tokens, b.store.Complete)
}

// AbandonOptions say how messages are given back. The zero value gives them back at once, or after the queue's
// RedeliveryDelay, as they are.
type AbandonOptions struct {
	Delay      *time.Duration   // how long they stay invisible, at most MaxDelay (SETTLE-11)
	Properties map[string]Value // merged into those of each message (SETTLE-5)
	SkipOrder  bool             // a delayed message does not hold up those behind it in its session (SETTLE-11)
}

// Abandon gives the messages back with one delivery more, or dead-letters them when it was the last (SETTLE-4, DC-5).
// Results and errors as Complete; a message that would outgrow its limits by the properties keeps its lock and has
// MESSAGE_SIZE_EXCEEDED or INVALID_ARGUMENT as its Code (SETTLE-5).
func (b *Broker) Abandon(ctx context.Context, source Source, tokens []LockToken, options AbandonOptions) ([]Code, error) {
	if d := options.Delay; d != nil && (*d < 0 || *d > MaxDelay) {
		return nil, fieldError(ArgumentOutOfRange, "delay", "is %s, must be 0s to %s", *d, MaxDelay)
	}
	if err := checkChanges(options.Properties); err != nil {
		return nil, err
	}
	return b.settle(ctx, source, tokens, func(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
		return b.store.Abandon(ctx, source, tokens, options)
	})
}

// Defer sets the messages aside until they are received by number (SETTLE-9, DEFER-1). properties, results and errors as
// in Abandon.
func (b *Broker) Defer(ctx context.Context, source Source, tokens []LockToken, properties map[string]Value) ([]Code, error) {
	if err := checkChanges(properties); err != nil {
		return nil, err
	}
	return b.settle(ctx, source, tokens, func(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
		return b.store.Defer(ctx, source, tokens, properties)
	})
}

// Release gives the messages back at once and counts nothing (SETTLE-10). Results and errors as Complete.
func (b *Broker) Release(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
	return b.settle(ctx, source, tokens, b.store.Release)
}

// DeadLetterOptions say why messages are dead-lettered. A text has at most MaxDeadLetterText characters; nil means that
// none was given. Properties are merged into those of each message and may hold the texts under their own names
// (SETTLE-5, SETTLE-6).
type DeadLetterOptions struct {
	Reason, Description *string
	Properties          map[string]Value
}

// DeadLetter moves the messages to the dead-letter queue of the source (SETTLE-6, DLQ-12). From a dead-letter queue it
// is INVALID_OPERATION (SETTLE-8). Results and further errors as Abandon.
func (b *Broker) DeadLetter(ctx context.Context, source Source, tokens []LockToken, options DeadLetterOptions) ([]Code, error) {
	texts, properties, err := options.split()
	if err != nil {
		return nil, err
	}
	if source.SubQueue.IsDeadLetters() {
		return nil, Errorf(InvalidOperation, deadLetterSourceText).With(DetailSubQueue, source.SubQueue.String())
	}
	return b.settle(ctx, source, tokens, func(ctx context.Context, source Source, tokens []LockToken) ([]Code, error) {
		return b.store.DeadLetter(ctx, source, tokens, texts, properties)
	})
}

// split checks the options and takes the two texts out of the properties, where they may stand too.
func (o DeadLetterOptions) split() (DeadLetterTexts, map[string]Value, error) {
	properties := maps.Clone(o.Properties)
	texts := DeadLetterTexts{}
	kept := map[string]Value{}
	for _, part := range []struct {
		field, property string
		given           *string
		text            **string
	}{
		{"reason", PropertyDeadLetterReason, o.Reason, &texts.Reason},
		{"description", PropertyDeadLetterDescription, o.Description, &texts.Description},
	} {
		value, inMap := properties[part.property]
		delete(properties, part.property)
		switch {
		case !inMap:
			*part.text = part.given
			if part.given == nil {
				*part.text = new(string)
			}
		case part.given != nil && value != String(*part.given):
			return texts, nil, fieldError(InvalidArgument, "properties["+part.property+"]", "differs from %s", part.field)
		case value.Type() == TypeString:
			text := value.Text()
			*part.text = &text
		default:
			kept[part.property] = value // not a text, so it is a property and no reason (SETTLE-7)
		}
		if err := checkDeadLetterText(part.field, *part.text); err != nil {
			return texts, nil, err
		}
	}
	if err := checkChanges(properties); err != nil {
		return texts, nil, err
	}
	for name, value := range kept {
		properties[name] = value
	}
	return texts, properties, nil
}

func checkDeadLetterText(field string, text *string) error {
	if text == nil {
		return nil
	}
	if !utf8.ValidString(*text) {
		return fieldError(InvalidArgument, field, "must be valid UTF-8")
	}
	if n := utf8.RuneCountInString(*text); n > MaxDeadLetterText {
		return fieldError(ArgumentOutOfRange, field, "is %d characters long, at most %d are allowed", n, MaxDeadLetterText)
	}
	return nil
}

// RenewLocks sets the end of the locks to now + LockDuration, as often as one likes (LOCK-3). It returns one Renewal
// per token, at most 500 tokens a call (LOCK-5). Errors as Complete; on a queue with sessions it is INVALID_OPERATION: renew
// the session (LOCK-4).
func (b *Broker) RenewLocks(ctx context.Context, source Source, tokens []LockToken) ([]Renewal, error) {
	source, err := checkTokens(source, tokens, MaxRenewTokens)
	if err != nil {
		return nil, err
	}
	if err := b.admit(len(tokens)); err != nil {
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
	if err := b.admit(len(tokens)); err != nil {
		return nil, err
	}
	return b.settleFree(ctx, source, tokens, verb)
}

// settleFree settles without a check and without cost, also for the Broker's own account.
func (b *Broker) settleFree(ctx context.Context, source Source, tokens []LockToken,
	verb func(context.Context, Source, []LockToken) ([]Code, error),
) ([]Code, error) {
	codes, err := verb(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	b.held.ended(source, tokens, codes)
	return codes, nil
}

func checkTokens(source Source, tokens []LockToken, most int) (Source, error) {
	source, err := checkReceiveSource(source)
	if err != nil {
		return source, err
	}
	if len(tokens) == 0 {
		return source, fieldError(InvalidArgument, "lockTokens", "must contain at least one token")
	}
	if len(tokens) > most {
		return source, fieldError(ArgumentOutOfRange, "lockTokens", "contains %d tokens, at most %d are allowed", len(tokens), most)
	}
	return source, nil
}
