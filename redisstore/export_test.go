package redisstore

import (
	"context"
	"time"
)

// SweepOnce does once what Sweep does all the time.
func (s *Store) SweepOnce(ctx context.Context, activate func(ctx context.Context, topic string) error) error {
	_, err := s.sweepOnce(ctx, activate)
	return err
}

// RemovesFrom is since when the sweeper may remove what is unused. It must not run.
func (s *Store) RemovesFrom() time.Time { return s.removesFrom }
