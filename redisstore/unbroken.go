package redisstore

import "context"

// pinned is the key under which a context has the connections that all calls of a Store use.
type pinned struct{ store *Store }

// Unbroken implements semantics.Transfers. All scripts and reads of do use one connection to each server, and fail once
// it is lost. A Redis that comes back with older data (failover, AOF cut short) has lost its connections, so what do
// has learnt from one call still holds at the next. Other goroutines must not use its context.
func (s *Store) Unbroken(ctx context.Context, do func(context.Context) error) error {
	if ctx.Value(pinned{s}) != nil {
		return do(ctx)
	}
	conns := s.servers.pin()
	defer func() { _ = conns.Close() }() // returns them to their pools
	return do(context.WithValue(ctx, pinned{s}, conns))
}

// redis returns the connections that a call may use.
func (s *Store) redis(ctx context.Context) redisClient {
	if conns, is := ctx.Value(pinned{s}).(pinnedConnections); is {
		return conns
	}
	return s.servers
}
