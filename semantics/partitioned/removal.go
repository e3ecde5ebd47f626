package partitioned

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// No step sees all partitions of a queue, so whether all are idle is found out one by one (IDLE-8). A removal has a
// number, which the record notes. It suspends each partition that is idle: from then on no call finds that partition.
// When all are suspended, the record is deleted, if it still notes this removal: this step decides. A call that misses
// a suspended partition lets the record drop the removal first, and then resumes the partition. So either the call
// comes before the deletion, and the removal does not complete, or behind it, and the call finds no queue. See
// docs/decisions/0056.

// Removals are deletions of idle entities with several partitions.
type Removals interface {
	// BeginRemoval lets the record of an idle entity note a new removal, in place of any other one. If the record was
	// used, removal is 0, wait is when to look again, 0 for never, and no removal is noted. ENTITY_NOT_FOUND.
	BeginRemoval(
		ctx context.Context, kind semantics.Kind, name string, incarnation int64,
	) (removal int64, wait time.Duration, err error)
	// CancelRemoval lets the record drop this removal, or any if it is 0. When it returns, that never completes.
	// ENTITY_NOT_FOUND.
	CancelRemoval(ctx context.Context, name string, incarnation, removal int64) error
	// Suspend suspends a partition: CreateEntity then fails with a SuspendedError, and any other call with
	// ENTITY_NOT_FOUND. If it was used within the span, or has dead letters to keep (IDLE-9), nothing is done, and wait
	// is when to look again. With removal 0 it only looks. A SuspendedError if another removal has suspended it, which
	// keeps it: who has let the record drop that one, and resumes the partition, would let a later one miss a use.
	// ENTITY_NOT_FOUND.
	Suspend(
		ctx context.Context, path string, removal int64, span time.Duration, keepsDeadLetters bool,
	) (wait time.Duration, err error)
	// Resume ends the suspension of a partition by this removal, which the record has dropped.
	Resume(ctx context.Context, path string, removal int64) error
	// CompleteRemoval deletes the record of an entity if it notes this removal since BeginRemoval, has not forgotten
	// anything meanwhile, and was not used. ENTITY_NOT_FOUND.
	CompleteRemoval(
		ctx context.Context, kind semantics.Kind, name string, incarnation, removal int64,
	) (isCompleted bool, err error)
}

const (
	anyRemoval = 0
	onlyLook   = 0

	// removeAgain is when to look again at an entity whose removal was cancelled.
	removeAgain = time.Second
)

// errRemoved says that a removal has completed, or that the store has forgotten the record.
var errRemoved = errors.New("the entity was deleted because it was idle")

// RemoveUnused implements semantics.Upkeep.
func (s *Store) RemoveUnused(ctx context.Context, path string) (time.Duration, error) {
	w, err := s.find(ctx, path)
	if err != nil || w == nil {
		return 0, unlessGone(err)
	}
	wait, err := s.suspendAll(ctx, w, onlyLook)
	if wait > 0 || err != nil {
		return s.giveWay(ctx, w, wait, err)
	}
	removal, wait, err := s.below.BeginRemoval(ctx, w.kind, w.name, w.incarnation)
	if err != nil {
		return 0, unlessGone(err)
	}
	if removal == 0 {
		return s.giveWay(ctx, w, wait, nil)
	}
	wait, err = s.suspendAll(ctx, w, removal)
	if wait == 0 && err == nil {
		isCompleted, failed := s.completeRemoval(ctx, w, removal)
		if isCompleted || failed != nil {
			return 0, failed
		}
		wait = removeAgain
	}
	if failed := s.below.CancelRemoval(context.WithoutCancel(ctx), w.name, w.incarnation, removal); failed != nil {
		return wait, unlessGone(failed)
	}
	return s.giveWay(ctx, w, wait, err)
}

// suspendAll suspends all partitions of an entity, or only looks, and returns when to look again if one was used.
func (s *Store) suspendAll(ctx context.Context, w *whole, removal int64) (wait time.Duration, err error) {
	var mu sync.Mutex
	span, keeps := w.options.AutoDeleteOnIdle, w.options.AutoDeleteKeepsDeadLetters
	err = named(w.withEach(func(p int) error {
		one, err := s.suspend(ctx, w, w.paths[p], removal, span, keeps)
		mu.Lock()
		defer mu.Unlock()
		wait = max(wait, one)
		return err
	}))
	return wait, err
}

// suspend suspends a partition. What another removal has suspended, which is late or was cut off, is resumed first.
func (s *Store) suspend(
	ctx context.Context, w *whole, path string, removal int64, span time.Duration, keepsDeadLetters bool,
) (wait time.Duration, err error) {
	for {
		wait, err = s.below.Suspend(ctx, path, removal, span, keepsDeadLetters)
		var other *semantics.SuspendedError
		if !errors.As(err, &other) {
			return wait, err
		}
		if err := s.resume(ctx, w, path, other.Removal); err != nil {
			return 0, err
		}
	}
}

// resume lets a removal not complete any more, and then resumes a partition that it has suspended.
func (s *Store) resume(ctx context.Context, w *whole, path string, removal int64) error {
	err := s.below.CancelRemoval(ctx, w.name, w.incarnation, removal)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return errRemoved
	}
	if err != nil {
		return err
	}
	return s.below.Resume(ctx, path, removal)
}

// completeRemoval deletes an entity whose partitions are all suspended.
func (s *Store) completeRemoval(ctx context.Context, w *whole, removal int64) (isCompleted bool, err error) {
	if err := s.below.NoteDeletion(ctx, w.name, w.incarnation); err != nil {
		return false, err
	}
	isCompleted, err = s.below.CompleteRemoval(ctx, w.kind, w.name, w.incarnation, removal)
	if !isCompleted || err != nil {
		return isCompleted, unlessGone(err)
	}
	return true, s.deletePartitions(ctx, w)
}

// giveWay resumes what this removal or an earlier one has suspended, and creates partitions that are missing. failed is
// what else happened than use.
func (s *Store) giveWay(ctx context.Context, w *whole, wait time.Duration, failed error) (time.Duration, error) {
	err := s.complete(context.WithoutCancel(ctx), w)
	if semantics.CodeOf(failed) == semantics.EntityNotFound { // a partition was missing
		wait, failed = removeAgain, nil
	}
	if failed != nil {
		return wait, failed
	}
	return wait, unlessGone(err)
}

// createPartition creates a partition of an entity if it is missing, and resumes it if it is suspended.
func (s *Store) createPartition(ctx context.Context, w *whole, path string, share semantics.Options) error {
	for {
		_, _, err := s.Store.CreateEntity(ctx, w.kind, path, share)
		var suspended *semantics.SuspendedError
		if !errors.As(err, &suspended) {
			return err
		}
		if err := s.resume(ctx, w, path, suspended.Removal); err != nil {
			return err
		}
	}
}
