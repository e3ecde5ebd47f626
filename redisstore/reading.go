package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// readingLease is for how long one sidecar may read something for all. One that crashes keeps the others from newer
// values for so long.
const readingLease = 10 * time.Second

// Shared implements semantics.Sharer. On a Redis that refuses writes each sidecar reads for itself.
func (s *Store) Shared(
	ctx context.Context, name string, maxAge time.Duration, read func(context.Context) ([]byte, error),
) (value []byte, age time.Duration, err error) {
	registry := s.registryOf(name)
	r, err := s.run(
		ctx, "lease_reading", registry, s.now(), name, maxAge.Milliseconds(), readingLease.Milliseconds(),
	)
	if err != nil {
		return nil, 0, err
	}
	switch r.status {
	case "OK":
		age, value = time.Duration(r.number())*time.Millisecond, []byte(r.text())
		return value, age, r.failure()
	case "WAIT":
		return nil, 0, semantics.ErrNotYet
	}
	at := r.text()
	if err := r.failure(); err != nil {
		return nil, 0, err
	}
	value, err = read(ctx)
	if err != nil {
		return nil, 0, err
	}
	// If it cannot be kept, it is true all the same, and the others read when the lease ends.
	_, _ = s.run(ctx, "share_reading", registry, name, at, (maxAge + 2*readingLease).Milliseconds(), value)
	return value, 0, nil
}
