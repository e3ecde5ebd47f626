package audit

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// Faults is Audit for an entity that is in use: it returns what was found as texts, and looks for no keys besides those
// that an entity has. What takes a sidecar more than one step looks broken in between, so only what is found again is
// wrong.
func (a *Auditor) Faults(ctx context.Context, path string) ([]string, error) {
	known := *a
	known.known = true
	q, err := known.read(ctx, path)
	if reply := redis.Error(nil); errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "WRONGTYPE") {
		return []string{"one of its keys has another type: " + reply.Error()}, nil
	}
	if err != nil || len(q.entity) == 0 {
		return nil, err
	}
	return texts(known.Audit(ctx, path)), ctx.Err()
}

// texts returns the errors that were joined, one by one.
func texts(err error) []string {
	if err == nil {
		return nil
	}
	joined, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // the tree is walked here
	if !is {
		return []string{err.Error()}
	}
	var all []string
	for _, err := range joined.Unwrap() {
		all = append(all, texts(err)...)
	}
	return all
}

// Size is what an entity holds, a topic with its subscriptions.
type Size struct {
	Exists   bool
	Messages int64 // entries of its logs; one has up to a few hundred small messages
	Bytes    int64
}

// Weigh returns what an entity holds. It blocks for two round trips.
func (a *Auditor) Weigh(ctx context.Context, path string) (Size, error) {
	names, err := a.client.HKeys(ctx, a.tagOf(path)+"subscriptions").Result()
	if err != nil {
		return Size{}, err
	}
	tags := []string{a.tagOf(path)}
	for _, name := range names {
		tags = append(tags, a.tagOf(semantics.SubscriptionPath(path, name)))
	}
	var lengths []*redis.IntCmd
	var held []*redis.SliceCmd
	_, err = a.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, tag := range tags {
			for _, part := range []string{"log", "dead_log", "scheduled", "transfer:dead_log"} {
				lengths = append(lengths, p.XLen(ctx, tag+part))
			}
			lengths = append(lengths, p.ZCard(ctx, tag+"rules"), p.HLen(ctx, tag+"session_states"))
			held = append(held, p.HMGet(ctx, tag+"entity", "kind", "bytes", "dead_bytes", "state_bytes"))
		}
		return nil
	})
	if err != nil {
		return Size{}, err
	}
	size := Size{Exists: held[0].Val()[0] != nil}
	for _, length := range lengths {
		size.Messages += length.Val()
	}
	for _, sizes := range held {
		for _, text := range sizes.Val()[1:] {
			if text, is := text.(string); is {
				n, _ := strconv.ParseInt(text, 10, 64)
				size.Bytes += n
			}
		}
	}
	return size, nil
}
