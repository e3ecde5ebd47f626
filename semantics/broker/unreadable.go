package broker

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// unreadableTexts say why.
func unreadableTexts(m *semantics.Received) semantics.DeadLetterTexts {
	reason := semantics.ReasonUnreadable
	description := semantics.Beginning(m.Unreadable.Error(), semantics.MaxDeadLetterText)
	return semantics.DeadLetterTexts{Reason: &reason, Description: &description}
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
	fine := b.readable(ctx, source, messages)
	if len(fine) == len(messages) {
		return fine, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.SettleTimeout)
	defer cancel()
	tokens := make([]semantics.LockToken, len(fine))
	for i, m := range fine {
		tokens[i] = m.LockToken
	}
	if len(tokens) > 0 {
		_, _ = b.store.Release(ctx, source, tokens) // what cannot be given back comes again when its lock ends
	}
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
