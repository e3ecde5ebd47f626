package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionAgainTests = []ruleTest{
	testSEND_2_SendsOfOtherPartitionsAreNotRepeated,
	testSEND_2_PublicationsOfOtherPartitionsAreNotRepeated,
	testDUR_4_APartitionForgetsAnUpdate,
	testDUR_4_APartitionOfATopicForgetsAnUpdate,
	testPART_1_AnUpdateIsNotTakenBack,
	testPART_1_AMissingPartitionTakesNoUpdateBack,
}

// awayOnce is a Store of which one partition cannot be reached by the first send to it.
type awayOnce struct {
	partitioned.Below
	path *atomic.Value // of the partition
}

func (a awayOnce) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	if a.path.CompareAndSwap(path, "") {
		return slices.Repeat([]semantics.SendOutcome{{Err: errAway}}, len(calls))
	}
	return a.Below.SendEach(ctx, path, calls)
}

func (a awayOnce) Publish(
	ctx context.Context, topic string, version int64, calls [][]semantics.Publication,
) []semantics.SendOutcome {
	if a.path.CompareAndSwap(topic, "") {
		return slices.Repeat([]semantics.SendOutcome{{Err: errAway}}, len(calls))
	}
	return a.Below.Publish(ctx, topic, version, calls)
}

// callsOfTwoKeys returns calls with the numbers 00 to 09, by turns of two keys of different partitions.
func callsOfTwoKeys() (calls [][]*semantics.Message, ids []string) {
	for i := range 10 {
		id := fmt.Sprintf("%02d", i)
		calls, ids = append(calls, []*semantics.Message{keyed(id, fmt.Sprint("k", i%2))}), append(ids, id)
	}
	return calls, ids
}

// One partition cannot be reached at first. What the others have stored meanwhile is not sent again.
func testSEND_2_SendsOfOtherPartitionsAreNotRepeated(t *testing.T, h *fixture) {
	var path atomic.Value
	path.Store("")
	h.Store = awayOnce{Below: h.below(), path: &path}
	h.spread(4)
	h.sendsOncePerPartition(&path, semantics.ToQueue("orders"), orders)
}

func testSEND_2_PublicationsOfOtherPartitionsAreNotRepeated(t *testing.T, h *fixture) {
	var path atomic.Value
	path.Store("")
	h.Store = awayOnce{Below: h.below(), path: &path}
	h.spreadNews(4)
	h.sendsOncePerPartition(&path, semantics.ToTopic(news), eu)
}

func (h *fixture) sendsOncePerPartition(path *atomic.Value, target semantics.Target, source semantics.Source) {
	h.t.Helper()
	calls, ids := callsOfTwoKeys()
	probe, err := h.broker.Send(h.t.Context(), target, []*semantics.Message{keyed("probe", "k0")})
	h.ok(err)
	_, p := semantics.PartitionOf(probe[0].SequenceNumber)
	path.Store(h.Store.(*partitioned.Store).Path(target.Path, p))
	results, errs := h.broker.SendEach(h.t.Context(), target, calls)
	for i, err := range errs {
		h.ok(err)
		h.same(results[i][0].MessageID, ids[i])
	}
	h.same(path.Load(), "")
	last := map[string]string{}
	var got []string
	for _, m := range h.peekFrom(source, 1, 100) {
		if m.MessageID == "probe" {
			continue
		}
		got = append(got, m.MessageID)
		if m.MessageID <= last[m.PartitionKey] {
			h.t.Errorf("%s comes behind %s", m.MessageID, last[m.PartitionKey])
		}
		last[m.PartitionKey] = m.MessageID
	}
	slices.Sort(got)
	h.same(got, ids)
}

// The server of one partition forgets an update that was acknowledged, and that of the record does not. What looks at
// the partition completes the update, and changes nothing the next time.
func testDUR_4_APartitionForgetsAnUpdate(t *testing.T, h *fixture) {
	counts := &failing{Below: h.below()}
	counts.left.Store(1000)
	h.Store = counts
	below, spread := h.spreadOver(3)
	path := spread.Path("orders", 1)
	before, err := below.GetEntity(t.Context(), semantics.QueueKind, path)
	h.ok(err)
	h.lockFor(2 * time.Minute)
	_, err = below.UpdateEntity(t.Context(), semantics.QueueKind, path, before.Options, []string{"lockDuration"})
	h.ok(err)
	h.ok(spread.Level(t.Context(), path))
	h.wantLockDuration(2 * time.Minute)
	counts.left.Store(0)
	h.ok(spread.Level(t.Context(), path))
}

