package redisstore

import "math/rand/v2"

// newMark returns a random number for a state of something that differs from all earlier ones: an entity from others of
// its name, routes and session states from earlier versions. It is not a counter: Redis may forget a change (failover,
// AOF cut short), and the next one would get the same number, while sidecars and clients still have the forgotten one
// (DUR-4). It is never 0 and fits a float64.
func newMark() int64 { return 1 + rand.Int64N(1<<48) } //nolint:gosec // not a secret
