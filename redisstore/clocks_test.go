package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// apart is a namespace whose alarms are at a server with another clock than its entities, as they can be in a cluster.
type apart struct {
	*redisstore.Store
	t      *testing.T
	clock  *storetest.Clock
	upkeep semantics.Upkeep
	sweeps atomic.Int64 // of entities
}

func openApart(t *testing.T, registryAhead time.Duration) *apart {
	t.Helper()
	a, namespace := &apart{t: t, clock: storetest.NewClock()}, redistest.Namespace()
	a.Store = redistest.Open(t, redisstore.Options{
		Namespace: namespace, Now: a.clock.Now,
		Observe: func(script, _ string, _ time.Duration) {
			if script == "sweep" {
				a.sweeps.Add(1)
			}
		},
	})
	a.SetRegistryClock(registryAhead)
	broker := brokerOver(a.Store)
	t.Cleanup(func() { broker.Close() })
	a.upkeep = broker
	must(t, makeQueue(t, a.Store, "orders"))
	must(t, createTopic(t, a.Store))
	must(t, subscribe(t, a.Store, "all"))
	for _, to := range []semantics.Target{{Path: "orders"}, {Path: "news", IsTopic: true}} {
		later := &semantics.Message{MessageID: "later", ScheduledAt: a.clock.Now().Add(10 * time.Minute)}
		must(t, second(broker.Send(t.Context(), to, []*semantics.Message{later})))
	}
	raw := rawClient(t) // a send does not always wait for its alarm
	await(t, func() bool { return raw.ZCard(t.Context(), "sb:{"+namespace+"}:alarms").Val() == 2 })
	return a
}

// sweep does what is due, and fails if that does not end.
func (a *apart) sweep() {
	a.t.Helper()
	ctx, stop := context.WithCancel(a.t.Context())
	defer stop()
	before := a.sweeps.Load()
	ended := make(chan error, 1)
	go func() { ended <- a.SweepOnce(ctx, a.upkeep) }()
	await(a.t, func() bool { return len(ended) > 0 || a.sweeps.Load() > before+100 })
	if len(ended) == 0 {
		stop()
		a.t.Fatalf("what is not due is swept again and again, until: %v", <-ended)
	}
	must(a.t, <-ended)
}

func (a *apart) look() {
	a.t.Helper()
	must(a.t, second(a.LookOnce(a.t.Context(), a.upkeep, func(entity string, err error) { a.t.Errorf("%s: %v", entity, err) })))
}

// wantActive checks that the messages of queue and topic are available.
func (a *apart) wantActive(want int64) {
	a.t.Helper()
	for kind, path := range map[semantics.Kind]string{
		semantics.QueueKind: "orders", semantics.SubscriptionKind: semantics.SubscriptionPath("news", "all"),
	} {
		counts, err := a.Runtime(a.t.Context(), kind, path)
		must(a.t, err)
		if counts.Active != want {
			a.t.Errorf("%s has %d messages, want %d", path, counts.Active, want)
		}
	}
}

// A server of alarms whose clock is ahead has entities swept once too often, and on time.
func TestSCHED_6_AlarmsOfAServerWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	a := openApart(t, time.Hour)
	a.sweep()
	a.clock.Advance(9 * time.Minute)
	before := a.sweeps.Load()
	a.sweep()
	if swept := a.sweeps.Load() - before; swept > 0 {
		t.Errorf("%d sweeps before anything is due", swept)
	}
	a.clock.Advance(2 * time.Minute)
	a.sweep()
	a.wantActive(1)
}

// A server of alarms whose clock is behind has entities swept late: the look at all entities, once a minute, finds what
// is due.
func TestSCHED_6_AlarmsOfAServerWhoseClockIsBehind(t *testing.T) {
	t.Parallel()
	a := openApart(t, -time.Hour)
	a.sweep()
	a.look()
	a.clock.Advance(11 * time.Minute)
	a.sweep()
	a.look()
	a.sweep()
	a.wantActive(1)
}
