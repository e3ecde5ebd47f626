package memstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// swept is a Broker with the topics a and b, each with a subscription "all", over a store that is swept.
type swept struct {
	*broker.Broker

	t     *testing.T
	calls []string                // what was asked for: path and second
	fails func(path string) error // nil: it is done
	began time.Time
	end   func() // ends Sweep and waits for it
}

// sweeping runs a test in a bubble, where time passes only when all goroutines wait.
func sweeping(t *testing.T, test func(s *swept)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		s := &swept{t: t, Broker: broker.New(store, broker.WithRules(filter.Compile)), began: time.Now()}
		defer s.Close()
		for _, topic := range []string{"a", "b"} {
			s.must(s.CreateEntity(t.Context(), semantics.TopicKind, topic, semantics.Options{}, nil))
			s.must(s.CreateEntity(t.Context(), semantics.SubscriptionKind, topic+"/Subscriptions/all", semantics.Options{}, nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			store.Sweep(ctx, s)
		}()
		s.end = func() { cancel(); <-done }
		test(s)
		s.end()
	})
}

func (s *swept) must(_ semantics.Entity, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *swept) ActivateDue(ctx context.Context, topic string) error {
	return s.asked(topic, func() error { return s.Broker.ActivateDue(ctx, topic) })
}

func (s *swept) Forward(ctx context.Context, source semantics.Source) error {
	return s.asked(source.String(), func() error { return s.Broker.Forward(ctx, source) })
}

func (s *swept) asked(path string, do func() error) error {
	s.calls = append(s.calls, path+" "+time.Since(s.began).String())
	if s.fails != nil {
		if err := s.fails(path); err != nil {
			return err
		}
	}
	return do()
}

// schedule sends a message to a topic for an instant, counted from the beginning.
func (s *swept) schedule(topic, id string, at time.Duration) {
	s.t.Helper()
	m := &semantics.Message{MessageID: id, ScheduledAt: s.began.Add(at)}
	if _, err := s.Send(s.t.Context(), semantics.ToTopic(topic), []*semantics.Message{m}); err != nil {
		s.t.Fatal(err)
	}
}

// wantAt lets time pass until an instant and checks which messages a topic's subscription has then.
func (s *swept) wantAt(at time.Duration, topic string, want ...string) {
	s.t.Helper()
	<-time.After(time.Until(s.began.Add(at)))
	synctest.Wait()
	rows, err := s.Peek(s.t.Context(), semantics.Source{Path: topic + "/Subscriptions/all"}, 0, 100, semantics.ShowAll)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row.MessageID)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("after %s %s has %q, want %q", at, topic, got, want)
	}
}

func TestSCHED_6_SweepActivatesOnTime(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		s.schedule("a", "10 s", 10*time.Second)
		s.schedule("b", "3 h", 3*time.Hour) // beyond the longest pause
		s.schedule("a", "12 s", 12*time.Second)
		s.wantAt(10*time.Second-time.Millisecond, "a")
		s.wantAt(10*time.Second, "a", "10 s")
		s.schedule("b", "11 s", 11*time.Second) // before what it waits for
		s.wantAt(11*time.Second, "b", "11 s")
		s.wantAt(12*time.Second, "a", "10 s", "12 s")
		s.wantAt(3*time.Hour-time.Millisecond, "b", "11 s")
		s.wantAt(3*time.Hour, "b", "11 s", "3 h")
		if want := []string{"a 10s", "b 11s", "a 12s", "b 3h0m0s"}; !slices.Equal(s.calls, want) {
			t.Errorf("activations were asked for at %q, want %q", s.calls, want)
		}
	})
}

func TestSCHED_6_SweepTriesAgain(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		failures := 3
		s.fails = func(topic string) error {
			if topic == "a" && failures > 0 {
				failures--
				return errors.New("away")
			}
			return nil
		}
		s.schedule("a", "1", 10*time.Second)
		s.schedule("b", "1", 10*time.Second)
		s.wantAt(10*time.Second, "b", "1") // which another one's failure does not hold up
		s.wantAt(13*time.Second-time.Millisecond, "a")
		s.wantAt(13*time.Second, "a", "1")
	})
}

func TestSCHED_6_SweepEnds(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		s.schedule("a", "1", 10*time.Second)
		s.end()
		s.wantAt(time.Minute, "a")
		if len(s.calls) != 0 {
			t.Errorf("activations were asked for: %q", s.calls)
		}
	})
}
