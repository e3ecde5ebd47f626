package proxy_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// A message that was peeked or received in RECEIVE_AND_DELETE mode has no token, and what it has instead renews
// nothing.
func TestLOCK_4_NoRenewWithoutToken(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		w.put(t, text("to delete"))
		renew := func(subQueue sidebusv1.SubQueue_Kind, tokens ...string) refusal {
			return refuse("renew", "INVALID_OPERATION", "lockTokens", sidebusv1.MessagesClient.RenewLocks,
				&sidebusv1.RenewLocksRequest{Source: orders, SubQueue: subQueue, LockTokens: tokens})
		}
		tokenless := map[sidebusv1.SubQueue_Kind][]*sidebusv1.ReceivedMessage{}
		for _, subQueue := range []sidebusv1.SubQueue_Kind{sidebusv1.SubQueue_NONE, sidebusv1.SubQueue_DEAD_LETTER} {
			peeked, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, SubQueue: subQueue, MaxMessages: proto.Int32(250)})
			if err != nil {
				t.Fatal(err)
			}
			taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
				Source: orders, SubQueue: subQueue, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE, MaxWait: &durationpb.Duration{},
			})
			if err != nil || len(taken.GetMessages()) != 1 {
				t.Fatalf("receive and delete: got %v, %v", taken, err)
			}
			tokenless[subQueue] = slices.Concat(peeked.GetMessages(), taken.GetMessages())
		}
		// one in each state, "to delete", and what was deleted
		if n := len(tokenless[sidebusv1.SubQueue_NONE]); n != 6 {
			t.Fatalf("%d messages, want 6", n)
		}
		eventually(t, "two are deleted", func() bool { return w.runtime(t).GetTotalMessageCount() == 4 })

		w.clock.advance(30 * time.Second) // half the lock
		check := w.unchanged(t)
		for subQueue, messages := range tokenless {
			for _, m := range messages {
				if m.LockToken != nil {
					t.Errorf("message %d has token %s", m.GetSequenceNumber(), m.GetLockToken())
				}
				renew(subQueue, m.GetLockToken()).check(t, w.messages)
			}
		}
		renew(sidebusv1.SubQueue_NONE, there.token, "").check(t, w.messages) // refused whole
		check(t)
		w.clock.advance(30 * time.Second)
		renewed, err := w.messages.RenewLocks(t.Context(), &sidebusv1.RenewLocksRequest{Source: orders, LockTokens: []string{there.token}})
		if err != nil || renewed.GetResults()[0].GetReason() != "MESSAGE_LOCK_LOST" {
			t.Errorf("the lock was extended: got %v, %v", renewed, err)
		}
	})
}
