package memstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of the pauses of Sweep: the longest, and how long it waits with what could not be activated.
const (
	maxSweepPause = time.Hour
	sweepRetry    = time.Second
)

// Sweep has the scheduled messages of topics activated when they are due (SCHED-6, SCHED-7), and forwarded what is to
// be forwarded as soon as it is there (FWD-1), and deletes idle entities (IDLE-1). Everything else that becomes due is
// processed by the next call on its queue. It blocks until ctx ends; call it once.
func (s *Store) Sweep(ctx context.Context, upkeep semantics.Upkeep) {
	for ctx.Err() == nil {
		timer := time.NewTimer(s.SweepOnce(ctx, upkeep))
		select {
		case <-timer.C:
		case <-s.upkeep:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// noteUpkeep makes Sweep look. The mutex may be held.
func (s *Store) noteUpkeep() {
	select {
	case s.upkeep <- struct{}{}:
	default: // it is going to look anyway
	}
}

// SweepOnce does what is due now and returns how long nothing will be.
func (s *Store) SweepOnce(ctx context.Context, upkeep semantics.Upkeep) time.Duration {
	var failed error
	for _, do := range s.due() {
		if err := do(ctx, upkeep); err != nil {
			failed = err
		}
	}
	next, whole := s.removeUnused()
	pause := s.untilNextDue()
	for _, name := range whole {
		switch wait, err := upkeep.RemoveUnused(ctx, name); {
		case err != nil:
			failed = err
		case wait > 0:
			pause = min(pause, wait)
		}
	}
	if !next.IsZero() {
		pause = min(pause, max(next.Sub(s.now()), 0))
	}
	if failed != nil {
		pause = max(pause, sweepRetry)
	}
	return pause
}

// task is a piece of upkeep.
type task func(ctx context.Context, upkeep semantics.Upkeep) error

// due is what is to be done now.
func (s *Store) due() []task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tasks []task
	for _, q := range s.queues {
		if q.kind == semantics.TopicKind && len(q.toActivate(s.now())) > 0 {
			tasks = append(tasks, func(ctx context.Context, upkeep semantics.Upkeep) error {
				return upkeep.ActivateDue(ctx, q.name)
			})
		}
		if q.forwards() {
			s.look(q, s.now()) // it may become available by that
		}
		for _, side := range q.toForward() {
			source := semantics.Source{Path: q.name, SubQueue: side}
			tasks = append(tasks, func(ctx context.Context, upkeep semantics.Upkeep) error {
				return upkeep.Forward(ctx, source)
			})
		}
	}
	return tasks
}

// untilNextDue is how long it is until there is something to do; 0: there is now.
func (s *Store) untilNextDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := maxSweepPause
	until := func(at time.Time) { pause = min(pause, max(at.Sub(s.now()), 0)) }
	for _, q := range s.queues {
		if q.kind == semantics.TopicKind {
			for _, m := range q.scheduled.messages {
				until(m.scheduledFor())
			}
		}
		if q.forwards() && !q.due.IsZero() {
			until(q.due)
		}
		if len(q.toForward()) > 0 {
			pause = 0
		}
	}
	return pause
}
