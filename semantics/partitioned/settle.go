package partitioned

import (
	"context"
	"maps"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// tokensIn divides lock tokens among the partitions that they name, as these know them, with their places among all. In
// a session all go to its partition, which refuses those of others.
func (w *whole) tokensIn(
	source semantics.Source, tokens []semantics.LockToken,
) (own map[int][]semantics.LockToken, places map[int][]int) {
	own, places = map[int][]semantics.LockToken{}, map[int][]int{}
	session, isHeld := w.sessionOf(source)
	for i, token := range tokens {
		p := session
		if !isHeld {
			p = w.ofToken(token)
		}
		own[p], places[p] = append(own[p], token.InPartition(p)), append(places[p], i)
	}
	return own, places
}

// eachToken runs a verb in all partitions that tokens name, and returns an outcome for each token. If some partition
// fails and another does not, the tokens of the former have an outcome of their own.
func eachToken[T any](
	ctx context.Context, s *Store, w *whole, source semantics.Source, tokens []semantics.LockToken,
	failure func(err error) T,
	verb func(source semantics.Source, own []semantics.LockToken) ([]T, error),
) ([]T, error) {
	outcomes := make([]T, len(tokens))
	own, places := w.tokensIn(source, tokens)
	failed := atOnce(slices.Sorted(maps.Keys(own)), func(_, p int) error {
		var some []T
		err := s.inOne(ctx, w, func() (err error) {
			some, err = verb(w.in(p, source), own[p])
			return err
		})
		for i, place := range places[p] {
			if err == nil {
				outcomes[place] = some[i]
			} else {
				outcomes[place] = failure(err)
			}
		}
		return inPartition(err, p)
	})
	if slices.Contains(failed, nil) {
		return outcomes, nil
	}
	return nil, worst(failed)
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
		codes, err = eachToken(ctx, s, w, source, tokens, semantics.CodeOf, verb)
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
			ctx, s, w, source, tokens,
			func(err error) semantics.Renewal { return semantics.Renewal{Code: semantics.CodeOf(err)} },
			func(source semantics.Source, own []semantics.LockToken) ([]semantics.Renewal, error) {
				return s.Store.RenewLocks(ctx, source, own)
			},
		)
		return err
	})
	return renewals, err
}
