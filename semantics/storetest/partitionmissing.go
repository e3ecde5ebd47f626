package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionMissingTests = []ruleTest{
	testPART_1_AMissingPartitionKeepsAnswersTrue,
	testPART_1_AMissingPartitionHidesNoUnknownOutcome,
	testPART_1_UpdatesAtTheSameTime,
	testPART_1_AnUpdateThatFailsLeavesTheLaterOne,
	testPART_1_AnUpdateWhoseCallerGoesAway,
	testPART_1_CreationDuringAnUpdate,
	testPART_1_DeletionWithoutALook,
	testPART_8_DeletionWithoutALook,
	testPART_8_DeletionWithoutANote,
}

// spreadOver is spread with what tests do to partitions from below.
func (h *fixture) spreadOver(n int64, changes ...change) (below partitioned.Below, spread *partitioned.Store) {
	h.t.Helper()
	below = h.below()
	h.spread(n, changes...)
	return below, h.Store.(*partitioned.Store)
}

// ofPartition returns a key of a partition.
func (h *fixture) ofPartition(want int) string {
	h.t.Helper()
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		stored, err := h.Store.Send(h.t.Context(), "orders", []*semantics.Message{keyed("probe", key)})
		h.ok(err)
		_, p := semantics.PartitionOf(stored[0].SequenceNumber)
		_, err = h.Store.DeleteByNumber(h.t.Context(), orders, []int64{stored[0].SequenceNumber})
		h.ok(err)
		if p == want {
			return key
		}
	}
}

// A partition that its server has forgotten is created again by the call that misses it. What that call did in other
// partitions it has done once, and says so.
func testPART_1_AMissingPartitionKeepsAnswersTrue(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(3)
	there, missing := h.ofPartition(0), h.ofPartition(1)
	calls := map[string]func(there, missing int64) (any, error){
		"delete": func(there, missing int64) (any, error) {
			return spread.DeleteByNumber(t.Context(), orders, []int64{there, missing})
		},
		"resubmit": func(there, missing int64) (any, error) {
			moved, err := spread.Resubmit(t.Context(), deadOf(orders), "orders", []semantics.Resubmission{
				{SequenceNumber: there}, {SequenceNumber: missing},
			}, false)
			codes := []semantics.Code{}
			for _, m := range moved {
				codes = append(codes, m.Code)
			}
			return codes, err
		},
		"cancel": func(int64, int64) (any, error) {
			return spread.CancelScheduledByID(t.Context(), "orders", []string{"a"})
		},
	}
	for name, call := range calls {
		number := func(key string) int64 {
			m := keyed("a", key)
			if name == "cancel" {
				m.ScheduledAt = h.Now().Add(time.Hour)
			}
			stored, err := spread.Send(t.Context(), "orders", []*semantics.Message{m})
			h.ok(err)
			if name == "resubmit" {
				got := h.receive(orders, 1)
				codes, err := spread.DeadLetter(t.Context(), orders, tokensOf(got...), semantics.DeadLetterTexts{}, nil)
				h.ok(err)
				h.same(codes, []semantics.Code{""})
			}
			return stored[0].SequenceNumber
		}
		first, second := number(there), number(missing)
		h.ok(below.DeleteEntity(t.Context(), semantics.QueueKind, spread.Path("orders", 1)))
		got, err := call(first, second)
		h.ok(err)
		want := any([]semantics.Code{"", semantics.MessageNotFound})
		if name == "cancel" {
			want = 1
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		h.spreadAgain(3)
	}
}

// spreadAgain creates orders again, with partitions.
func (h *fixture) spreadAgain(n int64) {
	h.t.Helper()
	_, err := h.broker.CreateEntity(h.t.Context(), semantics.QueueKind, "orders", semantics.Options{Partitions: n}, []string{"partitions"})
	h.ok(err)
}

// losesAnswers is a Store that completes, and loses the first answer of the partition with a path.
type losesAnswers struct {
	partitioned.Below
	of atomic.Value
}

func (l *losesAnswers) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	codes, err := l.Below.Complete(ctx, source, tokens)
	if l.of.CompareAndSwap(source.Path, "") {
		return nil, errFailing
	}
	return codes, err
}

