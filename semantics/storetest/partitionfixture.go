package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

func partitions(n int64) change { return func(o *semantics.Options) { o.Partitions = n } }

// spread creates orders with partitions. From then on the test's store knows of partitions.
func (h *fixture) spread(n int64, changes ...change) {
	h.t.Helper()
	h.overPartitions()
	options := semantics.DefaultOptions()
	for _, c := range append(changes, partitions(n)) {
		c(&options)
	}
	_, err := h.broker.CreateEntity(h.t.Context(), semantics.QueueKind, orders.Path, options, semantics.OptionNames(semantics.QueueKind))
	h.ok(err)
}

// overPartitions lets the test's store know of partitions, and those of its peers.
func (h *fixture) overPartitions() {
	h.Store = partitioned.New(h.below())
	h.broker = h.newBroker(h.Store)
}

// below returns the store below the test's one, if that knows of partitions, else the test's one.
func (h *fixture) below() partitioned.Below { return withoutPartitions(h.Store) }

// withoutPartitions returns the store below one that knows of partitions, another store as it is.
func withoutPartitions(store semantics.Store) partitioned.Below {
	if spread, is := store.(*partitioned.Store); is {
		store = spread.Store
	}
	return store.(partitioned.Below)
}

// peer opens another sidecar.
func (h *fixture) peer() *broker.Broker {
	store := h.Store
	if h.Peer != nil {
		store = h.Peer()
	}
	return h.newBroker(partitioned.New(withoutPartitions(store)))
}

func keyed(id, key string) *semantics.Message {
	m := text(id)
	m.PartitionKey = key
	return m
}

func partitionOf(m *semantics.Received) int {
	_, p := semantics.PartitionOf(m.SequenceNumber)
	return p
}

// failing is a Store whose changes of entities fail from some call on.
type failing struct {
	partitioned.Below
	left atomic.Int64 // calls that do not
}

var errFailing = semantics.Errorf(semantics.StoreUnavailable, "test").With(semantics.DetailOutcome, semantics.OutcomeUnknown)

func (f *failing) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Entity{}, false, errFailing
	}
	return f.Below.CreateEntity(ctx, kind, path, options)
}

func (f *failing) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteEntity(ctx, kind, path)
}

func (f *failing) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Entity{}, errFailing
	}
	return f.Below.UpdateEntity(ctx, kind, path, options, names)
}

func (f *failing) CreateSubscription(ctx context.Context, path string, options semantics.Options, rules []semantics.Rule) (semantics.Entity, bool, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Entity{}, false, errFailing
	}
	return f.Below.CreateSubscription(ctx, path, options, rules)
}

func (f *failing) CreateRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Rule{}, errFailing
	}
	return f.Below.CreateRule(ctx, subscription, rule)
}

func (f *failing) ReplaceRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Rule{}, errFailing
	}
	return f.Below.ReplaceRule(ctx, subscription, rule)
}

func (f *failing) DeleteRule(ctx context.Context, subscription, name string) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteRule(ctx, subscription, name)
}

func (f *failing) SetVersion(ctx context.Context, topic string, from, to int64) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.SetVersion(ctx, topic, from, to)
}

func (f *failing) DeleteRecord(ctx context.Context, kind semantics.Kind, name string, incarnation int64) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteRecord(ctx, kind, name, incarnation)
}

func (f *failing) DeleteForGood(ctx context.Context, kind semantics.Kind, path string) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteForGood(ctx, kind, path)
}

func ignore(err error, code semantics.Code) error {
	if semantics.CodeOf(err) == code {
		return nil
	}
	return err
}

// away is a Store of which one partition cannot be reached.
type away struct {
	partitioned.Below
	is func(path string) bool
}

// Server lets each entity have a server of its own.
func (away) Server(_ context.Context, path string) any { return path }

var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "test", RetryAfter: time.Second, Err: errors.New("away")}

func (a away) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	if a.is(path) {
		return nil, errAway
	}
	return a.Below.Send(ctx, path, messages)
}

func (a away) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if a.is(source.Path) {
		return semantics.Batch{}, errAway
	}
	return a.Below.Receive(ctx, source, limit, register)
}

func (a away) CompleteAndReceive(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register) (semantics.NextBatch, error) {
	return semantics.CompleteThenReceive(ctx, a, source, tokens, limit, register)
}

func (a away) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if a.is(path) {
		return semantics.Entity{}, errAway
	}
	return a.Below.GetEntity(ctx, kind, path)
}
