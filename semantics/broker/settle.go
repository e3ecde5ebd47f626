package broker

import (
	"context"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// deadLetterSourceText refuses to dead-letter a dead letter (SETTLE-6).
const deadLetterSourceText = "a message in a dead-letter queue cannot be dead-lettered again; complete it"

// Complete removes the messages behind the tokens for good (SETTLE-3). It returns one Code per token: empty, or
// MESSAGE_LOCK_LOST (SETTLE-2, SETTLE-14); under a session whose lock does not hold it is SESSION_LOCK_LOST for all.
// The call fails as a whole with INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, SESSION_REQUIRED or
// SESSION_NOT_SUPPORTED.
func (b *Broker) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return b.settle(ctx, source, tokens, b.store.Complete)
}

// Abandon makes the messages available again, with one delivery more, or dead-letters them when it was the last
// (SETTLE-4, DC-5). Results and errors as Complete; a message that would outgrow its limits by the properties keeps its
// lock and has MESSAGE_SIZE_EXCEEDED or INVALID_ARGUMENT as its Code (SETTLE-5).
func (b *Broker) Abandon(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions,
) ([]semantics.Code, error) {
	if err := checkDelay(options.Delay); err != nil {
		return nil, err
	}
	if err := semantics.CheckChanges(options.Properties); err != nil {
		return nil, err
	}
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return b.store.Abandon(ctx, source, tokens, options)
	}
	return b.settle(ctx, source, tokens, verb)
}

func checkDelay(delay *time.Duration) error {
	if delay != nil && (*delay < 0 || *delay > semantics.MaxDelay) {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, "delay", "is %s, must be 0s to %s", *delay, semantics.MaxDelay,
		)
	}
	return nil
}

// Defer sets the messages aside until they are received by number (SETTLE-9, DEFER-1). properties, results and errors
// as in Abandon.
func (b *Broker) Defer(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	if err := semantics.CheckChanges(properties); err != nil {
		return nil, err
	}
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return b.store.Defer(ctx, source, tokens, properties)
	}
	return b.settle(ctx, source, tokens, verb)
}

// Release makes the messages available again at once and counts nothing (SETTLE-10). Results and errors as Complete.
func (b *Broker) Release(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return b.settle(ctx, source, tokens, b.store.Release)
}

// DeadLetterOptions say why messages are dead-lettered. A text has at most MaxDeadLetterText characters; nil means that
// none was given. Properties are merged into those of each message and may hold the texts under their own names
// (SETTLE-5, SETTLE-6).
type DeadLetterOptions struct {
	Reason, Description *string
	Properties          map[string]semantics.Value
}

// DeadLetter moves the messages to the dead-letter queue of the source (SETTLE-6, DLQ-12). From a dead-letter queue it
// is INVALID_OPERATION (SETTLE-8). Results and further errors as Abandon.
func (b *Broker) DeadLetter(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options DeadLetterOptions,
) ([]semantics.Code, error) {
	texts, properties, err := options.split()
	if err != nil {
		return nil, err
	}
	if source.SubQueue.IsDeadLetters() {
		return nil, semantics.Errorf(semantics.InvalidOperation, deadLetterSourceText).
			With(semantics.DetailSubQueue, source.SubQueue.String())
	}
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return b.store.DeadLetter(ctx, source, tokens, texts, properties)
	}
	return b.settle(ctx, source, tokens, verb)
}

// split checks the options and takes the two texts out of the properties, where they may stand too.
func (o DeadLetterOptions) split() (semantics.DeadLetterTexts, map[string]semantics.Value, error) {
	properties := maps.Clone(o.Properties)
	texts := semantics.DeadLetterTexts{}
	kept := map[string]semantics.Value{}
	for _, part := range []struct {
		field, property string
		given           *string
		text            **string
	}{
		{"reason", semantics.PropertyDeadLetterReason, o.Reason, &texts.Reason},
		{"description", semantics.PropertyDeadLetterDescription, o.Description, &texts.Description},
	} {
		value, inMap := properties[part.property]
		delete(properties, part.property)
		switch {
		case !inMap:
			*part.text = part.given
			if part.given == nil {
				*part.text = new(string)
			}
		case part.given != nil && value != semantics.String(*part.given):
			return texts, nil, semantics.InvalidField(
				"properties["+part.property+"]", "differs from %s; set only one of them", part.field,
			)
		case value.Type() == semantics.TypeString:
			text := value.Text()
			*part.text = &text
		default:
			kept[part.property] = value // not a text, so it is a property and no reason (SETTLE-7)
		}
		if err := checkDeadLetterText(part.field, *part.text); err != nil {
			return texts, nil, err
		}
	}
	if err := semantics.CheckChanges(properties); err != nil {
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
		return semantics.InvalidField(field, "must be valid UTF-8")
	}
	if n := utf8.RuneCountInString(*text); n > semantics.MaxDeadLetterText {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, field, "is %d characters long, at most %d are allowed", n,
			semantics.MaxDeadLetterText,
		)
	}
	return nil
}

// RenewLocks sets the end of the locks to now + LockDuration, as often as one likes (LOCK-3). It returns one Renewal
// per token, at most 500 tokens a call (LOCK-5). Errors as Complete; on a queue with sessions it is INVALID_OPERATION:
// renew the session (LOCK-4).
func (b *Broker) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Renewal, error) {
	source, err := b.checkTokens(source, tokens, semantics.MaxRenewTokens)
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

func (b *Broker) settle(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	verb func(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error),
) ([]semantics.Code, error) {
	source, err := b.checkTokens(source, tokens, semantics.MaxSettleTokens)
	if err != nil {
		return nil, err
	}
	if err := b.admit(len(tokens)); err != nil {
		return nil, err
	}
	return b.settleFree(ctx, source, tokens, verb)
}

// settleFree settles without a check and without cost, also for the Broker's own account.
func (b *Broker) settleFree(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	verb func(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error),
) ([]semantics.Code, error) {
	codes, err := verb(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	b.held.ended(source, tokens, codes)
	return codes, nil
}

func (b *Broker) checkTokens(
	source semantics.Source, tokens []semantics.LockToken, most int,
) (semantics.Source, error) {
	source, err := b.checkSession(source.ParseToReceive())
	if err != nil {
		return source, err
	}
	return source, semantics.CheckTokens(tokens, most)
}