func testPART_1_AMissingPartitionHidesNoUnknownOutcome(t *testing.T, h *fixture) {
	lossy := &losesAnswers{Below: h.below()}
	lossy.of.Store("")
	h.Store = lossy
	below, spread := h.spreadOver(3)
	h.send(keyed("a", h.ofPartition(0)))
	h.send(keyed("b", h.ofPartition(1)))
	got := h.receive(orders, 2)
	h.ok(below.DeleteEntity(t.Context(), semantics.QueueKind, spread.Path("orders", 0)))
	lossy.of.Store(spread.Path("orders", 1))
	codes, err := spread.Complete(t.Context(), orders, tokensOf(got...))
	h.ok(err)
	want := map[string]semantics.Code{"a": semantics.MessageLockLost, "b": semantics.StoreUnavailable}
	h.same(codes, []semantics.Code{want[got[0].MessageID], want[got[1].MessageID]})
}

// around is a Store in which other sidecars act at one moment of a call, once.
type around struct {
	partitioned.Below
	update, remove  moment // before a change of partition 1, and before any deletion but those for good
	create, created moment // before and after the creation of partition 1; create also before that of a definition
}

// moment is what is to be done at some moment.
type moment struct{ do atomic.Pointer[func()] }

func (m *moment) set(do func()) { m.do.Store(&do) }

func (m *moment) comes() {
	if do := m.do.Swap(nil); do != nil {
		(*do)()
	}
}

func (a *around) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	if semantics.PartitionIn(path) == 1 {
		a.update.comes()
	}
	return a.Below.UpdateEntity(ctx, kind, path, options, names)
}

func (a *around) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	switch {
	case semantics.PartitionIn(path) == 1:
		a.create.comes()
		defer a.created.comes()
	case isDefinition(path):
		a.create.comes()
	}
	return a.Below.CreateEntity(ctx, kind, path, options)
}

func isDefinition(path string) bool {
	return semantics.IsPartition(path) && semantics.PartitionIn(path) < 0
}

func (a *around) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	a.remove.comes()
	return a.Below.DeleteEntity(ctx, kind, path)
}

func (a *around) DeleteRecord(ctx context.Context, kind semantics.Kind, name string, incarnation int64) error {
	a.remove.comes()
	return a.Below.DeleteRecord(ctx, kind, name, incarnation)
}

// wantLockDuration checks that the queue and all its partitions have the same option.
func (h *fixture) wantLockDuration(want time.Duration) {
	h.t.Helper()
	spread := h.Store.(*partitioned.Store)
	for p := range 3 {
		part, err := spread.GetEntity(h.t.Context(), semantics.QueueKind, spread.Path("orders", p))
		h.ok(err)
		if part.Options.LockDuration != want {
			h.t.Errorf("partition %d has locks of %s, the queue of %s", p, part.Options.LockDuration, want)
		}
	}
	queue, err := spread.GetEntity(h.t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same(queue.Options.LockDuration, want)
}

func (h *fixture) lockFor(d time.Duration) {
	h.t.Helper()
	_, err := h.Store.UpdateEntity(
		h.t.Context(), semantics.QueueKind, "orders", semantics.Options{LockDuration: d}, []string{"lockDuration"},
	)
	h.ok(err)
}

// Of two updates the record says which one counts, in all partitions.
func testPART_1_UpdatesAtTheSameTime(_ *testing.T, h *fixture) {
	below := &around{Below: h.below()}
	h.Store = below
	h.spread(3)
	below.update.set(func() { h.lockFor(20 * time.Second) })
	h.lockFor(10 * time.Second)
	h.wantLockDuration(20 * time.Second)
}

// An update that cannot reach a partition, and that has overtaken a later one in another, does not take that back.
func testPART_1_AnUpdateThatFailsLeavesTheLaterOne(t *testing.T, h *fixture) {
	below, _ := h.spreadOver(3)
	slow := &around{Below: withoutLast{below}}
	slow.update.set(func() { h.lockFor(20 * time.Second) })
	_, err := partitioned.New(slow).UpdateEntity(
		t.Context(), semantics.QueueKind, "orders", semantics.Options{LockDuration: 10 * time.Second}, []string{"lockDuration"},
	)
	h.same(semantics.IsOutcomeUnknown(err), true)
	h.wantLockDuration(20 * time.Second)
}

// withoutLast is a Store that cannot update the last of three partitions.
type withoutLast struct{ partitioned.Below }

func (w withoutLast) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	if semantics.PartitionIn(path) == 2 {
		return semantics.Entity{}, errFailing
	}
	return w.Below.UpdateEntity(ctx, kind, path, options, names)
}

