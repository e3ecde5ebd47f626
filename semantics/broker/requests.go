package broker

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Request sends message to target and waits for the reply to it; see reply.Requests.Request.
func (b *Broker) Request(
	ctx context.Context, target semantics.Target, replyTo string, message *semantics.Message, timeout time.Duration,
) ([]semantics.SendResult, *delivery.Delivery, error) {
	return b.requests.Request(ctx, target, replyTo, message, timeout)
}

// OrphanReplies is how many replies this Broker has completed for which no request waited (RR-6).
func (b *Broker) OrphanReplies() int64 { return b.requests.Orphans() }

// forRequests is what a Broker offers to its requests.
type forRequests struct{ b *Broker }

func (f forRequests) Draining() <-chan struct{} { return f.b.draining }

func (f forRequests) Entity(ctx context.Context, path string) (semantics.Entity, error) {
	return f.b.getSource(ctx, path)
}

func (f forRequests) Prepare(message *semantics.Message) ([]semantics.SendResult, error) {
	results := make([]semantics.SendResult, 1)
	return results, f.b.prepare([]*semantics.Message{message}, results)
}

func (f forRequests) Send(
	ctx context.Context, target semantics.Target, message *semantics.Message, prepared []semantics.SendResult,
) ([]semantics.SendResult, error) {
	return f.b.sendPrepared(ctx, target, []*semantics.Message{message}, prepared)
}

func (f forRequests) Accept(
	ctx context.Context, path, session string, maxWait time.Duration,
) (semantics.Source, error) {
	if err := f.b.refuseSessions(path); err != nil {
		return semantics.Source{}, err
	}
	held, err := f.b.acceptOrWait(ctx, path, AcceptOptions{SessionID: session, MaxWait: maxWait})
	if err != nil {
		return semantics.Source{}, err
	}
	source := semantics.Source{Path: path, SessionLock: held.Lock}
	f.b.held.addSession(source, held.LockedUntil)
	return source, nil
}

func (f forRequests) Take(
	ctx context.Context, source semantics.Source, n int, maxWait time.Duration,
) ([]*semantics.Received, error) {
	return f.b.receiveOrWait(ctx, source, ReceiveOptions{MaxMessages: n, MaxWait: maxWait})
}

func (f forRequests) Deliver(
	ctx context.Context, source semantics.Source, message *semantics.Received,
) *delivery.Delivery {
	f.b.charge(callCost)
	return f.b.deliver(ctx, source, ReceiveOptions{Mode: semantics.ReceiveAndDelete}, []*semantics.Received{message})
}

func (f forRequests) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return f.b.store.Complete(ctx, source, tokens)
}

func (f forRequests) RenewSession(ctx context.Context, source semantics.Source) error {
	_, err := f.b.renewSession(ctx, source)
	return err
}

func (f forRequests) CloseSession(ctx context.Context, source semantics.Source) {
	if err := f.b.closeSession(ctx, source); err != nil {
		f.b.held.removeSession(source)
	}
}
