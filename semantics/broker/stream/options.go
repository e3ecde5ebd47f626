package stream

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// Bounds and defaults of a subscription (RECV-12, RECV-13, LOCK-9, SESS-23, SESS-27).
const (
	MaxCredits           = account.MaxCredits
	MaxPrefetch          = 1000
	MaxPrefetchBytes     = account.MaxPrefetchBytes
	DefaultMaxAutoRenew  = 5 * time.Minute
	MaxAutoRenew         = 24 * time.Hour
	MaxSessionIdle       = 24 * time.Hour
	MaxSubscriptionIDLen = 128
)

// Options are how a subscription takes messages. DefaultOptions has what a client gets that sets nothing.
type Options struct {
	// ID names the subscription. A Broker takes one subscription of a name at a time (RECV-13); empty: no name.
	ID   string
	Mode semantics.Mode
	// Credits are the most messages the client wants to have unsettled, 0 to MaxCredits; 0 pauses (RECV-13).
	Credits int
	// MaxAutoRenew is how long after its delivery a message's lock is renewed, at most MaxAutoRenew; 0: never (LOCK-9).
	MaxAutoRenew time.Duration

	// Prefetch is how many messages are fetched beyond the credits, 0 to MaxPrefetch; not for queues with sessions
	// (RECV-12).
	Prefetch int

	// MaxSessions is the most sessions held at a time, 1 to MaxConcurrentSession. Only for queues with sessions, as the
	// rest.
	MaxSessions int
	// SessionInFlight is the most unsettled messages of one session, 1 to MaxSessionInFlight; the queue's own bound
	// holds too (SESS-27).
	SessionInFlight int
	// SessionIdle is after how long without a message a session is given up (SESS-23). One without messages is given up
	// at once when another is ready and there is no place for it.
	SessionIdle time.Duration
}

// DefaultOptions are one message at a time, one in flight in each of at most eight sessions, with locks renewed for
// five minutes.
func DefaultOptions() Options {
	return Options{
		Credits: 1, MaxAutoRenew: DefaultMaxAutoRenew, MaxSessions: semantics.DefaultMaxSessions, SessionInFlight: 1,
		SessionIdle: semantics.DefaultSessionIdle,
	}
}

func (o Options) validate() error {
	numbers := []struct {
		name             string
		value, low, high int
	}{
		{"credits", o.Credits, 0, MaxCredits},
		{"prefetch", o.Prefetch, 0, MaxPrefetch},
		{"maxConcurrentSessions", o.MaxSessions, 1, semantics.MaxConcurrentSession},
		{"sessionInFlight", o.SessionInFlight, 1, semantics.MaxSessionInFlight},
	}
	for _, n := range numbers {
		if n.value < n.low || n.value > n.high {
			return semantics.FieldError(
				semantics.ArgumentOutOfRange, n.name, "is %d, must be %d to %d", n.value, n.low, n.high,
			)
		}
	}
	if d := o.MaxAutoRenew; d < 0 || d > MaxAutoRenew {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, "maxAutoRenew", "is %s, must be 0s to %s", d, MaxAutoRenew,
		)
	}
	if d := o.SessionIdle; d < 0 || d > MaxSessionIdle {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, "sessionIdle", "is %s, must be 0s to %s", d, MaxSessionIdle,
		)
	}
	if o.Mode > semantics.ReceiveAndDelete {
		return semantics.InvalidField("mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	if n := semantics.UTF16Length(o.ID); n > MaxSubscriptionIDLen {
		return semantics.InvalidField("id", "is %d characters long, at most %d are allowed", n, MaxSubscriptionIDLen)
	}
	return nil
}
