package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// renewal is one token of a RenewLocks, on its way to the script.
type renewal struct {
	lock   lock
	result *semantics.Renewal
}

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Renewal, error) {
	results := make([]semantics.Renewal, len(tokens))
	all := renewalsOf(tokens, results)
	distinct := slices.CompactFunc(slices.Clone(all), func(a, b renewal) bool { return a.lock == b.lock })
	args := appendRuns(
		[]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, len(distinct),
		func(i int) lock { return distinct[i].lock },
	)
	r, err := s.runOn(ctx, source, "renew_locks", s.keysOf(source).of(source.SubQueue), args...)
	if err != nil {
		return nil, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, err
	}
	until := r.instant()
	for i := range all {
		if i > 0 && all[i].lock == all[i-1].lock {
			*all[i].result = *all[i-1].result
		} else {
			*all[i].result = readRenewal(r, until)
		}
	}
	return results, r.failure()
}

// renewalsOf returns the tokens in the order of their locks, each with its result. The results of tokens that this
// package did not create are final.
func renewalsOf(tokens []semantics.LockToken, results []semantics.Renewal) []renewal {
	all := make([]renewal, 0, len(tokens))
	for i, token := range tokens {
		if l, ok := lockOf(token); ok {
			all = append(all, renewal{lock: l, result: &results[i]})
		} else {
			results[i].Code = semantics.MessageLockLost
		}
	}
	slices.SortFunc(all, func(a, b renewal) int { return a.lock.compare(b.lock) })
	return all
}

func readRenewal(r *reply, until time.Time) semantics.Renewal {
	switch r.number() {
	case 0:
		return semantics.Renewal{Code: semantics.MessageLockLost}
	case 2:
		return semantics.Renewal{LockedUntil: until, ExpiredInHand: true}
	default:
		return semantics.Renewal{LockedUntil: until}
	}
}
