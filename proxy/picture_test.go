package proxy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// furniture is what furnish has put into "orders": a message in each state, by number.
type furniture struct {
	available, locked, deferred, dead int64
	scheduled                         int64
	token                             string // of locked
}

// furnish puts a message in each state into "orders".
func (s *sidecar) furnish(t *testing.T) furniture {
	t.Helper()
	for _, text := range []string{"to defer", "to dead-letter", "to lock", "available"} {
		s.send(t, text)
	}
	three := receiveNow()
	three.MaxMessages = proto.Int32(3)
	taken, err := s.messages.Receive(t.Context(), three)
	if err != nil {
		t.Fatal(err)
	}
	m := taken.GetMessages()
	if _, err := s.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, LockTokens: []string{m[0].GetLockToken()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{Source: orders, LockTokens: []string{m[1].GetLockToken()}}); err != nil {
		t.Fatal(err)
	}
	sent, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{
		{ScheduledEnqueueTime: timestamppb.New(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return furniture{
		deferred: m[0].GetSequenceNumber(), dead: m[1].GetSequenceNumber(), locked: m[2].GetSequenceNumber(),
		available: m[2].GetSequenceNumber() + 1, scheduled: sent.GetResults()[0].GetSequenceNumber(), token: m[2].GetLockToken(),
	}
}

// peek shows what is in "orders" or its dead-letter queue.
func (s *sidecar) peek(t *testing.T, subQueue sidebusv1.SubQueue_Kind) []*sidebusv1.ReceivedMessage {
	t.Helper()
	seen, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, MaxMessages: proto.Int32(250), SubQueue: subQueue})
	if err != nil {
		t.Fatal(err)
	}
	return seen.GetMessages()
}

// picture is what can be seen of a sidecar's queues without changing anything.
type picture struct {
	Counts             *sidebusv1.QueueRuntime
	Queues             *sidebusv1.ListQueuesResponse
	Messages, DeadOnes []*sidebusv1.ReceivedMessage
}

func (s *sidecar) picture(t *testing.T) picture {
	t.Helper()
	queues, err := s.admin.ListQueues(t.Context(), &sidebusv1.ListQueuesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues.GetQueues() {
		q.AccessedAt = nil // a refused call may count as use
	}
	counts := s.runtime(t)
	counts.AccessedAt = nil
	return picture{counts, queues, s.peek(t, sidebusv1.SubQueue_NONE), s.peek(t, sidebusv1.SubQueue_DEAD_LETTER)}
}

// unchanged remembers counts and messages of "orders" and the list of queues, and gives a function that compares them.
func (s *sidecar) unchanged(t *testing.T) (check func(t *testing.T)) {
	t.Helper()
	before := s.picture(t)
	return func(t *testing.T) {
		t.Helper()
		if diff := cmp.Diff(before, s.picture(t), protocmp.Transform()); diff != "" {
			t.Errorf("something changed (-before +after):\n%s", diff)
		}
	}
}
