package memstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Purge implements semantics.Remover. Before and Last of a dead-letter queue go by sequence number as well.
func (s *Store) Purge(ctx context.Context, source semantics.Source, purge semantics.Purge) (semantics.Purged, error) {
	q, in, now, unlock, err := s.openToReceive(ctx, source, forAny)
	defer unlock()
	if err != nil {
		return semantics.Purged{}, err
	}
	done := semantics.Purged{Before: purge.Before, Last: purge.After}
	if done.Before.IsZero() {
		done.Before = now
	}
	s.wakingFor(q, now, func() { // what goes may have held up others of its session
		for _, m := range q.inOrder(source.SubQueue) {
			if m.sequence <= purge.After || m.group() != purge.Show || !m.enqueuedAt.Before(done.Before) || !in.has(m) {
				continue
			}
			m.in.remove(m) // of a scheduled one the id stays remembered: this is not a cancel (PURGE-8)
			done.Deleted++
			done.Last = m.sequence
			if done.Deleted == purge.Limit {
				done.More = true
				break
			}
		}
	})
	return done, nil
}

// DeleteByNumber implements semantics.Remover.
func (s *Store) DeleteByNumber(
	ctx context.Context, source semantics.Source, numbers []int64,
) ([]semantics.Code, error) {
	q, in, now, unlock, err := s.openToReceive(ctx, source, forAny)
	defer unlock()
	if err != nil {
		return nil, err
	}
	codes := make([]semantics.Code, len(numbers))
	box := q.box(source.SubQueue)
	s.wakingFor(q, now, func() { // as in Purge
		for i, number := range numbers {
			m := box.find(number)
			if m == nil || m.locked() || !in.has(m) {
				codes[i] = semantics.MessageNotFound
				continue
			}
			box.remove(m)
		}
	})
	return codes, nil
}

// Resubmit implements semantics.Remover. Only source is looked at for what is due: to target it is a send.
func (s *Store) Resubmit(ctx context.Context, source semantics.Source, target string,
	letters []semantics.Resubmission, bypassDuplicates bool,
) ([]semantics.Resubmitted, error) {
	from, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err != nil {
		return nil, err
	}
	to := s.find(target)
	switch {
	case to == nil || to != from && to.kind != semantics.QueueKind: // a subscription takes back only what is its own
		return nil, semantics.NotFound(target)
	case from.kind == semantics.TopicKind:
		return nil, refuseTopic(from)
	case !from.options.Status.CanReceive():
		return nil, disabled(from)
	}
	from.accessedAt = now
	s.look(from, now)
	if !to.options.Status.CanSend() {
		return nil, disabled(to)
	}
	results := make([]semantics.Resubmitted, len(letters))
	s.wakingFor(to, now, func() {
		for i, letter := range letters {
			m := from.box(source.SubQueue).find(letter.SequenceNumber)
			if m == nil || m.locked() {
				results[i].Code = semantics.MessageNotFound
				continue
			}
			results[i] = resubmit(to, m, letter, bypassDuplicates, now)
			if results[i].Code == "" {
				to.used(now) // as by a send
			}
		}
	})
	return results, nil
}

// resubmit moves one dead letter that is not locked (DLQ-22).
func resubmit(
	to *queue, letter *message, how semantics.Resubmission, bypass bool, now time.Time,
) semantics.Resubmitted {
	sent := clone(&letter.sent)
	sent.ForgetForwarding()
	sent.TimeToLive = how.TimeToLive
	if how.NewID {
		sent.MessageID = how.MessageID
	}
	if sent.Size() > to.bounded().options.MaxMessageBytes() {
		return semantics.Resubmitted{Code: semantics.MessageSizeExceeded}
	}
	if to.options.RequiresSession && sent.SessionID == "" {
		return semantics.Resubmitted{Code: semantics.SessionIDMissing}
	}
	if !bypass {
		if number, is := to.duplicateOf(&sent, now); is {
			letter.in.remove(letter)
			return semantics.Resubmitted{Stored: semantics.Stored{SequenceNumber: number, Deduplicated: true}}
		}
	}
	isThere := letter.in == &to.dead // and takes no more bytes when it comes back
	if !isThere && to.bytes()+sent.Size() > to.options.MaxBytes() {
		return semantics.Resubmitted{Code: semantics.EntityFull}
	}
	if to.checkCount(1) != nil {
		return semantics.Resubmitted{Code: semantics.EntityFull}
	}
	if !bypass && to.checkHistory(1) != nil {
		return semantics.Resubmitted{Code: semantics.QuotaExceeded}
	}
	letter.in.remove(letter)
	m := newMessage(&sent, to.options.DefaultMessageTimeToLive)
	number := to.accept(m, now)
	m.endBy(how.ExpiresAt)
	to.expect(m.due())
	if !bypass {
		to.remember(&sent, number, now)
	}
	return semantics.Resubmitted{Stored: semantics.Stored{SequenceNumber: number}}
}
