package memstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Sidecar implements semantics.Observed. There is one process.
func (s *Store) Sidecar() string { return semantics.SidecarTag{}.String() }

// Receivers implements semantics.Observed.
func (s *Store) Receivers(ctx context.Context, path string, limit int) (semantics.Receivers, error) {
	q, now, unlock, err := s.open(ctx, path)
	defer unlock()
	if err == nil && q.kind == semantics.TopicKind {
		err = semantics.NotFound(path)
	}
	if err != nil {
		return semantics.Receivers{}, err
	}
	s.look(q, now)
	var who semantics.Receivers
	if s.waiting[semantics.Source{Path: path}.Fold()] {
		who.Waiting = []semantics.WaitingSidecar{{Sidecar: s.Sidecar(), Since: now}}
	}
	if !q.options.RequiresSession {
		who.FirstLock, who.LastLock = q.lockEnds()
		return who, nil
	}
	messages := q.bySession()
	for id, on := range q.sessions {
		available := on.row(messages[id]).Available
		switch {
		case on.isHeld():
			who.Held = append(who.Held, semantics.HeldSession{
				ID: id, Holder: on.token.Sidecar().String(), LockedUntil: on.lockedUntil, Available: available,
			})
		case on.ready():
			who.Ready = append(who.Ready, semantics.ReadySession{ID: id, Since: on.readyAt, Available: available})
		}
	}
	return who.First(limit), nil
}

// lockEnds returns the first and the last end of the locks of receivers, which those of transfers are not.
func (q *queue) lockEnds() (first, last time.Time) {
	for _, m := range q.main.locks {
		if m.lockedUntil.Equal(noEnd) {
			continue
		}
		if first = earlier(first, m.lockedUntil); m.lockedUntil.After(last) {
			last = m.lockedUntil
		}
	}
	return first, last
}
