package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// completing is a Store that calls before a removal of a queue completes. If that fails, so does the removal.
type completing struct {
	*redisstore.Store
	before func() error
}

func (c completing) CompleteRemoval(ctx context.Context, kind semantics.Kind, name string, incarnation, removal int64) (bool, error) {
	if err := c.before(); err != nil {
		return false, err
	}
	return c.Store.CompleteRemoval(ctx, kind, name, incarnation, removal)
}

// spreadRemoval has orders with three partitions, each with a message, which is idle.
type spreadRemoval struct {
	*removal
	store *partitioned.Store
}

func openSpreadRemoval(t *testing.T) *spreadRemoval {
	t.Helper()
	r := &spreadRemoval{removal: openRemoval(t)}
	r.store = partitioned.New(r.Store)
	r.becomeIdle()
	return r
}

// becomeIdle creates orders.
func (r *spreadRemoval) becomeIdle() {
	r.t.Helper()
	options := semantics.DefaultOptions()
	options.Partitions, options.AutoDeleteOnIdle = 3, unusedFor
	_, _, err := r.store.CreateEntity(r.t.Context(), semantics.QueueKind, "orders", options)
	must(r.t, err)
	r.sendToEach()
	r.clock.Advance(unusedFor)
}

// sendToEach sends a message to each partition.
func (r *spreadRemoval) sendToEach() {
	r.t.Helper()
	for range 3 {
		_, err := r.store.Send(r.t.Context(), "orders", []*semantics.Message{{MessageID: "m"}})
		must(r.t, err)
	}
}

func (r *spreadRemoval) sweepAll() {
	r.t.Helper()
	must(r.t, r.SweepOnce(r.t.Context(), brokerOver(r.store)))
}

// suspended returns how many partitions are suspended.
func (r *spreadRemoval) suspended() int {
	r.t.Helper()
	keys, err := r.raw.Keys(r.t.Context(), "sb:{"+r.namespace+"/orders#*}:suspended").Result()
	must(r.t, err)
	return len(keys)
}

// cutOff lets a sidecar suspend all partitions and be killed then.
func (r *spreadRemoval) cutOff() {
	r.t.Helper()
	killed := completing{r.Store, func() error { return semantics.Errorf(semantics.StoreUnavailable, "test") }}
	if _, err := partitioned.New(killed).RemoveUnused(r.t.Context(), "orders"); err == nil {
		r.t.Fatal("it was not cut off")
	}
	if n := r.suspended(); n != 3 {
		r.t.Fatalf("%d partitions are suspended, want 3", n)
	}
}

// A sweeper deletes the queue with everything that belongs to it, and tells it once.
func TestIDLE_1_NothingIsLeftOfPartitions(t *testing.T) {
	t.Parallel()
	r := openSpreadRemoval(t)
	for _, isCut := range []bool{false, true} {
		if isCut {
			r.told = nil
			r.becomeIdle()
			r.cutOff()
		}
		r.clock.Advance(time.Minute)
		r.sweepAll()
		if len(r.told) != 1 || r.told[0] != "queue orders" {
			t.Errorf("told %q, want the queue once", r.told)
		}
		left, err := redistest.Left(t.Context(), r.raw, "sb:{"+r.namespace+"*")
		must(t, err)
		for _, key := range left {
			if !strings.Contains(key, ":deleted/") { // the note of the deletion
				t.Errorf("left is %s", key)
			}
		}
	}
}

