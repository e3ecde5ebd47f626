package memstore_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Memory)
}

// The store against itself shows that the model test asks for nothing that is left open.
func TestModelAgainstItself(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, func(*testing.T) storetest.Pair {
		clock := storetest.NewClock()
		return storetest.Pair{
			Reference: memstore.New(memstore.WithClock(clock.Now)),
			Subject:   memstore.New(memstore.WithClock(clock.Now)),
			Advance:   clock.Advance,
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	health, err := memstore.New().Check(t.Context())
	if err != nil || health.Store != "memory" || len(health.Warnings) == 0 {
		t.Errorf("Check() = %+v, %v, want a warning that it forgets", health, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := memstore.New().Check(ended); semantics.CodeOf(err) != semantics.Cancelled {
		t.Errorf("Check with an ended context: got %v, want %s", err, semantics.Cancelled)
	}
}

func TestClockIsCutToMilliseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, time.FixedZone("", 3600))
	store := memstore.New(memstore.WithClock(func() time.Time { return at }))
	queue, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.DefaultOptions())
	if want := at.Truncate(time.Millisecond).UTC(); err != nil || queue.CreatedAt != want {
		t.Errorf("CreatedAt = %v, %v, want %v", queue.CreatedAt, err, want)
	}
}

func TestExpiryAfterTheLastYearIsNever(t *testing.T) {
	t.Parallel()
	at := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	store := memstore.New(memstore.WithClock(func() time.Time { return at }))
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	last, beyond := time.Second-time.Millisecond, time.Second
	if _, err := store.Send(t.Context(), "q", []*semantics.Message{{TimeToLive: &last}, {TimeToLive: &beyond}}); err != nil {
		t.Fatal(err)
	}
	got, err := store.Peek(t.Context(), semantics.Source{Path: "q"}, 0, 2, semantics.ShowAll)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].ExpiresAt != at.Add(last) || !got[1].ExpiresAt.IsZero() || got[1].TimeToLive != nil {
		t.Errorf("ExpiresAt = %v and %v (ttl %v), want the last millisecond and never", got[0].ExpiresAt, got[1].ExpiresAt, got[1].TimeToLive)
	}
}

// Two Brokers whose rooms stand empty must not pass a wake-up to and fro for ever: PassOn wakes only when a receive has
// registered since the last wake-up.
func TestPassOnEnds(t *testing.T) {
	t.Parallel()
	store, source := memstore.New(), semantics.Source{Path: "q"}
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	w, err := store.Watch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := store.Receive(t.Context(), source, 1, semantics.RegisterIfEmpty); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Send(t.Context(), "q", []*semantics.Message{{}}); err != nil {
		t.Fatal(err)
	}
	<-w.C()
	if err := store.PassOn(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-w.C():
		t.Errorf("PassOn woke with %d although nobody registered again", n)
	default:
	}
}

func TestIDLE_8_ModelOverPartitions(t *testing.T) {
	t.Parallel()
	storetest.RunIdleModel(t, storetest.Memory)
}
