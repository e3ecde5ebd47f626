package broker

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// unreadableTexts say why.
func unreadableTexts(m *semantics.Received) semantics.DeadLetterTexts {
	reason := semantics.ReasonUnreadable
	description := semantics.Beginning(m.Unreadable.Error(), semantics.MaxDeadLetterText)
	return semantics.DeadLetterTexts{Reason: &reason, Description: &description}
}

// lacksKey reports whether a message cannot be read because this sidecar does not have its payload key. Others may, so
// the message stays where and as it is (CRYPT-4).
func lacksKey(m *semantics.Received) bool {
	return semantics.CodeOf(m.Unreadable) == semantics.PayloadKeyMissing
}

// keyMissing is PAYLOAD_KEY_MISSING for a message of a source.
func keyMissing(source semantics.Source, m *semantics.Received) error {
	e := *semantics.AsError(m.Unreadable)
	e.Message = fmt.Sprintf("message %d of %s is %s", m.SequenceNumber, source, e.Message)
	return e.With(semantics.DetailEntity, source.Path).
		With(semantics.DetailNumbers, strconv.FormatInt(m.SequenceNumber, 10))
}

// handedOut returns those messages of a receive that a client gets: those that can be read, up to the first whose
// payload key is missing. That one and all behind it are given back, uncounted and in their places, so that the order
// stays and a sidecar that has the key gets them. If nothing is in front of it, the failure names the key.
func (b *Broker) handedOut(
	ctx context.Context, source semantics.Source, messages []*semantics.Received,
) ([]*semantics.Received, error) {
	at := slices.IndexFunc(messages, lacksKey)
	if at < 0 {
		return b.readable(ctx, source, messages), nil
	}
	b.giveBack(ctx, source, messages[at:])
	if fine := b.readable(ctx, source, messages[:at:at]); len(fine) > 0 {
		return fine, nil
	}
	return nil, keyMissing(source, messages[at])
}

// giveBack releases messages that no client gets. What cannot be released comes again when its lock ends.
func (b *Broker) giveBack(ctx context.Context, source semantics.Source, messages []*semantics.Received) {
	if len(messages) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.SettleTimeout)
	defer cancel()
	tokens := make([]semantics.LockToken, len(messages))
	for i, m := range messages {
		tokens[i] = m.LockToken
	}
	_, _ = b.store.Release(ctx, source, tokens)
}

// readable returns those messages of a receive that can be read. The others would come again and again and hold up what
// is behind them: of a main queue they become dead letters. Dead letters are deferred, which keeps them for a version
// that can read them, and counts nothing. What cannot be moved now comes again when its lock ends.
func (b *Broker) readable(
	ctx context.Context, source semantics.Source, messages []*semantics.Received,
) []*semantics.Received {
	var fine []*semantics.Received
	for i, m := range messages {
		if m.Unreadable == nil {
			if fine != nil {
				fine = append(fine, m)
			}
			continue
		}
		if fine == nil {
			fine = append(make([]*semantics.Received, 0, len(messages)), messages[:i]...)
		}
		b.setAside(ctx, source, m)
	}
	if fine == nil {
		return messages
	}
	return fine
}

func (b *Broker) setAside(ctx context.Context, source semantics.Source, m *semantics.Received) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.SettleTimeout)
	defer cancel()
	token := []semantics.LockToken{m.LockToken}
	if source.SubQueue.IsDeadLetters() {
		_, _ = b.store.Defer(ctx, source, token, nil)
		return
	}
	_, _ = b.store.DeadLetter(ctx, source, token, unreadableTexts(m), nil)
}

// allReadable is readable for messages that were asked for by number, all or none: when one cannot be read, the others
// are given back.
func (b *Broker) allReadable(
	ctx context.Context, source semantics.Source, messages []*semantics.Received,
) ([]*semantics.Received, error) {
	if at := slices.IndexFunc(messages, lacksKey); at >= 0 {
		b.giveBack(ctx, source, messages)
		return nil, keyMissing(source, messages[at])
	}
	fine := b.readable(ctx, source, messages)
	if len(fine) == len(messages) {
		return fine, nil
	}
	b.giveBack(ctx, source, fine)
	bad := messages[slices.IndexFunc(messages, func(m *semantics.Received) bool { return m.Unreadable != nil })]
	e := semantics.Errorf(
		semantics.Internal, "the message with sequence number %d cannot be read; nothing was locked, so name the others alone", bad.SequenceNumber,
	)
	e.Err = bad.Unreadable
	return nil, e
}

// markUnreadable shows in a peek why a message has no content.
func markUnreadable(messages []*semantics.Received) {
	for _, m := range messages {
		if m.Unreadable != nil {
			m.Subject = "(this message cannot be read: " + m.Unreadable.Error() + ")"
		}
	}
}

// dueReadable returns those scheduled messages that can be read. The others stay scheduled, for a version that can read
// them; the error is why.
func dueReadable(due []*semantics.Received) ([]*semantics.Received, error) {
	var failed error
	fine := slices.DeleteFunc(due, func(m *semantics.Received) bool {
		if m.Unreadable != nil {
			failed = m.Unreadable
		}
		return m.Unreadable != nil
	})
	return fine, failed
}
