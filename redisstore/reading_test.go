package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// reader is a sidecar that reads something for all.
type reader struct {
	t     *testing.T
	store *redisstore.Store
	reads int
}

// shared reads, where it is this sidecar's turn, what it is told.
func (r *reader) shared(text string, fails error) (value string, age time.Duration, err error) {
	r.t.Helper()
	got, age, err := r.store.Shared(r.t.Context(), "gauges", 10*time.Second, func(context.Context) ([]byte, error) {
		r.reads++
		return []byte(text), fails
	})
	return string(got), age, err
}

func (r *reader) want(text, value string, age time.Duration) {
	r.t.Helper()
	got, old, err := r.shared(text, nil)
	if err != nil || got != value || old != age {
		r.t.Errorf("got %q, %s old, %v; want %q, %s", got, old, err, value, age)
	}
}

// openReaders opens two sidecars with the same clock.
func openReaders(
	t *testing.T, open func(*testing.T, redisstore.Options) *redisstore.Store,
) (a, b *reader, clock *storetest.Clock) {
	t.Helper()
	clock = storetest.NewClock()
	options := redisstore.Options{Namespace: redistest.Namespace(), Now: clock.Now}
	return &reader{t: t, store: open(t, options)}, &reader{t: t, store: open(t, options)}, clock
}

func openUnwatched(t *testing.T, options redisstore.Options) *redisstore.Store {
	t.Helper()
	return redistest.Open(t, options)
}

// One sidecar reads for all, and another one when that is too old.
func oneSidecarReadsForAll(t *testing.T, open func(*testing.T, redisstore.Options) *redisstore.Store) {
	t.Helper()
	a, b, clock := openReaders(t, open)
	a.want("one", "one", 0)
	clock.Advance(9 * time.Second)
	b.want("two", "one", 9*time.Second)
	a.want("two", "one", 9*time.Second)
	clock.Advance(time.Second)
	b.want("two", "two", 0)
	a.want("three", "two", 0)
	if a.reads != 1 || b.reads != 1 {
		t.Errorf("they read %d and %d times", a.reads, b.reads)
	}
	clock.Advance(-time.Hour) // what is from later is not believed
	a.want("three", "three", 0)
}

// While a sidecar reads, the others have what was read before. If it does not end, another one takes over.
func TestCOMP_16_ReaderThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	a, b, clock := openReaders(t, openUnwatched)
	broken := errors.New("broken")
	if _, _, err := a.shared("", broken); !errors.Is(err, broken) {
		t.Errorf("got %v from a reader that fails", err)
	}
	if _, _, err := b.shared("no", nil); !errors.Is(err, semantics.ErrNotYet) {
		t.Errorf("got %v while another sidecar reads the first value", err)
	}
	clock.Advance(10 * time.Second)
	b.want("one", "one", 0)
	clock.Advance(10 * time.Second)
	if _, _, err := a.shared("", broken); !errors.Is(err, broken) {
		t.Errorf("got %v from a reader that fails", err)
	}
	b.want("no", "one", 10*time.Second)
	clock.Advance(9 * time.Second)
	b.want("no", "one", 19*time.Second)
	clock.Advance(time.Second)
	b.want("two", "two", 0)
}

// Names do not mix, and nothing is left when no sidecar reads any more.
func TestCOMP_16_ReadingsExpire(t *testing.T) {
	t.Parallel()
	a, _, _ := openReaders(t, openUnwatched)
	a.want("one", "one", 0)
	other, _, err := a.store.Shared(t.Context(), "other", time.Second, func(context.Context) ([]byte, error) { return []byte("x"), nil })
	if err != nil || string(other) != "x" {
		t.Errorf("got %q, %v", other, err)
	}
	a.want("two", "one", 0)
	raw := redistest.Client(t, redistest.URL(t))
	keys := raw.Keys(t.Context(), "sb:{*}:readings").Val()
	if len(keys) == 0 {
		t.Fatal("nothing is kept")
	}
	for _, key := range keys {
		if ttl := raw.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s expires in %s", key, ttl)
		}
	}
}
