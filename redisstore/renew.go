package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Renewal, error) {
	r, err := s.runOn(ctx, source, "renew_locks", s.keysOf(source).of(source.SubQueue),
		appendLocks([]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, tokens)...)
	if err != nil {
		return nil, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, err
	}
	return readRenewals(r, r.instant(), len(tokens))
}

func readRenewals(r *reply, until time.Time, n int) ([]semantics.Renewal, error) {
	renewals := make([]semantics.Renewal, n)
	for i := range renewals {
		switch r.number() {
		case 0:
			renewals[i].Code = semantics.MessageLockLost
		case 2:
			renewals[i] = semantics.Renewal{LockedUntil: until, ExpiredInHand: true}
		default:
			renewals[i].LockedUntil = until
		}
	}
	return renewals, r.failure()
}
