package partitioned

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// onSession runs a verb about one session, in the partition that has it: that of its id, which its lock names too. The
// verb gets 0 for a queue with one partition.
func (s *Store) onSession(
	ctx context.Context, source semantics.Source, verb func(p int, source semantics.Source) error,
) error {
	return s.on(ctx, source.Path, func() error { return verb(0, source) }, func(w *whole) error {
		p, _ := w.sessionOf(source)
		return inPartition(verb(p, w.in(p, source)), p)
	})
}

// accepted returns a session of a partition as one of its queue.
func accepted(session *semantics.Session, partition int) *semantics.Session {
	if session != nil {
		session.Lock = session.Lock.InPartition(partition)
	}
	return session
}

// AcceptSession implements semantics.Sessions.
func (s *Store) AcceptSession(ctx context.Context, path, id string) (session *semantics.Session, err error) {
	err = s.onSession(ctx, semantics.Source{Path: path, Session: id}, func(p int, in semantics.Source) error {
		session, err = s.Store.AcceptSession(ctx, in.Path, id)
		session = accepted(session, p)
		return err
	})
	return session, err
}

// AcceptNextSession implements semantics.Sessions. It asks the partitions in turn, beginning with another one each
// time, and one after the other, so that no session is locked that the caller does not get. The one that has been ready
// longest is that of its partition (PART-4).
func (s *Store) AcceptNextSession(
	ctx context.Context, path string, register semantics.Register,
) (session *semantics.Session, recheck time.Duration, err error) {
	err = s.on(ctx, path, func() error {
		session, recheck, err = s.Store.AcceptNextSession(ctx, path, register)
		return err
	}, func(w *whole) error {
		accept := func(p, _ int) ([]*semantics.Session, time.Duration, error) {
			one, recheck, err := s.Store.AcceptNextSession(ctx, w.paths[p], register)
			if one == nil {
				return nil, recheck, err
			}
			return []*semantics.Session{accepted(one, p)}, recheck, err
		}
		one := func([]*semantics.Session) int { return 1 }
		r := newReception(s, w, semantics.Source{Path: path}, 1, register, accept, one)
		var found []*semantics.Session
		if found, recheck, err = r.run(ctx); len(found) > 0 {
			session = found[0]
		}
		return err
	})
	return session, recheck, err
}

// RenewSessionLock implements semantics.Sessions.
func (s *Store) RenewSessionLock(ctx context.Context, source semantics.Source) (until time.Time, err error) {
	err = s.onSession(ctx, source, func(_ int, in semantics.Source) error {
		until, err = s.Store.RenewSessionLock(ctx, in)
		return err
	})
	return until, err
}

// CloseSession implements semantics.Sessions.
func (s *Store) CloseSession(ctx context.Context, source semantics.Source) error {
	return s.onSession(ctx, source, func(_ int, in semantics.Source) error { return s.Store.CloseSession(ctx, in) })
}

// Turn implements semantics.Sessions. The turns in one partition share what they cost.
func (s *Store) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	outcomes := make([]semantics.TurnOutcome, len(turns))
	s.onEach(ctx, path, len(turns), func(w *whole, places []int) {
		var some []semantics.TurnOutcome
		if w == nil {
			some = s.Store.Turn(ctx, path, pick(turns, places))
		} else {
			some = s.turn(ctx, w, pick(turns, places))
		}
		for i, o := range some {
			outcomes[places[i]] = o
		}
	}, func(place int) *error { return &outcomes[place].Err })
	return outcomes
}

func (s *Store) turn(ctx context.Context, w *whole, turns []semantics.Turn) []semantics.TurnOutcome {
	outcomes := make([]semantics.TurnOutcome, len(turns))
	places, own := make([][]int, len(w.paths)), make([][]semantics.Turn, len(w.paths)) // by partition
	for i, t := range turns {
		p := w.ofToken(t.Session)
		t.Session, t.Complete = t.Session.InPartition(p), slices.Clone(t.Complete)
		for j := range t.Complete {
			t.Complete[j] = t.Complete[j].InPartition(p)
		}
		places[p], own[p] = append(places[p], i), append(own[p], t)
	}
	atOnce(withWork(places), func(_, p int) error {
		for i, o := range s.Store.Turn(ctx, w.paths[p], own[p]) {
			o.Err, o.Failure = named(inPartition(o.Err, p)), named(inPartition(o.Failure, p))
			o.Batch.Messages = received(o.Batch.Messages, p)
			outcomes[places[p][i]] = o
		}
		return nil
	})
	return outcomes
}

// SessionState implements semantics.Sessions.
func (s *Store) SessionState(
	ctx context.Context, source semantics.Source,
) (state semantics.SessionState, err error) {
	err = s.onSession(ctx, source, func(_ int, in semantics.Source) error {
		state, err = s.Store.SessionState(ctx, in)
		return err
	})
	return state, err
}

// SetSessionState implements semantics.Sessions.
func (s *Store) SetSessionState(
	ctx context.Context, source semantics.Source, state []byte, expected *int64,
) (version int64, err error) {
	err = s.onSession(ctx, source, func(_ int, in semantics.Source) error {
		version, err = s.Store.SetSessionState(ctx, in, state, expected)
		return err
	})
	return version, err
}

// ListSessions implements semantics.Sessions. A session is in one partition, so an id is a position in all of them, and
// the order is the same as in one.
func (s *Store) ListSessions(
	ctx context.Context, path, after string, limit int, filter semantics.SessionFilter,
) (rows []semantics.SessionRow, next string, err error) {
	err = s.on(ctx, path, func() error {
		rows, next, err = s.Store.ListSessions(ctx, path, after, limit, filter)
		return err
	}, func(w *whole) error {
		pages, ends := make([][]semantics.SessionRow, len(w.paths)), make([]string, len(w.paths))
		err := w.withEach(func(p int) (err error) {
			pages[p], ends[p], err = s.Store.ListSessions(ctx, w.paths[p], after, limit, filter)
			return err
		})
		rows, next = merged(pages, ends, limit)
		return err
	})
	return rows, next, err
}

// merged makes one page of those of all partitions. A partition whose page has an end may have more sessions behind it,
// so nothing behind the first end is returned.
func merged(pages [][]semantics.SessionRow, ends []string, limit int) (rows []semantics.SessionRow, next string) {
	for _, end := range ends {
		if end != "" && (next == "" || end < next) {
			next = end
		}
	}
	rows = slices.Concat(pages...)
	if next != "" {
		rows = slices.DeleteFunc(rows, func(row semantics.SessionRow) bool { return row.ID > next })
	}
	slices.SortFunc(rows, func(a, b semantics.SessionRow) int { return cmp.Compare(a.ID, b.ID) })
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].ID
	}
	return rows, next
}

// UnblockSession implements semantics.Sessions.
func (s *Store) UnblockSession(ctx context.Context, path, id string) error {
	return s.onSession(ctx, semantics.Source{Path: path, Session: id}, func(_ int, in semantics.Source) error {
		return s.Store.UnblockSession(ctx, in.Path, id)
	})
}

// DeadLetterRest implements semantics.Sessions.
func (s *Store) DeadLetterRest(ctx context.Context, path, id string) error {
	return s.onSession(ctx, semantics.Source{Path: path, Session: id}, func(_ int, in semantics.Source) error {
		return s.Store.DeadLetterRest(ctx, in.Path, id)
	})
}
