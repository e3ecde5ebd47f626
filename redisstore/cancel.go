package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// CancelScheduled implements semantics.Sender.
func (s *Store) CancelScheduled(ctx context.Context, path string, numbers []int64) error {
	args := []any{s.now(), "numbers"}
	for _, n := range onceEach(numbers) {
		args = append(args, n)
	}
	r, err := s.run(s.lasting(ctx), "cancel_scheduled", s.keys(path), args...)
	if err != nil {
		return err
	}
	return cmp.Or(s.onNumbers(ctx, semantics.Source{Path: path}, semantics.Scheduled, r), r.unmet)
}

// CancelScheduledByID implements semantics.Sender.
func (s *Store) CancelScheduledByID(ctx context.Context, path string, ids []string) (int, error) {
	args := []any{s.now(), "ids"}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		args = append(args, id)
	}
	cancelled := 0
	for {
		r, err := s.run(s.lastingAgain(ctx), "cancel_scheduled", s.keys(path), args...)
		if err != nil {
			return cancelled, err
		}
		if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
			return cancelled, err
		}
		cancelled += int(r.number())
		left := r.number() == 1
		if err := r.failure(); err != nil || !left {
			return cancelled, cmp.Or(err, r.unmet) // the last answer stands for all: the scripts are one after another
		}
	}
}

// onSource reads the beginning of a reply that all scripts on a source share: statuses that refuse become errors, and
// the notifications after OK are processed.
func (s *Store) onSource(ctx context.Context, source semantics.Source, r *reply) error {
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return s.notFound(ctx, source.Path)
	case semantics.EntityDisabled:
		return semantics.Disabled(source.Path, r.text())
	case semantics.SessionRequired,
		semantics.SessionNotSupported,
		semantics.SessionLockLost,
		semantics.InvalidOperation:
		return semantics.SessionFailure(semantics.Code(r.status), source.Path)
	case forwardsAll:
		return semantics.ForwardsAll(source.Path, r.text())
	default:
		s.apply(ctx, keptAt(source), r)
		return nil
	}
}

// onNumbers does the same for scripts on messages by number, and returns MESSAGE_NOT_FOUND with the numbers that are
// not in the named state.
func (s *Store) onNumbers(
	ctx context.Context, source semantics.Source, state semantics.State, r *reply,
) error {
	if err := s.onSource(ctx, source, r); err != nil || r.status != string(semantics.MessageNotFound) {
		return err
	}
	var missing []int64
	for r.more() {
		missing = append(missing, r.number())
	}
	if err := r.failure(); err != nil {
		return err
	}
	return semantics.NumbersNotFound(source.Path, state, missing)
}

// onceEach drops repeated numbers and keeps the order.
func onceEach(numbers []int64) []int64 {
	var once []int64
	for _, n := range numbers {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once
}

func appendNumbers(args []any, numbers []int64) []any {
	for _, n := range numbers {
		args = append(args, strconv.FormatInt(n, 10))
	}
	return args
}
