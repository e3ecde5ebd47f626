package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// arrivalsKept is how long the last transfer of a source is kept although the source may be gone: longer than any
	// forwarder repeats it.
	arrivalsKept = time.Hour
	// arrivalsSlice is about how many sources one script looks at.
	arrivalsSlice = 500
	// mostOldArrivals bounds the work of one look at all entities on one of them: the next look continues.
	mostOldArrivals = 5000
)

// forgetArrivals removes what an entity keeps about sources that are gone.
func (s *Store) forgetArrivals(ctx context.Context, name string) error {
	for cursor, sum := "0", 0; ; {
		next, old, err := s.forgetSomeArrivals(ctx, s.keys(name), cursor)
		if sum += old; err != nil || next == "0" || sum >= mostOldArrivals {
			return err
		}
		cursor = next
	}
}

// forgetSomeArrivals does so for a slice of the sources. It returns the cursor of the next slice, "0" after the last,
// and how many sources of this one were old.
func (s *Store) forgetSomeArrivals(
	ctx context.Context, keys entityKeys, cursor string,
) (next string, old int, err error) {
	r, err := s.run(ctx, "old_arrivals", keys, s.now(), arrivalsKept.Milliseconds(), cursor, arrivalsSlice)
	if err != nil {
		return "", 0, err
	}
	next = r.text()
	var fields, notes []string
	for r.more() {
		fields, notes = append(fields, r.text()), append(notes, r.text())
	}
	if err := r.failure(); err != nil || len(fields) == 0 {
		return next, 0, err
	}
	gone, err := s.areGone(ctx, fields)
	if err != nil {
		return "", 0, err
	}
	args := []any{s.now()}
	for i := range fields {
		args = append(args, fields[i], notes[i], flag(gone[i]))
	}
	_, err = s.run(ctx, "forget_arrivals", keys, args...)
	return next, len(fields), err
}

// areGone reports which of the sources, named as by arrivalField, do not exist any more.
func (s *Store) areGone(ctx context.Context, fields []string) ([]bool, error) {
	reads := make([]*redis.StringCmd, len(fields))
	_, _ = s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error { // each read has its own error
		for i, field := range fields {
			parts := strings.SplitN(field, ":", 3)
			reads[i] = p.HGet(ctx, s.keys(parts[len(parts)-1]).key("entity"), "incarnation")
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
