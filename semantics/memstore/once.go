package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// requests is what an entity remembers of sends with a request id (IDEM-1).
type requests struct {
	byID map[string]request
	ids  []string // the oldest first
}

type request struct {
	semantics.Once
	takenAt time.Time
	stored  []semantics.Stored
}

// forgetOldest removes the oldest while there are more than most, or it is older than may be.
func (r *requests) forgetOldest(now time.Time, most int) {
	for len(r.ids) > most || len(r.ids) > 0 && reached(r.byID[r.ids[0]].takenAt.Add(semantics.RequestsKeptFor), now) {
		delete(r.byID, r.ids[0])
		r.ids = r.ids[1:]
	}
}

// SendOnce implements semantics.Sender.
func (s *Store) SendOnce(
	ctx context.Context, path string, once semantics.Once, messages []*semantics.Message,
) semantics.SendOutcome {
	q, now, unlock, err := s.openKind(ctx, semantics.QueueKind, path)
	defer unlock()
	if err != nil {
		return semantics.SendOutcome{Err: err}
	}
	return q.once(once, now, func() ([]semantics.Stored, error) { return s.send(q, messages, now) })
}

// PublishOnce implements semantics.Topics.
func (s *Store) PublishOnce(
	ctx context.Context, topic string, version int64, once semantics.Once, call []semantics.Publication,
) semantics.SendOutcome {
	t, now, unlock, err := s.openRoutes(ctx, topic, version)
	defer unlock()
	if err != nil {
		return semantics.SendOutcome{Err: err}
	}
	return t.once(once, now, func() ([]semantics.Stored, error) { return s.publish(t, call, now) })
}

// once runs a send, unless the entity remembers its id.
func (q *queue) once(
	once semantics.Once, now time.Time, send func() ([]semantics.Stored, error),
) semantics.SendOutcome {
	r := &q.requests
	r.forgetOldest(now, semantics.MaxRequestsKept)
	switch first, known := r.byID[once.RequestID]; {
	case !known:
	case first.Digest != once.Digest:
		return semantics.SendOutcome{Err: semantics.OtherMessages(q.name, once.RequestID)}
	default:
		return semantics.SendOutcome{
			Stored:  slices.Clone(first.stored),
			Repeats: &semantics.Repetition{Seed: first.Seed},
		}
	}
	stored, err := send()
	if err != nil {
		return semantics.SendOutcome{Err: err}
	}
	if r.byID == nil {
		r.byID = map[string]request{}
	}
	r.byID[once.RequestID] = request{once, now, slices.Clone(stored)}
	r.ids = append(r.ids, once.RequestID)
	r.forgetOldest(now, semantics.MaxRequestsKept)
	return semantics.SendOutcome{Stored: stored}
}