func testDUR_4_APartitionOfATopicForgetsAnUpdate(t *testing.T, h *fixture) {
	counts := &failing{Below: h.below()}
	counts.left.Store(1000)
	h.Store = counts
	below := h.spreadNews(3)
	spread := h.Store.(*partitioned.Store)
	h.receiveNone(eu)
	forgets := func(kind semantics.Kind, entity, option string, wanted semantics.Options) {
		t.Helper()
		path := spread.Path(entity, 1)
		before, err := below.GetEntity(t.Context(), kind, path)
		h.ok(err)
		_, err = h.broker.UpdateEntity(t.Context(), kind, entity, wanted, []string{option})
		h.ok(err)
		_, err = below.UpdateEntity(t.Context(), kind, path, before.Options, []string{option})
		h.ok(err)
		h.ok(spread.Level(t.Context(), spread.Path(news, 1)))
		after, err := below.GetEntity(t.Context(), kind, path)
		h.ok(err)
		h.same(len(after.Options.Differences(wanted, []string{option})), 0)
	}
	forgets(semantics.TopicKind, news, "defaultMessageTimeToLive", semantics.Options{DefaultMessageTimeToLive: time.Hour})
	forgets(semantics.SubscriptionKind, eu.Path, "lockDuration", semantics.Options{LockDuration: 2 * time.Minute})
	counts.left.Store(0)
	h.ok(spread.Level(t.Context(), spread.Path(news, 1)))
}

// betweenReads is a Store that does something after the first read of an entity, and notes each lock duration that is
// set. It is safe for concurrent use, as partitions are used at the same time.
type betweenReads struct {
	partitioned.Below

	mu   sync.Mutex
	then func()
	set  []time.Duration
}

func (b *betweenReads) note(set time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set = append(b.set, set)
}

func (b *betweenReads) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	entity, err := b.Below.GetEntity(ctx, kind, path)
	b.mu.Lock()
	then := b.then
	b.then = nil
	b.mu.Unlock()
	if then != nil {
		then()
	}
	return entity, err
}

func (b *betweenReads) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	b.note(options.LockDuration)
	return b.Below.UpdateEntity(ctx, kind, path, options, names)
}

func (b *betweenReads) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	b.note(options.LockDuration)
	return b.Below.CreateEntity(ctx, kind, path, options)
}

// A look at a partition that is under way while its queue is updated brings the old options back for no moment.
func testPART_1_AnUpdateIsNotTakenBack(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(3)
	looking := &betweenReads{Below: below}
	look := partitioned.New(looking)
	h.ok(look.Level(t.Context(), spread.Path("orders", 1))) // it knows the queue
	looking.then = func() { h.lockFor(2 * time.Minute) }
	h.ok(look.Level(t.Context(), spread.Path("orders", 1)))
	for _, set := range looking.set {
		h.same(set, 2*time.Minute)
	}
	h.wantLockDuration(2 * time.Minute)
}

// A sidecar that knows a queue from before an update creates a partition that is missing: with the options that the
// queue has, and without bringing the old ones back in the others.
func testPART_1_AMissingPartitionTakesNoUpdateBack(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(3)
	looking := &betweenReads{Below: below}
	look := partitioned.New(looking)
	path := spread.Path("orders", 1)
	h.ok(look.Level(t.Context(), path)) // it knows the queue
	h.lockFor(2 * time.Minute)
	h.ok(below.DeleteEntity(t.Context(), semantics.QueueKind, path))
	h.ok(look.Level(t.Context(), path))
	if len(looking.set) == 0 {
		t.Fatal("the partition was not created")
	}
	for _, set := range looking.set {
		h.same(set, 2*time.Minute)
	}
	h.wantLockDuration(2 * time.Minute)
}
