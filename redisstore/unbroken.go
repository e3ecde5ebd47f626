package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// pinned is the key under which a context has the connection that all calls of a Store use.
type pinned struct{ store *Store }

// Unbroken implements semantics.Transfers. All scripts and reads of do use one connection, and fail once it is lost. A
// Redis that comes back with older data (failover, AOF cut short) has lost its connections, so what do has learnt from
// one call still holds at the next. Other goroutines must not use its context.
func (s *Store) Unbroken(ctx context.Context, do func(context.Context) error) error {
	if ctx.Value(pinned{s}) != nil {
		return do(ctx)
	}
	conn := s.client.Conn()
	defer func() { _ = conn.Close() }() // returns it to the pool
	return do(context.WithValue(ctx, pinned{s}, conn))
}

// redisClient is one connection, or a client with many.
type redisClient interface {
	redis.Cmdable
	Process(ctx context.Context, command redis.Cmder) error
}

// redis returns the connections that a call may use.
func (s *Store) redis(ctx context.Context) redisClient {
	if conn, is := ctx.Value(pinned{s}).(*redis.Conn); is {
		return conn
	}
	return s.client
}
