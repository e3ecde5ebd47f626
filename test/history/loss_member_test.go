package history

import (
	"context"
	"sync"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/filter"
)

// member is a sidecar as its applications see it.
type member interface {
	send(ctx context.Context, target semantics.Target, requestID string, messages []*semantics.Message) error
	// receive also gives what is called once the messages are with the application. It fails when they may be there and
	// gone.
	receive(ctx context.Context, source semantics.Source, o broker.ReceiveOptions) (got []*semantics.Received, delivered func() error, err error)
	receiveDeferred(ctx context.Context, source semantics.Source, numbers []int64) (got []*semantics.Received, delivered func() error, err error)
	settle(ctx context.Context, source semantics.Source, verb string, tokens []semantics.LockToken) ([]semantics.Code, error)
	// turn completes a message of a session and takes the next one. failure is why none was taken.
	turn(ctx context.Context, source semantics.Source, token semantics.LockToken) (
		codes []semantics.Code, next []*semantics.Received, failure, err error)

	// accept gives nil if there is none.
	accept(ctx context.Context, path string, options broker.AcceptOptions) (*semantics.Session, error)
	setState(ctx context.Context, source semantics.Source, state []byte) error
	closeSession(ctx context.Context, source semantics.Source) error

	createSubscription(ctx context.Context, path string, rules []semantics.Rule) (isNew bool, err error)
	deleteSubscription(ctx context.Context, path string) error
	createRule(ctx context.Context, subscription string, rule semantics.Rule) error
	deleteRule(ctx context.Context, subscription, name string) error
}

// inside is a sidecar in the test's own process, as far as it goes: a store, a Broker over it, and a sweeper.
type inside struct {
	broker *broker.Broker
	store  *redisstore.Store
}

// startInside returns what starts that many sidecars, which work until the test ends.
func startInside(count int) func(*lossRun) {
	return func(r *lossRun) { r.startInside(count) }
}

func (r *lossRun) startInside(count int) {
	r.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var sweeps sync.WaitGroup
	var brokers []*broker.Broker
	r.t.Cleanup(func() {
		stop()
		sweeps.Wait()
		for _, b := range brokers {
			b.Close()
		}
	})
	for range count {
		store := redistest.Open(r.t, redisstore.Options{URL: r.clock.URL, Namespace: r.namespace})
		broker := broker.New(store, broker.WithRules(filter.Compile))
		brokers = append(brokers, broker)
		r.sidecars = append(r.sidecars, inside{broker, store})
		sweeps.Go(func() { store.Sweep(ctx, broker) })
	}
}

func (m inside) send(ctx context.Context, target semantics.Target, requestID string, messages []*semantics.Message) (err error) {
	if requestID == "" {
		_, err = m.broker.Send(ctx, target, messages)
	} else {
		_, _, err = m.broker.SendOnce(ctx, target, requestID, messages)
	}
	return err
}

func (m inside) receive(ctx context.Context, source semantics.Source, o broker.ReceiveOptions) ([]*semantics.Received, func() error, error) {
	return handedOut(ctx)(m.broker.Receive(ctx, source, o))
}

func (m inside) receiveDeferred(ctx context.Context, source semantics.Source, numbers []int64) ([]*semantics.Received, func() error, error) {
	return handedOut(ctx)(m.broker.ReceiveDeferred(ctx, source, numbers, semantics.PeekLock))
}

func handedOut(ctx context.Context) func(*delivery.Delivery, error) ([]*semantics.Received, func() error, error) {
	return func(d *delivery.Delivery, err error) ([]*semantics.Received, func() error, error) {
		if err != nil {
			return nil, nil, err
		}
		return d.Messages, func() error { return d.Delivered(ctx) }, nil
	}
}

func (m inside) settle(ctx context.Context, source semantics.Source, verb string, tokens []semantics.LockToken) ([]semantics.Code, error) {
	switch verb {
	case "abandon":
		return m.broker.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
	case "defer":
		return m.broker.Defer(ctx, source, tokens, nil)
	case "dead-letter":
		return m.broker.DeadLetter(ctx, source, tokens, broker.DeadLetterOptions{})
	default:
		return m.broker.Complete(ctx, source, tokens)
	}
}

func (m inside) turn(ctx context.Context, source semantics.Source, token semantics.LockToken) (
	[]semantics.Code, []*semantics.Received, error, error,
) {
	turn := semantics.Turn{Session: source.SessionLock, Complete: []semantics.LockToken{token}, Receive: 1}
	o := m.store.Turn(ctx, source.Path, []semantics.Turn{turn})[0]
	return o.Codes, o.Batch.Messages, o.Failure, o.Err
}

func (m inside) accept(ctx context.Context, path string, options broker.AcceptOptions) (*semantics.Session, error) {
	accepted, err := m.broker.AcceptSession(ctx, path, options)
	if err != nil {
		return nil, err
	}
	return accepted.Session, nil
}

func (m inside) setState(ctx context.Context, source semantics.Source, state []byte) error {
	_, err := m.broker.SetSessionState(ctx, source, state, nil)
	return err
}

func (m inside) closeSession(ctx context.Context, source semantics.Source) error {
	return m.broker.CloseSession(ctx, source)
}

func (m inside) createSubscription(ctx context.Context, path string, rules []semantics.Rule) (isNew bool, err error) {
	_, isNew, err = m.store.CreateSubscription(ctx, path, subscriptionOptions(), rules)
	return isNew, err
}

func (m inside) deleteSubscription(ctx context.Context, path string) error {
	return m.store.DeleteEntity(ctx, semantics.SubscriptionKind, path)
}

func (m inside) createRule(ctx context.Context, subscription string, rule semantics.Rule) error {
	_, err := m.store.CreateRule(ctx, subscription, rule)
	return err
}

func (m inside) deleteRule(ctx context.Context, subscription, name string) error {
	return m.store.DeleteRule(ctx, subscription, name)
}

func subscriptionOptions() semantics.Options {
	options := semantics.DefaultOptions()
	options.LockDuration, options.MaxDeliveryCount = workLock, 1000
	return options
}