// An update goes on without its caller, once the record has it.
func testPART_1_AnUpdateWhoseCallerGoesAway(t *testing.T, h *fixture) {
	below, _ := h.spreadOver(3)
	ctx, goAway := context.WithCancel(t.Context())
	slow := &around{Below: below}
	slow.update.set(func() {
		h.lockFor(20 * time.Second)
		goAway()
	})
	_, err := partitioned.New(slow).UpdateEntity(
		ctx, semantics.QueueKind, "orders", semantics.Options{LockDuration: 10 * time.Second}, []string{"lockDuration"},
	)
	h.ok(err)
	h.wantLockDuration(20 * time.Second)
}

// A partition that is created while the options change has the new ones.
func testPART_1_CreationDuringAnUpdate(t *testing.T, h *fixture) {
	below := &around{Below: h.below()}
	h.Store = below
	h.spread(3)
	spread := h.Store.(*partitioned.Store)
	h.ok(below.DeleteEntity(t.Context(), semantics.QueueKind, spread.Path("orders", 1)))
	below.create.set(func() { h.lockFor(20 * time.Second) })
	h.spreadAgainEnsured()
	h.wantLockDuration(20 * time.Second)
}

// spreadAgainEnsured creates what is missing of orders.
func (h *fixture) spreadAgainEnsured() {
	h.t.Helper()
	options := semantics.DefaultOptions()
	options.Partitions = 3
	_, _, err := h.Store.CreateEntity(h.t.Context(), semantics.QueueKind, "orders", options)
	h.ok(err)
}

// A deletion that cannot see what the queue is deletes nothing, because it would leave the partitions, to which other
// sidecars send.
func testPART_1_DeletionWithoutALook(t *testing.T, h *fixture) {
	gone := h.losing()
	h.spread(3)
	h.send(text("a"))
	gone.Store("orders")
	h.wantCode(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"), semantics.StoreUnavailable)
	gone.Store("")
	h.wantCounts(1, 0, 0)
}

// The same holds for a topic, and for a subscription, whose definition says what it is; also by a sidecar that knows
// nothing of the topic yet.
func testPART_8_DeletionWithoutALook(t *testing.T, h *fixture) {
	gone := h.losing()
	below := h.spreadNews(3)
	h.publishToAll(3, "a")
	knowing := h.Store.(*partitioned.Store)
	definition := knowing.Definition(news)
	for _, store := range []*partitioned.Store{knowing, partitioned.New(below)} {
		for kind, path := range map[semantics.Kind]string{semantics.TopicKind: news, semantics.SubscriptionKind: eu.Path} {
			gone.Store(news)
			if kind == semantics.SubscriptionKind && store == knowing {
				gone.Store(semantics.SubscriptionPath(definition, "eu"))
			}
			h.wantCode(store.DeleteEntity(t.Context(), kind, path), semantics.StoreUnavailable)
		}
	}
	gone.Store("")
	h.wantOfAll(eu, 3, "a")
	h.wantOfAll(us, 3, "a")
}

// noteless is a Store that keeps no notes, as a Redis that is full.
type noteless struct{ partitioned.Below }

func (noteless) NoteDeletion(context.Context, string, int64) error { return nil }

func (noteless) IsDeletionNoted(context.Context, string, int64) (bool, error) { return false, nil }

// What is deleted goes also where its deletion could not be noted.
func testPART_8_DeletionWithoutANote(t *testing.T, h *fixture) {
	h.Store = noteless{h.below()}
	below := h.spreadNews(3)
	h.publishToAll(3, "a")
	spread := h.Store.(*partitioned.Store)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.SubscriptionKind, eu.Path))
	for p := range 3 {
		roster, err := below.Roster(t.Context(), spread.Path(news, p))
		h.ok(err)
		h.same(len(roster.Subscriptions), 1)
	}
	paths := []string{spread.Path(news, 0), spread.Path(news, 2), spread.Definition(news)}
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.TopicKind, news))
	for _, path := range paths {
		h.same(semantics.CodeOf(second(below.GetEntity(t.Context(), semantics.TopicKind, path))), semantics.EntityNotFound)
	}
}

// losing lets looks at the entity with a path fail, which the result has.
func (h *fixture) losing() *atomic.Value {
	gone := &atomic.Value{}
	gone.Store("")
	h.Store = away{Below: h.below(), is: func(path string) bool { return path == gone.Load() }}
	return gone
}
