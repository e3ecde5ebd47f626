package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// pinned is the key under which a context has the connection that all calls of a Store are to take.
type pinned struct{ store *Store }

// Unbroken implements semantics.Transfers. All scripts and reads of do take one connection, and fail once it is lost. A
// Redis that comes back older than it was (failover, AOF cut short) has lost its connections. So what do has learnt
// from one call still holds at the next one. Calls of other goroutines must not use its context.
func (s *Store) Unbroken(ctx context.Context, do func(context.Context) error) error {
	if ctx.Value(pinned{s}) != nil {
		return do(ctx)
	}
	conn := s.client.Conn()
	defer func() { _ = conn.Close() }() // gives it back
	return do(context.WithValue(ctx, pinned{s}, conn))
}

// redis gives the connections that a call may take.
func (s *Store) redis(ctx context.Context) redis.Cmdable {
	if conn, is := ctx.Value(pinned{s}).(*redis.Conn); is {
		return conn
	}
	return s.client
}
