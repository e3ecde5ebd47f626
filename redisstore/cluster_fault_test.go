package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Slots that move while messages are sent, received and settled lose nothing, give nothing twice, and wake who waits.
func TestClusterMovesSlotsUnderTraffic(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	f := startTraffic(t, cluster.URL)
	wakes := f.waiting()
	for range 2 {
		for _, queue := range append([]string{"quiet"}, trafficQueues...) {
			cluster.MoveSlot(t, f.key(queue))
			f.awaitSends(2)
		}
	}
	wakes()
	f.end()
	f.wantNothingLost(time.Time{})
}

// A primary that dies under traffic is followed by its replica.
func TestClusterFailsOverUnderTraffic(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	f := startTraffic(t, cluster.URL)
	wakes := f.waiting()
	f.awaitSends(100)
	diedAt := cluster.KillPrimaryOf(t, f.key("quiet"))
	wakes()
	f.awaitSends(100)
	f.end()
	f.wantNothingLost(diedAt)
}

// What a cluster refuses was not done, and passes.
func TestERR_7_RefusalsOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	s := redistest.Open(t, redisstore.Options{URL: cluster.URL, Namespace: namespace, DialTimeout: time.Second})
	create(t, s)
	key := "sb:{" + namespace + "/orders}:entity"
	sent := 0
	send := func() error {
		_, err := s.Send(t.Context(), "orders", message(1))
		if err == nil {
			sent++
		}
		return err
	}
	must(t, send())

	// TRYAGAIN: while the slot is between two servers, keys that are not there might be at the other one.
	settle := cluster.HalfMoved(t, key)
	wantUnchanged(t, "send to a slot that moves", send(), "redis_tryagain")
	_, err := s.Peek(t.Context(), orders, 0, 1, semantics.ShowAvailable)
	wantUnchanged(t, "peek into a slot that moves", err, "redis_tryagain")
	settle()
	must(t, send())

	// ASK: of an entity that does not exist nothing is here, so the other server is asked.
	settle = cluster.HalfMoved(t, "sb:{"+namespace+"/missing}:entity")
	if _, err := s.GetEntity(t.Context(), semantics.QueueKind, "missing"); semantics.CodeOf(err) != semantics.EntityNotFound {
		t.Errorf("an entity in a slot that moves: %v", err)
	}
	settle()

	// MOVED: the client follows.
	cluster.MoveSlot(t, key)
	must(t, send())

	// But what was learnt from the server of before does not hold at another one.
	err = s.Unbroken(t.Context(), func(ctx context.Context) error {
		if _, err := s.Destination(ctx, "orders"); err != nil {
			return err
		}
		cluster.MoveSlot(t, key)
		_, err := s.Destination(ctx, "orders")
		return err
	})
	if e := semantics.AsError(err); err == nil || e.Code != semantics.StoreUnavailable || semantics.IsOutcomeUnknown(err) {
		t.Errorf("the slot moved between two calls: %v", err)
	}
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if counts.Active != int64(sent) {
		t.Errorf("%d messages are there, %d were sent", counts.Active, sent)
	}

	// CLUSTERDOWN: the slots of other servers are gone.
	cluster.KillAllOf(t, "sb:{"+namespace+"/"+elsewhere(t, cluster, namespace)+"}:entity")
	late := time.Now().Add(redistest.Patience)
	for {
		err := send()
		if err != nil && semantics.AsError(err).Details[semantics.DetailCause] == "redis_clusterdown" {
			wantUnchanged(t, "send to a cluster that is down", err, "redis_clusterdown")
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the cluster is never down: %v", err)
		}
	}
}

// A registry whose key is broken is reported once, though the sweeper works on the others in between.
func TestAFaultOfOneRegistryIsReportedOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	raw := redistest.Client(t, cluster.URL)
	must(t, raw.Set(t.Context(), "sb:{"+namespace+"#3}:alarms", "x", 0).Err())
	var told, tries, others atomic.Int64
	s := redistest.Open(t, redisstore.Options{
		URL: cluster.URL, Namespace: namespace,
		UpkeepFailed: func(entity string, err error) {
			if entity != "" || semantics.CodeOf(err) != semantics.Internal {
				t.Errorf("%q: %v", entity, err)
			}
			told.Add(1)
		},
		Observe: func(script, status string, _ time.Duration) {
			switch {
			case script != "take_alarms":
			case status == "error":
				tries.Add(1)
			default:
				others.Add(1)
			}
		},
	})
	sweeping(t, s)
	_, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions())
	must(t, err)
	await(t, func() bool { return tries.Load() >= 3 && others.Load() >= 14 })
	if n := told.Load(); n != 1 {
		t.Errorf("the fault of one registry was reported %d times", n)
	}
}

// elsewhere returns a path whose entity has another server than orders.
func elsewhere(t *testing.T, cluster *redistest.Cluster, namespace string) string {
	t.Helper()
	for _, path := range trafficQueues {
		if !cluster.IsTogether(t, "sb:{"+namespace+"/orders}:entity", "sb:{"+namespace+"/"+path+"}:entity") {
			return path
		}
	}
	t.Fatal("all queues are on one server")
	return ""
}

// A script whose answer does not come in time may have run, so the client of a cluster does not send it again.
func TestERR_6_ACallToAClusterIsNotRepeated(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	s := redistest.Open(t, redisstore.Options{URL: cluster.URL, Namespace: namespace})
	create(t, s)
	hasty := redistest.Open(t, redisstore.Options{URL: cluster.URL, Namespace: namespace, ReadTimeout: 100 * time.Millisecond})
	for late := time.Now().Add(redistest.Patience); ; {
		_, err := hasty.GetEntity(t.Context(), semantics.QueueKind, "orders") // over a connection that the send has then
		if err == nil {
			goOn := cluster.StopPrimaryOf(t, "sb:{"+namespace+"/orders}:entity")
			_, err = hasty.Send(t.Context(), "orders", message(1))
			goOn()
		}
		if semantics.IsOutcomeUnknown(err) {
			break
		}
		// A busy machine answers nothing in time, and so the connection has to be made anew.
		if semantics.CodeOf(err) != semantics.StoreUnavailable || time.Now().After(late) {
			t.Fatalf("a send without an answer: %v", err)
		}
	}
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	for err != nil && semantics.CodeOf(err) == semantics.StoreUnavailable { // it may have failed over
		counts, err = s.Runtime(t.Context(), semantics.QueueKind, "orders")
	}
	must(t, err)
	if counts.Active > 1 {
		t.Errorf("%d messages, of one send", counts.Active)
	}
}
