package storetest

import (
	"context"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Memory opens the executable form of the rules, which is the reference of other stores.
func Memory(*testing.T) Harness {
	clock := NewClock()
	store := memstore.New(memstore.WithClock(clock.Now))
	return Harness{
		Store: store, Now: clock.Now, Advance: clock.Advance,
		Peer: func() semantics.Store { return store },
		Sweep: func(ctx context.Context, _ semantics.Store, upkeep semantics.Upkeep) error {
			store.SweepOnce(ctx, upkeep)
			return nil
		},
		WithTopicLimits: func(subscriptions, sqlFilters, correlationFilters int) semantics.Store {
			limits := memstore.WithTopicLimits(subscriptions, sqlFilters, correlationFilters)
			return memstore.New(memstore.WithClock(clock.Now), limits)
		},
	}
}