// A partition that a late sidecar has suspended is used again after the look at all entities, without a call.
func TestIDLE_8_LookResumesPartitions(t *testing.T) {
	t.Parallel()
	r := openSpreadRemoval(t)
	r.cutOff()
	record, err := r.store.GetEntity(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	must(t, r.Store.CancelRemoval(t.Context(), "orders", record.Incarnation, 0))
	_, err = r.LookOnce(t.Context(), brokerOver(r.store), func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
	must(t, err)
	if n := r.suspended(); n != 0 {
		t.Errorf("%d partitions are suspended, want none", n)
	}
}

// A record that Redis forgot while its partitions were suspended is created again with all messages.
func TestDUR_4_ForgottenRecordOfSuspendedPartitions(t *testing.T) {
	t.Parallel()
	r := openSpreadRemoval(t)
	r.cutOff()
	must(t, r.raw.Del(t.Context(), "sb:{"+r.namespace+"/orders}:entity").Err())
	must(t, r.raw.Del(t.Context(), r.raw.Keys(t.Context(), "sb:{"+r.namespace+"/orders}:deleted/*").Val()...).Err())
	options := semantics.DefaultOptions()
	options.Partitions = 3
	_, created, err := partitioned.New(r.Store).CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	must(t, err)
	counts, err := r.store.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if !created || counts.Active != 3 {
		t.Errorf("created is %t with %d messages, want 3", created, counts.Active)
	}
}

// A Redis that came back older has the number of a removal again that a use let it drop, or has forgotten a suspension.
// The removal does not complete in another history.
func TestDUR_4_ForgottenUseDuringARemoval(t *testing.T) {
	t.Parallel()
	for history, survives := range map[string]bool{"of before": true, "": false} {
		r := openSpreadRemoval(t)
		record := "sb:{" + r.namespace + "/orders}:entity"
		late := completing{r.Store, func() error {
			noted := r.raw.HMGet(t.Context(), record, "removal", "removal_in").Val()
			r.sendToEach()
			if n := r.suspended(); n != 0 {
				t.Errorf("%d partitions are suspended, want none", n)
			}
			if survives {
				noted[1] = history
			}
			return r.raw.HSet(t.Context(), record, "removal", noted[0], "removal_in", noted[1]).Err()
		}}
		_, err := partitioned.New(late).RemoveUnused(t.Context(), "orders")
		must(t, err)
		_, err = r.store.GetEntity(t.Context(), semantics.QueueKind, "orders")
		if isThere := err == nil; isThere != survives {
			t.Errorf("the queue is there: %t, want %t", isThere, survives)
		}
	}
}

// The server of one partition forgets that the partition is suspended, and that of the record does not. A sidecar that
// knows the queue sends there, and the removal gives way.
func TestDUR_4_OneServerForgetsASuspension(t *testing.T) {
	t.Parallel()
	f := newOneForgets(t)
	plain, orders := f.name("plain", true), f.name("orders", false)
	must(t, makeQueue(t, f.changesBelow, plain))
	f.create(semantics.QueueKind, orders, func(o *semantics.Options) { o.AutoDeleteOnIdle = time.Millisecond })
	must(t, f.send(orders, "before"))
	forget := f.cluster.Forgetting(t, "sb:{"+f.namespace+"/"+plain+"}:entity")
	isDone := false
	late := partitioned.New(completing{f.changesBelow, func() error {
		isDone = true
		forget()
		f.awaitServer(plain)
		return f.send(orders, "after")
	}})
	await(t, func() bool { // 1 ms after the send
		_, err := late.RemoveUnused(t.Context(), orders)
		return isDone || err != nil
	})
	f.wantHeld(orders, "before", "after")
}

// While the server of a partition is away, the queue stays.
func TestIDLE_8_AServerThatIsAwayKeepsTheQueue(t *testing.T) {
	t.Parallel()
	r := openSpreadRemoval(t)
	away := awayStore{r.Store, r.store.Path("orders", 1)}
	if _, err := partitioned.New(away).RemoveUnused(t.Context(), "orders"); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("got %v, want that the store is away", err)
	}
	counts, err := r.store.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if counts.Active != 3 {
		t.Errorf("%d messages are left, want 3", counts.Active)
	}
}

// awayStore cannot reach a partition.
type awayStore struct {
	*redisstore.Store
	path string
}

func (a awayStore) Suspend(ctx context.Context, path string, removal int64, span time.Duration, keeps bool) (time.Duration, error) {
	if path == a.path {
		return 0, semantics.Errorf(semantics.StoreUnavailable, "test")
	}
	return a.Store.Suspend(ctx, path, removal, span, keeps)
}

// A full Redis lets out what a removal that was cut off has suspended.
func TestIDLE_8_FullRedisResumesPartitions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	clock := storetest.NewClock()
	below := redistest.Open(t, redisstore.Options{URL: server.URL, Now: clock.Now})
	store := partitioned.New(below)
	options := semantics.DefaultOptions()
	options.Partitions, options.AutoDeleteOnIdle = 3, unusedFor
	_, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	must(t, err)
	for range 3 {
		_, err := store.Send(t.Context(), "orders", message(1000))
		must(t, err)
	}
	clock.Advance(unusedFor)
	killed := completing{below, func() error { return semantics.Errorf(semantics.StoreUnavailable, "test") }}
	if _, err := partitioned.New(killed).RemoveUnused(t.Context(), "orders"); err == nil {
		t.Fatal("it was not cut off")
	}
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	batch, err := store.Receive(t.Context(), orders, 3, semantics.RegisterNever)
	must(t, err)
	if len(batch.Messages) != 3 {
		t.Errorf("received %d messages, want 3", len(batch.Messages))
	}
}
