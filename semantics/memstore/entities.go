package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// CreateEntity implements semantics.Entities.
func (s *Store) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	if err := refuseIfOver(ctx); err != nil {
		return semantics.Entity{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[semantics.Fold(path)]; q != nil {
		return q.view(), false, nil
	}
	if on := s.suspended[semantics.Fold(path)]; on != nil {
		return semantics.Entity{}, false, &semantics.SuspendedError{Removal: on.removal}
	}
	if err := options.MemoryOnly(); err != nil {
		return semantics.Entity{}, false, err
	}
	if _, isBarred := s.barred[semantics.Fold(path)]; isBarred {
		return semantics.Entity{}, false, semantics.NotFound(path)
	}
	s.deleteLeftPartitions(path)
	q := s.add(newQueue(kind, path, options, s.now()))
	if kind == semantics.TopicKind {
		q.subscriptions, q.routesVersion = map[string]*queue{}, newVersion()
		s.keepUnmatched(q)
	}
	s.sweepForUnused(q)
	return q.view(), true, nil
}

func (s *Store) add(q *queue) *queue {
	s.lastIncarnation++
	q.incarnation, q.lastVersion = s.lastIncarnation, &s.lastVersion
	s.queues[semantics.Fold(q.name)] = q
	return q
}

// openEntity finds an entity of a kind, which the path of a subscription implies.
func (s *Store) openEntity(ctx context.Context, kind semantics.Kind, path string) (*queue, time.Time, func(), error) {
	if _, _, ok := semantics.SplitSubscription(path); ok {
		kind = semantics.SubscriptionKind
	}
	q, now, unlock, err := s.openAny(ctx, path)
	if err == nil && q.kind != kind {
		return nil, now, unlock, semantics.NotFound(path)
	}
	return q, now, unlock, err
}

// GetEntity implements semantics.Entities.
func (s *Store) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	q, _, unlock, err := s.openEntity(ctx, kind, path)
	defer unlock()
	if err != nil {
		return semantics.Entity{}, err
	}
	return q.view(), nil
}

// UpdateEntity implements semantics.Entities.
func (s *Store) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	q, now, unlock, err := s.openEntity(ctx, kind, path)
	defer unlock()
	if err != nil {
		return semantics.Entity{}, err
	}
	merged, err := q.options.Merge(options, names)
	if err != nil {
		return semantics.Entity{}, err
	}
	for _, d := range q.options.Differences(options, names) {
		if semantics.Immutable(d.Option) {
			return semantics.Entity{}, semantics.ImmutableChanged(q.name, d.Option)
		}
	}
	if err := merged.MemoryOnly(); err != nil {
		return semantics.Entity{}, err
	}
	if merged.DeadLetteringOnFilterEvaluationExceptions != q.options.DeadLetteringOnFilterEvaluationExceptions {
		q.routesChanged()
	}
	if merged.SessionStateTTL == semantics.Never {
		q.keepStates()
	}
	unmatchedTo := q.options.UnmatchedTo
	q.options, q.updatedAt, q.accessedAt = merged, now, now
	if merged.UnmatchedTo != unmatchedTo {
		q.routesVersion = newVersion()
		s.keepUnmatched(q)
	}
	s.wakeAll(path)
	s.noteUpkeep()
	return q.view(), nil
}

// DeleteEntity implements semantics.Entities.
func (s *Store) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	return s.deleteIf(ctx, kind, path, func(q *queue) bool { return q.options.Partitions <= 1 })
}

func (s *Store) deleteIf(
	ctx context.Context, kind semantics.Kind, path string, isMeant func(*queue) bool,
) error {
	q, now, unlock, err := s.openEntity(ctx, kind, path)
	defer unlock()
	if semantics.CodeOf(err) == semantics.EntityNotFound && s.queues[semantics.Fold(path)] == nil {
		s.deleteLeftPartitions(path)
	}
	if err != nil {
		return err
	}
	if !isMeant(q) {
		return semantics.NotFound(path)
	}
	if q.topic != nil {
		q.topic.used(now) // IDLE-3
	}
	s.delete(q)
	return nil
}

