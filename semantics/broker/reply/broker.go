package reply

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Broker is what requests need of the broker that sends them. Only Prepare and Deliver cost the client
// anything. All methods may be called concurrently.
type Broker interface {
	// Draining returns a channel that is closed when no new requests are taken.
	Draining() <-chan struct{}
	// Entity reads a queue or subscription.
	Entity(ctx context.Context, path string) (semantics.Entity, error)

	// Prepare checks a message, fills in what is missing, and takes what the send costs. THROTTLED.
	Prepare(message *semantics.Message) ([]semantics.SendResult, error)
	// Send sends a message that was prepared.
	Send(
		ctx context.Context, target semantics.Target, message *semantics.Message, prepared []semantics.SendResult,
	) ([]semantics.SendResult, error)

	// Accept takes the lock of a session, and waits up to maxWait for it to be free.
	Accept(ctx context.Context, path, session string, maxWait time.Duration) (semantics.Source, error)
	// Take receives up to n messages of a held session and waits up to maxWait for the first.
	Take(ctx context.Context, source semantics.Source, n int, maxWait time.Duration) ([]*semantics.Received, error)
	// Deliver makes a delivery of a message that was taken, as in ReceiveAndDelete mode.
	Deliver(ctx context.Context, source semantics.Source, message *semantics.Received) *delivery.Delivery
	// Complete removes messages that were taken.
	Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error)
	// RenewSession extends the lock of a session and all locks under it.
	RenewSession(ctx context.Context, source semantics.Source) error
	// CloseSession closes a session. If that fails it is free when its lock ends.
	CloseSession(ctx context.Context, source semantics.Source)
}
