package semantics

import "time"

// Bounds of a receive, a settlement and a renewal (RECV-5, RECV-6, LOCK-5).
const (
	MaxReceiveMessages = 1000
	DefaultMaxWait     = time.Minute
	MaxWait            = 5 * time.Minute
	MaxSettleTokens    = MaxReceiveMessages
	MaxRenewTokens     = 500
)

// Mode is how a receive takes messages (RECV-1).
type Mode uint8

// The receive modes.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
)
