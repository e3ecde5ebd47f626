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
// (SCHED-6, SCHED-7). All else that time brings about is carried out when somebody looks. It blocks until ctx ends; call it once.
func (s *Store) Sweep(ctx context.Context, activate func(ctx context.Context, topic string) error) {
	for ctx.Err() == nil {
		var failed error
		for _, topic := range s.dueTopics() {
			if err := activate(ctx, topic); err != nil {
				failed = err
			}
		}
		pause := s.untilNextDue()
		if failed != nil {
			pause = max(pause, sweepRetry)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.scheduled:
		case <-ctx.Done():
		}
		timer.Stop()
	}
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
