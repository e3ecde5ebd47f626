package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// A queue with several partitions is deleted when idle by a removal, which the record names, and which suspends the
// partitions one by one: see docs/decisions/0056.

// suspendedBy reads which removal has suspended a partition.
func suspendedBy(r *reply) error {
	by := &semantics.SuspendedError{Removal: r.number()}
	if err := r.failure(); err != nil {
		return err
	}
	return by
}

// BeginRemoval implements partitioned.Removals.
func (s *Store) BeginRemoval(
	ctx context.Context, kind semantics.Kind, path string, incarnation int64,
) (removal int64, wait time.Duration, err error) {
	removal = newMark()
	r, err := s.run(ctx, "begin_removal", s.keys(path), s.now(), recordKind(kind), incarnation, removal)
	switch {
	case err != nil:
		return 0, 0, err
	case r.status == "IN_USE":
		return 0, time.Duration(r.number()) * time.Millisecond, r.failure()
	case r.status != "OK":
		return 0, 0, semantics.NotFound(path)
	default:
		return removal, 0, nil
	}
}

// CancelRemoval implements partitioned.Removals.
func (s *Store) CancelRemoval(ctx context.Context, path string, incarnation, removal int64) error {
	r, err := s.run(ctx, "cancel_removal", s.keys(path), incarnation, removalArg(removal))
	if err == nil && r.status != "OK" {
		err = semantics.NotFound(path)
	}
	return err
}

// removalArg returns a removal as the scripts take it: 0 is "".
func removalArg(removal int64) any {
	if removal == 0 {
		return ""
	}
	return removal
}

// Suspend implements partitioned.Removals.
func (s *Store) Suspend(
	ctx context.Context, path string, removal int64, span time.Duration, keepsDeadLetters bool,
) (wait time.Duration, err error) {
	r, err := s.run(
		anyHistory(ctx), "suspend", s.keys(path), s.now(), removalArg(removal), span.Milliseconds(),
		flag(keepsDeadLetters),
	)
	switch {
	case err != nil:
		return 0, err
	case r.status == "IN_USE":
		return time.Duration(r.number()) * time.Millisecond, r.failure()
	case r.status == "SUSPENDED":
		return 0, suspendedBy(r)
	case r.status != "OK":
		return 0, semantics.NotFound(path)
	default:
		return 0, nil
	}
}

// Resume implements partitioned.Removals.
func (s *Store) Resume(ctx context.Context, path string, removal int64) error {
	_, err := s.run(anyHistory(ctx), "resume", s.keys(path), removal)
	return err
}

// CompleteRemoval implements partitioned.Removals.
func (s *Store) CompleteRemoval(
	ctx context.Context, kind semantics.Kind, path string, incarnation, removal int64,
) (isCompleted bool, err error) {
	err = s.Unbroken(ctx, func(ctx context.Context) error {
		return s.deleteQueue(ctx, kind, path, unused, recordKind(kind), incarnation, removal)
	})
	var used inUse
	if errors.As(err, &used) {
		return false, nil
	}
	return err == nil, err
}

// RemoveUnused implements semantics.Topics: what partitions belong to, the Store above knows.
func (*Store) RemoveUnused(context.Context, string) (time.Duration, error) { return 0, nil }
