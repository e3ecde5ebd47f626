package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// keptRecheck is how often an entity is looked at that only its dead letters keep (IDLE-9).
const keptRecheck = 30 * time.Second

// WithRemoved makes the Store call removed, with its mutex held, for every entity that it deletes when idle (IDLE-1).
func WithRemoved(removed func(kind semantics.Kind, path string)) Option {
	return func(s *Store) { s.removed = removed }
}

// NoteUse implements semantics.Receiver.
func (s *Store) NoteUse(ctx context.Context, uses []semantics.Use) error {
	if err := refuseIfOver(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, use := range uses {
		q := s.queues[semantics.Fold(use.Path)]
		if q != nil && (q.isTemporary() || q.topic != nil && q.topic.isTemporary()) {
			q.used(s.now().Add(-use.Ago.Truncate(time.Millisecond)))
		}
	}
	return nil
}

func (q *queue) isTemporary() bool { return q.options.AutoDeleteOnIdle != semantics.Never }

// sweepForUnused makes Sweep look again when an entity that was made or updated may be removed.
func (s *Store) sweepForUnused(q *queue) {
	if q.isTemporary() {
		s.noteUpkeep()
	}
}

// used notes that the entity was in use at an instant.
func (q *queue) used(at time.Time) {
	if at.After(q.accessedAt) {
		q.accessedAt = at
	}
}

// lastUse returns the last instant at which the entity was in use: now while it has scheduled messages, while a client
// holds a message or session of it, and while it forwards (IDLE-2, IDLE-4, IDLE-5, ENT-14). What is done with a
// subscription counts for its topic (IDLE-3). What is due must have been processed.
func (q *queue) lastUse(now time.Time) time.Time {
	last := q.accessedAt
	if q.options.ForwardTo != "" ||
		len(q.scheduled.messages)+len(q.main.locks)+len(q.dead.locks)+len(q.undelivered.locks) > 0 ||
		q.hasHolder() {
		last = now
	}
	for _, sub := range q.subscriptions {
		if of := sub.lastUse(now); of.After(last) {
			last = of
		}
	}
	return last
}

func (q *queue) hasHolder() bool {
	for _, on := range q.sessions {
		if on.isHeld() {
			return true
		}
	}
	return false
}

// keepsDeadLetters reports whether there are dead letters that forbid to remove the entity (IDLE-9): of a subscription
// it is enough if it or its topic does.
func (q *queue) keepsDeadLetters() bool {
	of := slices.Collect(maps.Values(q.subscriptions))
	return slices.ContainsFunc(append(of, q), func(one *queue) bool {
		keeps := q.options.AutoDeleteKeepsDeadLetters || one.options.AutoDeleteKeepsDeadLetters
		return keeps && len(one.dead.messages)+len(one.undelivered.messages) > 0
	})
}

// unusedAt returns the first instant at which the entity may be deleted if it is not used until then (IDLE-1, IDLE-8).
// Zero: never.
func (q *queue) unusedAt(now time.Time) time.Time {
	if !q.isTemporary() {
		return time.Time{}
	}
	at := q.lastUse(now).Add(q.options.AutoDeleteOnIdle.Truncate(time.Millisecond))
	if reached(at, now) && q.keepsDeadLetters() {
		return now.Add(keptRecheck)
	}
	return at
}

// removeUnused deletes every entity that was unused for long enough, and returns when the next one may be; zero: never.
// Those with several partitions that are unused as far as their records know it returns in whole.
func (s *Store) removeUnused() (next time.Time, whole []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var temporary []string
	for path, q := range s.queues {
		if q.isTemporary() {
			temporary = append(temporary, path)
		}
	}
	slices.Sort(temporary)
	for _, path := range temporary {
		q := s.queues[path]
		if q == nil { // gone with its topic
			continue
		}
		s.look(q, now) // until when something was held
		for _, sub := range q.subscriptions {
			s.look(sub, now)
		}
		at := q.unusedAt(now)
		isWhole := q.options.Partitions > 1
		switch {
		case isWhole && (q.removal != 0 || reached(at, now)):
			whole = append(whole, q.name)
			continue
		case !reached(at, now):
			next = earlier(next, at)
			continue
		}
		if q.topic != nil {
			q.topic.used(q.lastUse(now))
		}
		s.delete(q)
		if s.removed != nil {
			s.removed(q.kind, q.name)
		}
	}
	return next, whole
}
