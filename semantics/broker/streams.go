package broker

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Subscribe begins to take messages from source, which must be a queue or its dead letters; see
// stream.Streams.Subscribe.
func (b *Broker) Subscribe(
	ctx context.Context, source semantics.Source, options stream.Options,
) (*stream.Subscription, error) {
	return b.streams.Subscribe(ctx, source, options)
}

// PrefetchesCut is how often this Broker has begun to fetch less ahead for a client than it wants, because it is too
// slow for it (RECV-12).
func (b *Broker) PrefetchesCut() int64 { return b.streams.PrefetchesCut() }

// forStreams is what a Broker offers to its subscriptions.
type forStreams struct{ b *Broker }

func (f forStreams) Draining() <-chan struct{} { return f.b.draining }

func (f forStreams) Charge() error { return f.b.admit(callCost) }

func (f forStreams) Entity(ctx context.Context, path string) (semantics.Entity, error) {
	return f.b.getSource(ctx, path)
}

func (f forStreams) Use(ctx context.Context, path string) (end func()) {
	f.b.uses.begin(ctx, path)
	return func() { f.b.uses.end(path) }
}

func (f forStreams) Take(
	ctx context.Context, source semantics.Source, n int, maxWait time.Duration, mode semantics.Mode,
	owner stream.Owner,
) (*delivery.Delivery, error) {
	return f.b.receive(ctx, source, ReceiveOptions{MaxMessages: n, MaxWait: maxWait, Mode: mode, owner: owner})
}

func (f forStreams) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return f.b.Complete(ctx, source, tokens)
}

func (f forStreams) Turn(
	ctx context.Context, path string, turns []semantics.Turn, owner stream.Owner,
) []stream.Turned {
	return f.b.turn(ctx, path, turns, owner)
}

func (f forStreams) Look(
	ctx context.Context, path string, turns []semantics.Turn, mode semantics.Mode, owner stream.Owner,
) []stream.Turned {
	return f.b.look(ctx, path, turns, ReceiveOptions{Mode: mode, owner: owner})
}

func (f forStreams) WatchSessions(ctx context.Context, path string) (semantics.Watch, error) {
	ctx, cancel := context.WithTimeout(ctx, delivery.SettleTimeout)
	defer cancel()
	return f.b.store.Watch(ctx, semantics.Source{Path: path, HeldSessions: true})
}

func (f forStreams) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Renewal, error) {
	renewals, err := f.b.store.RenewLocks(ctx, source, tokens)
	if err == nil {
		f.b.held.renew(tokens, renewals)
	}
	return renewals, err
}

func (f forStreams) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) {
	_, _ = f.b.settleFree(ctx, source, tokens, f.b.store.Release)
}

func (f forStreams) Accept(ctx context.Context, path string, maxWait time.Duration) (*semantics.Session, error) {
	acceptance, err := f.b.AcceptSession(ctx, path, AcceptOptions{MaxWait: maxWait})
	if err != nil {
		return nil, err
	}
	return acceptance.Session, nil
}

func (f forStreams) RenewSession(ctx context.Context, source semantics.Source) error {
	_, err := f.b.renewSession(ctx, source)
	return err
}

func (f forStreams) CloseSession(ctx context.Context, source semantics.Source) error {
	return f.b.closeSession(ctx, source)
}
