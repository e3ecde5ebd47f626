package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Every rule that holds on memstore holds on Redis. While the rules are tried out, the scripts are watched: see
// watchScripts.
func TestStore(t *testing.T) {
	t.Parallel()
	watch := watchScripts(t)
	open := func(t *testing.T, options redisstore.Options) *redisstore.Store {
		t.Helper()
		s := redistest.Open(t, options)
		watch.Watch(s)
		return s
	}
	t.Run("WholeSweep", func(t *testing.T) {
		t.Parallel()
		wholeSweep(t, open)
	})
	t.Run("COMP_16_OneSidecarReadsForAll", func(t *testing.T) {
		t.Parallel()
		oneSidecarReadsForAll(t, open)
	})
	t.Run("DUR_4_HistoryOfAPartition", func(t *testing.T) {
		t.Parallel()
		historyOfAPartition(t, open(t, redisstore.Options{}))
	})
	t.Run("LostAnswer", func(t *testing.T) {
		t.Parallel()
		lostAnswer(t, open(t, redisstore.Options{}))
	})
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		clock := storetest.NewClock()
		options := redisstore.Options{Now: clock.Now, Namespace: redistest.NamespaceUntil(t, redistest.URL(t)), Orphaned: func(entity string, positions []int64) {
			t.Errorf("%s: positions %v without messages, though nobody has meddled with the keys", entity, positions)
		}}
		ledger := redistest.NewLedger(clock.Now)
		auditor := audit.New(rawClient(t), options.Namespace).With(ledger)
		keep := func() semantics.Store { return ledger.Keep(open(t, options)) }
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
				return open(t, redisstore.Options{Now: clock.Now, TopicLimits: limits})
			},
			Reference: storetest.Memory,
			Audit:     func(path string) error { return auditor.Audit(context.WithoutCancel(t.Context()), path) },
		}
	})
}

// lostAnswer receives in a session after an answer with locks was lost: a script of a store that no rule runs.
func lostAnswer(t *testing.T, s *redisstore.Store) {
	t.Helper()
	ctx, options := t.Context(), semantics.DefaultOptions()
	options.RequiresSession = true
	if _, _, err := s.CreateEntity(ctx, semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(ctx, "orders", []*semantics.Message{part("a", "1"), part("a", "2")}); err != nil {
		t.Fatal(err)
	}
	session, err := s.AcceptSession(ctx, "orders", "a")
	if err != nil {
		t.Fatal(err)
	}
	source := semantics.Source{Path: "orders", SessionLock: session.Lock}
	for range 2 {
		got, err := s.Receive(ctx, source, 1, semantics.RegisterNever)
		if err != nil || len(got.Messages) != 1 || got.Messages[0].MessageID != "1" || got.Messages[0].DeliveryCount != 1 {
			t.Fatalf("got %+v, %v, want message 1 for the first time", got.Messages, err)
		}
		s.NoteUnanswered(source, got.Messages[0].LockToken)
	}
}

// wholeSweep looks at all entities, one of which has got something from another one that is gone since: the scripts of
// a store that no rule runs.
func wholeSweep(t *testing.T, open func(*testing.T, redisstore.Options) *redisstore.Store) {
	clock := storetest.NewClock()
	s := open(t, redisstore.Options{Now: clock.Now})
	options := semantics.DefaultOptions()
	must(t, makeQueue(t, s, "archive"))
	options.ForwardTo = "archive"
	_, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	must(t, err)
	broker := brokerOver(s)
	defer broker.Close()
	_, err = s.Send(t.Context(), "orders", messagesOf(1, semantics.Message{}))
	must(t, err)
	must(t, s.SweepOnce(t.Context(), broker))
	for _, after := range []time.Duration{0, 2 * time.Hour} {
		if after > 0 {
			must(t, s.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		}
		clock.Advance(after)
		_, err = s.LookOnce(t.Context(), broker, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
		must(t, err)
	}
}
