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

// Sweep has the scheduled messages of topics activated when they are due: activate is called with the path of a topic that has some
// (SCHED-6, SCHED-7), and removes entities that nobody uses (IDLE-1). All else that time brings about is carried out when somebody looks.
// It blocks until ctx ends; call it once.
func (s *Store) Sweep(ctx context.Context, activate func(ctx context.Context, topic string) error) {
	for ctx.Err() == nil {
		timer := time.NewTimer(s.sweepOnce(ctx, activate))
		select {
		case <-timer.C:
		case <-s.sooner:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// sweepSoon makes Sweep look again when the next thing is due.
func (s *Store) sweepSoon() {
	select {
	case s.sooner <- struct{}{}:
	default: // it is going to look anyway
	}
}

// sweepOnce does what is due now and tells how long nothing will be.
func (s *Store) sweepOnce(ctx context.Context, activate func(ctx context.Context, topic string) error) time.Duration {
	var failed error
	for _, topic := range s.dueTopics() {
		if err := activate(ctx, topic); err != nil {
			failed = err
		}
	}
	next := s.removeUnused()
	pause := s.untilNextDue()
	if !next.IsZero() {
		pause = min(pause, max(next.Sub(s.now()), 0))
	}
	if failed != nil {
		pause = max(pause, sweepRetry)
	}
	return pause
}

// dueTopics are the topics that have scheduled messages whose time has come.
func (s *Store) dueTopics() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []string
	for _, q := range s.queues {
		if q.kind == semantics.TopicKind && len(q.toActivate(s.now())) > 0 {
			due = append(due, q.name)
		}
	}
	return due
}

// untilNextDue is how long it is until a topic has something due; 0: one has.
func (s *Store) untilNextDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := maxSweepPause
	for _, q := range s.queues {
		if q.kind != semantics.TopicKind {
			continue
		}
		for _, m := range q.scheduled.messages {
			pause = min(pause, max(m.sent.ScheduledAt.Sub(s.now()), 0))
		}
	}
	return pause
}
