package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// arrivalsKept is how long the last transfer of a source is remembered although the source may be gone: longer than any forwarder
	// could still be about to repeat it.
	arrivalsKept = time.Hour
	// mostArrivals bounds those that are looked at in one go.
	mostArrivals = 500
)

// forgetArrivals forgets what sources that are gone have forwarded to an entity.
func (s *Store) forgetArrivals(ctx context.Context, name string) error {
	key := s.keys(name).arrivals
	r, err := s.run(ctx, "old_arrivals", []string{key}, s.now(), arrivalsKept.Milliseconds(), mostArrivals)
	if err != nil || !r.more() {
		return err
	}
	var fields, notes []string
	for r.more() {
		fields, notes = append(fields, r.text()), append(notes, r.text())
	}
	if err := r.failure(); err != nil {
		return err
	}
	gone, err := s.areGone(ctx, fields)
	if err != nil {
		return err
	}
	args := []any{s.now()}
	for i := range fields {
		args = append(args, fields[i], notes[i], flag(gone[i]))
	}
	_, err = s.run(ctx, "forget_arrivals", []string{key}, args...)
	return err
}

// areGone tells which of the sources, named as by arrivalField, are not there any more.
func (s *Store) areGone(ctx context.Context, fields []string) ([]bool, error) {
	reads := make([]*redis.StringCmd, len(fields))
	_, _ = s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each read has its own error
		for i, field := range fields {
			parts := strings.SplitN(field, ":", 3)
			reads[i] = p.HGet(ctx, s.keys(parts[len(parts)-1]).entity, "incarnation")
		}
		return nil
	})
	gone := make([]bool, len(fields))
	for i, field := range fields {
		present, err := reads[i].Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, storeError(err, false)
		}
		incarnation, _, _ := strings.Cut(field, ":")
		gone[i] = present != incarnation
	}
	return gone, nil
}
