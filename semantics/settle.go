package semantics

import (
	"context"
	"time"
)

// AbandonOptions say how messages are given back. The zero value makes them available again at once, or after the
// queue's RedeliveryDelay, as they are.
type AbandonOptions struct {
	Delay      *time.Duration   // how long they stay invisible, at most MaxDelay (SETTLE-11)
	Properties map[string]Value // merged into those of each message (SETTLE-5)
	SkipOrder  bool             // a delayed message does not hold up those behind it in its session (SETTLE-11)
}

// Settlement is a settlement of a Broker with its options.
type Settlement func(context.Context, Source, []LockToken) ([]Code, error)

// CheckTokens refuses a list of lock tokens that is empty or too long.
func CheckTokens(tokens []LockToken, most int) error {
	if len(tokens) == 0 {
		return InvalidField("lockTokens", "must contain at least one token")
	}
	if len(tokens) > most {
		return FieldError(
			ArgumentOutOfRange, "lockTokens", "contains %d tokens, at most %d are allowed", len(tokens), most,
		)
	}
	return nil
}
