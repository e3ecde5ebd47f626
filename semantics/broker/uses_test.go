package broker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// brief is the AutoDeleteOnIdle of the queues of these tests.
const brief = semantics.MinAutoDeleteOnIdle

// noting is a Store that keeps what it is told of uses. A sidecar that fails is one that is gone as far as the store
// goes.
type noting struct {
	semantics.Store
	mu    sync.Mutex
	calls []string // of NoteUse, each "path" or "path 1s ago", in alphabetical order
	fails error
}

func (s *noting) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails
}

func (s *noting) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *noting) NoteUse(ctx context.Context, uses []semantics.Use) error {
	if err := s.failure(); err != nil {
		return err
	}
	var texts []string
	for _, use := range uses {
		text := use.Path
		if use.Ago > 0 {
			text += " " + use.Ago.String() + " ago"
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	s.mu.Lock()
	s.calls = append(s.calls, strings.Join(texts, ", "))
	s.mu.Unlock()
	return s.Store.NoteUse(ctx, uses)
}

func (s *noting) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if err := s.failure(); err != nil {
		return semantics.Batch{}, err
	}
	return s.Store.Receive(ctx, source, limit, register)
}

// told gives the calls since the last time.
func (s *noting) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// brevity is a Broker over a store that is swept, with the temporary queues "q" and "tales", which has sessions.
type brevity struct {
	*broker.Broker
	t      *testing.T
	shared *memstore.Store
	store  *noting
	began  time.Time
}

// inBrief runs a test in a bubble, where time passes only when all goroutines wait.
func inBrief(t *testing.T, test func(t *testing.T, s *brevity)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		s := &brevity{t: t, shared: shared, store: &noting{Store: shared}, began: time.Now()}
		s.Broker = broker.New(s.store)
		for _, name := range []string{"q", "tales"} {
			options := semantics.Options{AutoDeleteOnIdle: brief, RequiresSession: name == "tales"}
			if _, err := s.CreateEntity(t.Context(), semantics.QueueKind, name, options, []string{"autoDeleteOnIdle", "requiresSession"}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() {
			shared.Sweep(ctx, s.Broker)
		})
		defer func() { s.Close(); cancel(); work.Wait() }()
		test(t, s)
	})
}

// at waits until an instant, counted from the beginning.
func (s *brevity) at(d time.Duration) {
	<-time.After(time.Until(s.began.Add(d)))
	synctest.Wait()
}

// stays checks that a queue is there until an instant, and goes that it is removed then, at most a minute later.
func (s *brevity) stays(name string, until time.Duration) {
	s.t.Helper()
	s.at(until - time.Millisecond)
	if _, err := s.shared.GetEntity(s.t.Context(), semantics.QueueKind, name); err != nil {
		s.t.Fatalf("just before %s %s is gone: %v", until, name, err)
	}
}

func (s *brevity) goes(name string, at time.Duration) {
	s.t.Helper()
	s.stays(name, at)
	s.at(at + time.Minute)
	if _, err := s.shared.GetEntity(s.t.Context(), semantics.QueueKind, name); semantics.CodeOf(err) != semantics.EntityNotFound {
		s.t.Fatalf("a minute after %s %s is still there: %v", at, name, err)
	}
}

// receives waits for a message until an instant.
func (s *brevity) receives(name string, until time.Duration) {
	delivery, err := s.Receive(s.t.Context(), semantics.Source{Path: name}, broker.ReceiveOptions{MaxMessages: 1, MaxWait: time.Until(s.began.Add(until))})
	if err != nil || len(delivery.Messages) > 0 {
		s.t.Errorf("waiting for %s: %v, %v", name, delivery, err)
	}
}

