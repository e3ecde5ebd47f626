package redisstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Copies of a topic's messages share one body, which is kept with the topic: docs/decisions/0037.

// splitShared returns the messages of a chunk from one position to another, whose bodies are still to be read. What
// cannot be parsed has no body, so that it is unreadable.
func (e *entry) splitShared(first, last int64) []entry {
	var entries []entry
	position := e.position
	for item := range strings.SplitSeq(e.chunk, ",") {
		sizeText, originText, _ := strings.Cut(item, ":")
		size, _ := strconv.ParseInt(sizeText, 10, 64)
		origin, _ := strconv.ParseInt(originText, 10, 64)
		if position >= first && position <= last {
			entries = append(entries, entry{
				position: position, size: size, times: e.times, origin: origin, isShared: true,
				weight: messageOverhead,
			})
		}
		position++
	}
	return entries
}

// addBodies adds what is kept with the topic to messages that were read. A message whose body is gone was settled
// meanwhile; it stays without payload, so that it is unreadable.
func (s *Store) addBodies(ctx context.Context, keys entityKeys, read [][]entry) error {
	var shared []*entry
	for _, entries := range read {
		for i := range entries {
			if entries[i].isShared {
				shared = append(shared, &entries[i])
			}
		}
	}
	if len(shared) == 0 {
		return nil
	}
	args := []any{"hmget", keys.key("bodies")}
	for _, e := range shared {
		args = append(args, e.origin)
	}
	found := redis.NewSliceCmd(ctx, args...)
	if err := s.redis(ctx).Process(ctx, found); err != nil {
		return storeError(err, true)
	}
	bodies := found.Val()
	for i, e := range shared {
		e.payload, _ = bodies[i].(string)
		e.weight += int64(len(e.payload))
	}
	return nil
}

// How many scripts a deletion runs to release bodies, and how many a look at all entities for each topic.
const (
	releasesAtOnce = 40
	releasesOfLook = 400
)

// mostLeft bounds how many deleted subscriptions are looked at whose bodies are still to be released.
const mostLeft = 1000

// leftCopies returns deleted subscriptions of a topic whose bodies are still to be released: see lua/release_left.lua.
func (s *Store) leftCopies(ctx context.Context, topic string) ([]string, error) {
	left := redis.NewStringSliceCmd(ctx, "zrange", s.keys(topic).key("left_copies"), 0, mostLeft-1)
	if err := s.redis(ctx).Process(ctx, left); err != nil {
		return nil, storeError(err, false)
	}
	return left.Val(), nil
}

// releaseLeft releases bodies that copies of deleted subscriptions shared with others, in so many scripts at most.
func (s *Store) releaseLeft(ctx context.Context, topic string, most int) error {
	left, err := s.leftCopies(ctx, topic)
	for ; err == nil && len(left) > 0 && most > 0; most-- {
		r, failure := s.run(ctx, "release_left", s.keys(topic).leftBehind(left[0]), left[0])
		if err = failure; err == nil {
			if r.number() == 0 {
				left = left[1:]
			}
			err = r.failure()
		}
	}
	return err
}
