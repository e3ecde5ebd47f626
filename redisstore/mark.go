package redisstore

import "math/rand/v2"

// newMark makes the number that tells one state of something from all others it ever had: an entity from those of its
// name, routes and session states from what they were. A counter would not do: Redis may forget a change (failover, AOF
// cut short), and the next one would get its number again, while sidecars and clients still remember what it stood for
// (DUR-4). It is never 0 and fits a float64.
func newMark() int64 { return 1 + rand.Int64N(1<<48) } //nolint:gosec // no secret