func (s *brevity) subscribe(name string, credits int) *stream.Subscription {
	s.t.Helper()
	options := stream.DefaultOptions()
	options.Credits, options.MaxAutoRenew = credits, 0
	sub, err := s.Subscribe(s.t.Context(), semantics.Source{Path: name}, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

func TestIDLE_5_WaitCountsUpToItsEnd(t *testing.T) {
	t.Parallel()
	inBrief(t, func(_ *testing.T, s *brevity) {
		s.at(2 * time.Minute)
		s.receives("q", 4*time.Minute+7*time.Second)
		s.goes("q", 9*time.Minute+7*time.Second)
	})
}

func TestIDLE_5_AcceptWaitCountsUpToItsEnd(t *testing.T) {
	t.Parallel()
	inBrief(t, func(t *testing.T, s *brevity) {
		options := broker.AcceptOptions{MaxWait: 3*time.Minute + 7*time.Second}
		if a, err := s.AcceptSession(t.Context(), "tales", options); err != nil || a.Session != nil {
			t.Fatal(a, err)
		}
		s.goes("tales", 8*time.Minute+7*time.Second)
	})
}

// A stream keeps its queue although nothing comes, and although its client grants no credit.
func TestIDLE_5_OpenStreamKeeps(t *testing.T) {
	t.Parallel()
	for name, credits := range map[string]int{"paused": 0, "waiting": 1} {
		for _, queue := range []string{"q", "tales"} {
			t.Run(name+" "+queue, func(t *testing.T) {
				t.Parallel()
				inBrief(t, func(t *testing.T, s *brevity) {
					sub := s.subscribe(queue, credits)
					s.stays(queue, 3*time.Hour+7*time.Second)
					s.at(3*time.Hour + 7*time.Second)
					sub.Close(t.Context())
					s.goes(queue, 3*time.Hour+7*time.Second+brief)
				})
			})
		}
	}
}

// A sidecar that dies tells nothing any more, and what it had open counts no longer than the span.
func TestIDLE_5_DeadSidecarKeepsNothing(t *testing.T) {
	t.Parallel()
	inBrief(t, func(_ *testing.T, s *brevity) {
		sub := s.subscribe("q", 1)
		var waits sync.WaitGroup
		waits.Go(func() {
			_, err := s.Receive(s.t.Context(), semantics.Source{Path: "q"}, broker.ReceiveOptions{MaxMessages: 1, MaxWait: semantics.MaxWait})
			if err == nil {
				s.t.Error("the wait outlived its sidecar")
			}
		})
		s.stays("q", 3*time.Minute)
		s.store.fail(errors.New("dead"))
		s.at(3*time.Minute + brief + 10*time.Second)
		if _, err := s.shared.GetEntity(s.t.Context(), semantics.QueueKind, "q"); semantics.CodeOf(err) != semantics.EntityNotFound {
			s.t.Errorf("the queue is still there: %v", err)
		}
		sub.Close(s.t.Context())
		waits.Wait()
	})
}

func TestIDLE_5_UsesAreToldTogether(t *testing.T) {
	t.Parallel()
	inBrief(t, func(t *testing.T, s *brevity) {
		s.at(time.Minute)
		if calls := s.store.told(); len(calls) > 0 {
			t.Fatalf("told without a use: %q", calls)
		}
		var waits sync.WaitGroup
		for range 50 {
			waits.Go(func() { s.receives("q", time.Minute+50*time.Second) })
			waits.Go(func() { s.receives("Q", time.Minute+45*time.Second) })
		}
		s.at(time.Minute + 5*time.Second)
		sub := s.subscribe("tales", 1)
		s.receives("q", time.Minute+6*time.Second)
		s.at(2*time.Minute + 31*time.Second)
		waits.Wait()
		sub.Close(t.Context())
		s.at(10 * time.Minute)
		if want := []string{"q, tales", "q 30s ago, tales", "tales 29s ago"}; !slices.Equal(s.folded(), want) {
			t.Errorf("told %q, want %q", s.folded(), want)
		}
	})
}

// folded gives what was told, whatever the case in which the path was given first.
func (s *brevity) folded() []string {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	var calls []string
	for _, call := range s.store.calls {
		calls = append(calls, semantics.Fold(call))
	}
	return calls
}

// What could not be told is told later, with the instant at which it was.
func TestIDLE_5_UsesOfAnOutageAreToldLater(t *testing.T) {
	t.Parallel()
	inBrief(t, func(t *testing.T, s *brevity) {
		s.receives("q", 5*time.Second)
		s.store.fail(errors.New("away"))
		s.at(time.Minute + 10*time.Second)
		s.store.fail(nil)
		s.at(3 * time.Minute)
		if got, want := s.store.told(), []string{"q 1m15s ago"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// A Broker that is closed tells a last time, and then no more.
func TestIDLE_5_CloseTellsTheLastUses(t *testing.T) {
	t.Parallel()
	inBrief(t, func(t *testing.T, s *brevity) {
		s.receives("q", 7*time.Second)
		s.at(10 * time.Second)
		s.Close()
		if got, want := s.store.told(), []string{"q 3s ago"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		s.goes("q", 7*time.Second+brief)
		if got := s.store.told(); len(got) > 0 {
			t.Errorf("told after the end: %q", got)
		}
	})
}