// delete removes an entity, a topic with its subscriptions.
func (s *Store) delete(q *queue) {
	for _, sub := range q.subscriptions {
		s.remove(sub)
	}
	if q.topic != nil {
		q.routesChanged()
		_, name, _ := semantics.SplitSubscription(q.name)
		delete(q.topic.subscriptions, semantics.Fold(name))
	}
	s.remove(q)
}

func (s *Store) remove(q *queue) {
	delete(s.queues, semantics.Fold(q.name))
	s.wakeAll(q.name)
}

// ListEntities implements semantics.Entities.
func (s *Store) ListEntities(
	ctx context.Context, kind semantics.Kind, topic, after string, limit int,
) ([]semantics.Entity, bool, error) {
	if err := refuseIfOver(ctx); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	among := s.queues
	if kind == semantics.SubscriptionKind {
		t := s.find(topic)
		if t == nil || t.kind != semantics.TopicKind {
			return nil, false, semantics.NotFound(topic)
		}
		among = t.subscriptions
	}
	var page []semantics.Entity
	for _, name := range slices.Sorted(maps.Keys(among)) {
		isHidden := name == semantics.UnmatchedSubscription ||
			kind != semantics.SubscriptionKind && semantics.IsPartition(name)
		if name <= after || among[name].kind != kind || isHidden {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, among[name].view())
	}
	return page, false, nil
}

// Runtime implements semantics.Entities.
func (s *Store) Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error) {
	q, now, unlock, err := s.openEntity(ctx, kind, path)
	defer unlock()
	if err == nil && q.options.Partitions > 1 {
		err = semantics.NotFound(path)
	}
	if err != nil {
		return semantics.Runtime{}, err
	}
	if q.kind == semantics.TopicKind {
		return semantics.Runtime{
			Scheduled: int64(len(q.scheduled.messages)), SizeInBytes: q.bytes(),
			Subscriptions: int64(q.countSubscriptions()), LastSequence: q.lastSequence,
			CreatedAt: q.createdAt, UpdatedAt: q.updatedAt, AccessedAt: q.accessedAt,
		}, nil
	}
	s.look(q, now)
	leaving := len(q.transfers[semantics.MainQueue].all())
	deadLeaving := len(q.transfers[semantics.DeadLetterQueue].all())
	runtime := semantics.Runtime{
		Active:             int64(len(q.main.messages) - leaving), // what has expired is locked or deferred
		Locked:             int64(len(q.main.locks) - leaving),
		Deferred:           int64(q.main.count(func(m *message) bool { return m.deferred && !m.locked() })),
		Delayed:            int64(q.main.count((*message).delayed)),
		Scheduled:          int64(len(q.scheduled.messages)),
		DeadLetter:         int64(len(q.dead.messages) - deadLeaving),
		Transfer:           int64(leaving + deadLeaving),
		TransferDeadLetter: int64(len(q.undelivered.messages)),
		SizeInBytes:        q.bytes() + q.undelivered.bytes,
		LastSequence:       q.lastSequence,
		CreatedAt:          q.createdAt,
		UpdatedAt:          q.updatedAt,
		AccessedAt:         q.accessedAt,
	}
	runtime.Available = runtime.Active - runtime.Locked - runtime.Deferred
	for _, on := range q.sessions {
		runtime.Sessions++
		if on.ready() {
			runtime.ReadySessions++
			runtime.AvailableSince = earlier(runtime.AvailableSince, on.readyAt)
		}
		if on.isHeld() {
			runtime.LockedSessions++
		}
		if on.blocked {
			runtime.BlockedSessions++
		}
	}
	if len(q.main.messages) > 0 {
		runtime.OldestEnqueuedAt = q.main.messages[0].enqueuedAt
	}
	if next := slices.IndexFunc(q.main.messages, (*message).available); next >= 0 && !q.options.RequiresSession {
		runtime.AvailableSince = q.main.messages[next].enqueuedAt
	}
	return runtime, nil
}
