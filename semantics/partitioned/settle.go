package partitioned

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// tokensIn divides lock tokens among the partitions that they name, as these know them, with their places among all.
func (w *whole) tokensIn(tokens []semantics.LockToken) (own map[int][]semantics.LockToken, places map[int][]int) {
	own, places = map[int][]semantics.LockToken{}, map[int][]int{}
	for i, token := range tokens {
		token, p := token.Partition()
		if p < len(w.paths) { // else no store made it
			own[p], places[p] = append(own[p], token), append(places[p], i)
		}
	}
	return own, places
}

// eachToken runs a verb in all partitions that tokens name, and returns an outcome for each token. If some partition
// fails and another does not, the tokens of the former have an outcome of their own.
func eachToken[T any](
	w *whole, tokens []semantics.LockToken, lost T, failure func(err error) T,
	verb func(p int, own []semantics.LockToken) ([]T, error),
) ([]T, error) {
	outcomes := make([]T, len(tokens))
	for i := range outcomes {
		outcomes[i] = lost
	}
	own, places := w.tokensIn(tokens)
	var named []int
	for p := range w.paths {
		if len(own[p]) > 0 {
			named = append(named, p)
		}
	}
	if len(named) == 0 {
		return outcomes, nil
	}
	failed := atOnce(named, func(_, p int) error {
		some, err := verb(p, own[p])
		for i, place := range places[p] {
			if err == nil {
				outcomes[place] = some[i]
			} else {
				outcomes[place] = failure(err)
			}
		}
		return inPartition(err, p)
	})
	var first error
	for _, err := range failed {
		if err == nil {
			return outcomes, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// settle runs a settlement on the entity of a source.
func (s *Store) settle(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	verb func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error),
) (codes []semantics.Code, err error) {
	err = s.on(ctx, source.Path, func() error {
		codes, err = verb(source, tokens)
		return err
	}, func(w *whole) error {
		if !source.SessionLock.IsZero() {
			return semantics.SessionFailure(semantics.SessionNotSupported, w.name)
		}
		codes, err = eachToken(
			w, tokens, semantics.MessageLockLost, semantics.CodeOf,
			func(p int, own []semantics.LockToken) ([]semantics.Code, error) { return verb(w.in(p, source), own) },
		)
		return err
	})
	return codes, err
}

// Complete implements semantics.Settler.
func (s *Store) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens,
		func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Store.Complete(ctx, source, tokens)
		})
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens,
		func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Store.Abandon(ctx, source, tokens, options)
		})
}

// Defer implements semantics.Settler.
func (s *Store) Defer(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens,
		func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Store.Defer(ctx, source, tokens, properties)
		})
}

// Release implements semantics.Settler.
func (s *Store) Release(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens,
		func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Store.Release(ctx, source, tokens)
		})
}

// DeadLetter implements semantics.Settler.
func (s *Store) DeadLetter(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, texts semantics.DeadLetterTexts,
	properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens,
		func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Store.DeadLetter(ctx, source, tokens, texts, properties)
		})
}

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) (renewals []semantics.Renewal, err error) {
	err = s.on(ctx, source.Path, func() error {
		renewals, err = s.Store.RenewLocks(ctx, source, tokens)
		return err
	}, func(w *whole) error {
		renewals, err = eachToken(
			w, tokens, semantics.Renewal{Code: semantics.MessageLockLost},
			func(err error) semantics.Renewal {
				return semantics.Renewal{Code: semantics.CodeOf(err), LockedUntil: time.Time{}}
			},
			func(p int, own []semantics.LockToken) ([]semantics.Renewal, error) {
				return s.Store.RenewLocks(ctx, w.in(p, source), own)
			},
		)
		return err
	})
	return renewals, err
}
