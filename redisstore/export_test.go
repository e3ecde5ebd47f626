package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// SweepOnce does once what Sweep does all the time.
func (s *Store) SweepOnce(ctx context.Context, upkeep semantics.Upkeep) error {
	_, err := s.sweepOnce(ctx, upkeep)
	return err
}

// RemovesFrom is since when the sweeper may remove what is unused. It must not run.
func (s *Store) RemovesFrom() time.Time { return s.removesFrom }
