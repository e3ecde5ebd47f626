package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// Runtime implements semantics.Entities.
func (s *Store) Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error) {
	if kindOf(kind, path) == semantics.TopicKind {
		return s.topicRuntime(ctx, path)
	}
	r, err := s.run(ctx, "source_runtime", s.keys(path), s.now())
	if err != nil {
		return semantics.Runtime{}, err
	}
	if r.status != "OK" {
		return semantics.Runtime{}, semantics.NotFound(path)
	}
	return s.counted(ctx, path, r)
}

// Runtimes implements semantics.Counter. The scripts go to Redis in one pipeline, which costs a sidecar a fraction of
// what as many calls cost. Each is atomic; they are not so together.
func (s *Store) Runtimes(ctx context.Context, paths []string) ([]*semantics.Runtime, error) {
	all := make([]*semantics.Runtime, len(paths))
	if len(paths) == 0 {
		return all, nil
	}
	op := s.scripts["source_runtime"]
	calls := make([]call, len(paths))
	for i, path := range paths {
		keys, err := op.list(s.keys(path))
		if err != nil {
			return nil, err
		}
		calls[i] = call{redis.NewCmd(ctx, commandOf("evalsha", op.call.Hash(), keys, []any{s.now()})...), !op.ReadOnly}
	}
	began := time.Now()
	_, _ = s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error { // the errors are in the commands
		for _, one := range calls {
			_ = p.Process(ctx, one) // only adds it
		}
		return nil
	})
	took := time.Since(began) / time.Duration(len(paths))
	for i, path := range paths {
		counts, err := s.countedBy(ctx, op, calls[i], path, took)
		if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
			return nil, err
		}
		if err == nil {
			all[i] = &counts
		}
	}
	return all, nil
}

// countedBy returns what a call of a pipeline has counted. Redis does not know the script after a restart; then it is
// called alone.
func (s *Store) countedBy(
	ctx context.Context, op script, one call, path string, took time.Duration,
) (semantics.Runtime, error) {
	if redis.HasErrorPrefix(one.Err(), "NOSCRIPT") {
		return s.Runtime(ctx, semantics.QueueKind, path)
	}
	items, err := one.Slice()
	if err != nil {
		s.observe(op.Name, "error", took)
		return semantics.Runtime{}, storeError(err, one.changes)
	}
	r := op.answered(items)
	s.observe(op.Name, r.status, took)
	switch {
	case r.err != nil:
		return semantics.Runtime{}, r.failure()
	case r.status != "OK":
		return semantics.Runtime{}, semantics.NotFound(path)
	default:
		return s.counted(ctx, path, r)
	}
}

// counted reads the answer of source_runtime.
func (s *Store) counted(ctx context.Context, path string, r *reply) (semantics.Runtime, error) {
	s.apply(ctx, path, r)
	s.apply(ctx, path+transfersSuffix, r)
	counts := semantics.Runtime{
		Active: r.number(), Locked: r.number(), Deferred: r.number(), Delayed: r.number(), ExpiredPending: r.number(),
		Scheduled: r.number(), DeadLetter: r.number(), Transfer: r.number(), TransferDeadLetter: r.number(),
		SizeInBytes: r.number() + r.number() + r.number() + r.number(), OldestEnqueuedAt: r.instant(),
		AvailableSince: r.instant(),
		Sessions:       r.number(), ReadySessions: r.number(), LockedSessions: r.number(), BlockedSessions: r.number(),
		CreatedAt: r.instant(), UpdatedAt: r.instant(), AccessedAt: r.instant(), LastSequence: r.number(),
	}
	// Deferred messages that have expired count as both until they are removed.
	counts.Deferred = min(counts.Deferred, counts.Active-counts.Locked-counts.ExpiredPending)
	counts.Available = counts.Active - counts.Locked - counts.Deferred - counts.ExpiredPending
	return counts, r.failure()
}
