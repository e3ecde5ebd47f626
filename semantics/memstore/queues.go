package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// CreateQueue implements semantics.Queues.
func (s *Store) CreateQueue(ctx context.Context, path string, options semantics.QueueOptions) (semantics.Queue, bool, error) {
	if err := refuseIfOver(ctx); err != nil {
		return semantics.Queue{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[semantics.Fold(path)]; q != nil {
		return q.view(), false, nil
	}
	q := newQueue(path, options, s.now())
	s.queues[semantics.Fold(path)] = q
	return q.view(), true, nil
}

// GetQueue implements semantics.Queues.
func (s *Store) GetQueue(ctx context.Context, path string) (semantics.Queue, error) {
	q, _, unlock, err := s.open(ctx, path)
	defer unlock()
	if err != nil {
		return semantics.Queue{}, err
	}
	return q.view(), nil
}

// UpdateQueue implements semantics.Queues.
func (s *Store) UpdateQueue(ctx context.Context, path string, options semantics.QueueOptions, names []string) (semantics.Queue, error) {
	q, now, unlock, err := s.open(ctx, path)
	defer unlock()
	if err != nil {
		return semantics.Queue{}, err
	}
	merged, err := q.options.Merge(options, names)
	if err != nil {
		return semantics.Queue{}, err
	}
	for _, d := range q.options.Differences(options, names) {
		if semantics.Immutable(d.Option) {
			return semantics.Queue{}, semantics.ImmutableChanged(q.name, d.Option)
		}
	}
	q.options, q.updatedAt, q.accessedAt = merged, now, now
	s.wakeAll(path)
	return q.view(), nil
}

// DeleteQueue implements semantics.Queues.
func (s *Store) DeleteQueue(ctx context.Context, path string) error {
	_, _, unlock, err := s.open(ctx, path)
	defer unlock()
	if err != nil {
		return err
	}
	delete(s.queues, semantics.Fold(path))
	s.wakeAll(path)
	return nil
}

// ListQueues implements semantics.Queues.
func (s *Store) ListQueues(ctx context.Context, after string, limit int) ([]semantics.Queue, bool, error) {
	if err := refuseIfOver(ctx); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []semantics.Queue
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if name <= after {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, s.queues[name].view())
	}
	return page, false, nil
}

// QueueRuntime implements semantics.Queues.
func (s *Store) QueueRuntime(ctx context.Context, path string) (semantics.Runtime, error) {
	q, now, unlock, err := s.open(ctx, path)
	defer unlock()
	if err != nil {
		return semantics.Runtime{}, err
	}
	s.look(q, now)
	runtime := semantics.Runtime{
		Active:      int64(len(q.main.messages)), // nothing expired is left but what is locked or deferred
		Locked:      int64(len(q.main.locks)),
		Deferred:    int64(q.main.count(func(m *message) bool { return m.deferred && !m.locked() })),
		Delayed:     int64(q.main.count((*message).delayed)),
		Scheduled:   int64(len(q.scheduled.messages)),
		DeadLetter:  int64(len(q.dead.messages)),
		SizeInBytes: q.bytes(),
	}
	runtime.Available = runtime.Active - runtime.Locked - runtime.Deferred
	for _, on := range q.sessions {
		runtime.Sessions++
		if on.ready() {
			runtime.ReadySessions++
		}
		if on.isHeld() {
			runtime.LockedSessions++
		}
	}
	if len(q.main.messages) > 0 {
		runtime.OldestEnqueuedAt = q.main.messages[0].enqueuedAt
	}
	return runtime, nil
}
