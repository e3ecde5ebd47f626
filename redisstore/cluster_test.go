package redisstore_test

import (
	"context"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Every rule that holds on one Redis holds on a cluster of three primaries.
func TestCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the race detector has the same code in TestStore, and what only a cluster needs in the tests under traffic")
	}
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	raw := redistest.Client(t, cluster.URL)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		clock := storetest.NewClock()
		options := redisstore.Options{URL: cluster.URL, Now: clock.Now, Namespace: redistest.NamespaceUntil(t, cluster.URL), Orphaned: func(entity string, positions []int64) {
			t.Errorf("%s: positions %v without messages, though nobody has meddled with the keys", entity, positions)
		}}
		ledger := redistest.NewLedger(clock.Now)
		options.Durability.Replicas = 2 // which the primaries lack, as those of the other harnesses lack one (DUR-3)
		auditor := audit.New(raw, options.Namespace).With(ledger)
		keep := func() semantics.Store { return ledger.Keep(redistest.Open(t, options)) }
		t.Cleanup(func() {
			if err := auditor.AuditAll(context.WithoutCancel(t.Context())); err != nil && !t.Failed() {
				t.Errorf("what the test has left does not fit together:\n%v", err)
			}
		})
		return storetest.Harness{
			Store: keep(), Now: clock.Now, Advance: clock.Advance, Peer: keep,
			Sweep: func(ctx context.Context, store semantics.Store, upkeep semantics.Upkeep) error {
				return store.(redistest.Kept).Below.(*redisstore.Store).SweepOnce(ctx, upkeep)
			},
			WithTopicLimits: func(subscriptions, sqlFilters, correlationFilters int) semantics.Store {
				limits := redisstore.TopicLimits{Subscriptions: subscriptions, SQLFilters: sqlFilters, CorrelationFilters: correlationFilters}
				return redistest.Open(t, redisstore.Options{URL: cluster.URL, Now: clock.Now, TopicLimits: limits})
			},
			Reference: storetest.Memory, IsApart: true,
			Audit: func(path string) error { return auditor.Audit(context.WithoutCancel(t.Context()), path) },
		}
	})
}
