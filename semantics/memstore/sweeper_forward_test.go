package memstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// forwarding makes queues of which each forwards to the next. The last one is the subscription "all" of the topic a.
func (s *swept) forwarding(queues ...string) {
	s.t.Helper()
	for i := len(queues) - 1; i >= 0; i-- {
		to := "a"
		if i < len(queues)-1 {
			to = queues[i+1]
		}
		options := semantics.Options{ForwardTo: to, LockDuration: 5 * time.Second}
		s.must(s.CreateEntity(s.t.Context(), semantics.QueueKind, queues[i], options, []string{"forwardTo", "lockDuration"}))
	}
}

func (s *swept) send(queue string, m *semantics.Message) {
	s.t.Helper()
	if _, err := s.Send(s.t.Context(), semantics.ToQueue(queue), []*semantics.Message{m}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *swept) update(queue string, options semantics.Options, name string) {
	s.t.Helper()
	s.must(s.UpdateEntity(s.t.Context(), semantics.QueueKind, queue, options, []string{name}))
}

func TestFWD_1_SweepForwardsAtOnce(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		s.forwarding("x", "y", "z")
		s.wantAt(10*time.Second, "a")
		s.send("x", &semantics.Message{MessageID: "1"})
		s.wantAt(10*time.Second, "a", "1")
		s.send("y", &semantics.Message{MessageID: "2"})
		s.wantAt(10*time.Second, "a", "1", "2")
		if want := []string{"x 10s", "y 10s", "z 10s", "y 10s", "z 10s"}; !slices.Equal(s.calls, want) {
			t.Errorf("it was asked for %q, want %q", s.calls, want)
		}
	})
}

// Nobody looks at the queue, so whoever sweeps must see what time makes available.
func TestFWD_1_SweepForwardsWhenItIsTime(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		s.forwarding("x")
		s.update("x", semantics.Options{}, "forwardTo")
		for _, id := range []string{"lock ends", "delay ends"} {
			s.send("x", &semantics.Message{MessageID: id})
		}
		delivery, err := s.Receive(t.Context(), semantics.Source{Path: "x"}, broker.ReceiveOptions{MaxMessages: 2})
		if err != nil {
			t.Fatal(err)
		}
		delay := 2 * time.Hour
		delayed := []semantics.LockToken{delivery.Messages[1].LockToken}
		if _, err := s.Abandon(t.Context(), delivery.Source(), delayed, semantics.AbandonOptions{Delay: &delay}); err != nil {
			t.Fatal(err)
		}
		s.update("x", semantics.Options{ForwardTo: "a"}, "forwardTo")
		s.send("x", &semantics.Message{MessageID: "scheduled", ScheduledAt: s.began.Add(3 * time.Second)})
		s.wantAt(3*time.Second-time.Millisecond, "a")
		s.wantAt(3*time.Second, "a", "scheduled")
		s.wantAt(5*time.Second-time.Millisecond, "a", "scheduled")
		s.wantAt(5*time.Second, "a", "scheduled", "lock ends")
		s.wantAt(2*time.Hour-time.Millisecond, "a", "scheduled", "lock ends")
		s.wantAt(2*time.Hour, "a", "scheduled", "lock ends", "delay ends")
	})
}

func TestFWD_9_SweepForwardsDeadLetters(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		options := semantics.Options{ForwardDeadLetteredMessagesTo: "a", DeadLetteringOnMessageExpiration: true}
		names := []string{"forwardDeadLetteredMessagesTo", "deadLetteringOnMessageExpiration"}
		s.must(s.CreateEntity(t.Context(), semantics.QueueKind, "x", options, names))
		ttl := 3 * time.Second
		s.send("x", &semantics.Message{MessageID: "expired", TimeToLive: &ttl})
		s.wantAt(3*time.Second-time.Millisecond, "a")
		s.wantAt(3*time.Second, "a", "expired")
		sub := semantics.SubscriptionPath("b", "lost")
		s.must(s.CreateEntity(t.Context(), semantics.SubscriptionKind, sub, options, names))
		s.wantAt(5*time.Second, "a", "expired")
		m := &semantics.Message{MessageID: "unseen", TimeToLive: &ttl}
		if _, err := s.Send(t.Context(), semantics.ToTopic("b"), []*semantics.Message{m}); err != nil {
			t.Fatal(err)
		}
		s.wantAt(8*time.Second-time.Millisecond, "a") // the first has expired again, since its new life was as long
		s.wantAt(8*time.Second, "a", "unseen")
	})
}

func TestFWD_1_SweepForwardsWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		s.must(s.CreateEntity(t.Context(), semantics.QueueKind, "x", semantics.Options{}, nil))
		s.send("x", &semantics.Message{MessageID: "1"})
		s.wantAt(time.Hour, "a")
		s.update("x", semantics.Options{ForwardTo: "a"}, "forwardTo")
		s.wantAt(time.Hour, "a", "1")
	})
}

func TestFWD_8_SweepTriesAgain(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		s.forwarding("x", "y")
		failures := 3
		s.fails = func(path string) error {
			if path == "x" && failures > 0 {
				failures--
				return errors.New("away")
			}
			return nil
		}
		s.wantAt(time.Second, "a") // it waits
		s.send("x", &semantics.Message{MessageID: "1"})
		s.wantAt(4*time.Second-time.Millisecond, "a")
		s.wantAt(4*time.Second, "a", "1")
		if len(s.calls) != 5 {
			t.Errorf("it was asked for %q", s.calls)
		}
	})
}

func TestTOPIC_3_SweepForwardsUnmatched(t *testing.T) {
	t.Parallel()
	sweeping(t, func(s *swept) {
		options := semantics.Options{UnmatchedTo: "a"}
		s.must(s.CreateEntity(t.Context(), semantics.TopicKind, "c", options, []string{"unmatchedTo"}))
		s.schedule("c", "1", time.Second)
		s.wantAt(time.Second, "a", "1")
	})
}
