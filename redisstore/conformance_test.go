package redisstore_test

import (
	"context"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Every rule that holds on memstore holds on Redis.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		clock := storetest.NewClock()
		options := redisstore.Options{Now: clock.Now, Namespace: redistest.Namespace()}
		return storetest.Harness{
			Store: redistest.Open(t, options), Now: clock.Now, Advance: clock.Advance,
			Peer: func() semantics.Store { return redistest.Open(t, options) },
			Sweep: func(ctx context.Context, store semantics.Store, upkeep semantics.Upkeep) error {
				return store.(*redisstore.Store).SweepOnce(ctx, upkeep)
			},
			WithTopicLimits: func(subscriptions, sqlFilters, correlationFilters int) semantics.Store {
				limits := redisstore.TopicLimits{Subscriptions: subscriptions, SQLFilters: sqlFilters, CorrelationFilters: correlationFilters}
				return redistest.Open(t, redisstore.Options{Now: clock.Now, TopicLimits: limits})
			},
		}
	})
}
