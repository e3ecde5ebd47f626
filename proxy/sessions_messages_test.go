package proxy_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func TestSESS_27_InFlight(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"sessionInFlight":2`)
		w.tell(t, "s", "one", "two", "three", "four")
		held := w.next(t)
		taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: tales, SessionLockToken: &held.LockToken, MaxWait: &durationpb.Duration{}})
		if err != nil || texts(taken.GetMessages()) != "one" { // 1 when absent
			t.Fatalf("got %v, %v", taken, err)
		}
		two := w.hear(t, held, 1000)
		if texts(two) != "two" {
			t.Fatalf("received %v", two)
		}
		if got := w.hear(t, held, 1000); len(got) != 0 {
			t.Errorf("two are in flight and there came %v", got)
		}
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{ // SESS-28
			Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{taken.GetMessages()[0].GetLockToken()},
		}))
		again := w.hear(t, held, 1000)
		if texts(again) != "one" || again[0].GetDeliveryCount() != 2 {
			t.Errorf("received %v", again)
		}
		for _, m := range slices.Concat(two, again) {
			settled(t)(w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{
				Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{m.GetLockToken()},
			}))
		}
		if got := texts(w.hear(t, held, 1000)); got != "three four" {
			t.Errorf("received %q", got)
		}
	})
}

func TestMSG_19_SessionSequence(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		later := inSession("a", "a3")
		later.ScheduledEnqueueTime = w.in(time.Hour)
		if _, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: tales, Messages: []*sidebusv1.Message{
			inSession("a", "a1"), inSession("b", "b1"), later, inSession("a", "a2"),
		}}); err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{"a1": 1, "b1": 1, "a2": 2, "a3": 0}
		for _, m := range w.seen(t, sidebusv1.SubQueue_NONE) {
			if m.GetSessionSequence() != want[m.GetText()] || (m.SessionSequence == nil) != (want[m.GetText()] == 0) {
				t.Errorf("peeked %v, want %d", m, want[m.GetText()])
			}
		}
		w.clock.advance(time.Hour)
		for _, m := range w.hear(t, w.accept(t, "a"), 10) {
			if got := m.GetText()[1] - '0'; m.GetSessionSequence() != int64(got) {
				t.Errorf("received %v", m)
			}
		}
		w.put(t, inSession("a", "plain"))
		if m := w.take(t, 1)[0]; m.SessionSequence != nil || m.GetSessionId() != "a" { // SESS-9
			t.Errorf("in a plain queue: got %v", m)
		}
	})
}

func TestDEFER_7_DeferredInASession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "a", "a1", "a2", "a3")
		w.tell(t, "b", "b1")
		held, other := w.accept(t, "a"), w.accept(t, "b")
		tokens := []string{}
		for _, m := range w.hear(t, held, 2) {
			tokens = append(tokens, m.GetLockToken())
		}
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: tales, SessionLockToken: &held.LockToken, LockTokens: tokens}))
		missing := "MESSAGE_NOT_FOUND"
		for _, r := range []refusal{
			refuse("receive for another session", missing, "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: tales, SequenceNumbers: []int64{1}, SessionLockToken: &other.LockToken}),
			refuse("reactivate for another session", missing, "", reactivating, &sidebusv1.ReactivateRequest{Source: tales, SequenceNumbers: []int64{1}, SessionLockToken: &other.LockToken}),
			refuse("receive for none", "SESSION_REQUIRED", "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: tales, SequenceNumbers: []int64{1}}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.messages) })
		}
		taken, err := w.messages.ReceiveDeferred(t.Context(), &sidebusv1.ReceiveDeferredRequest{
			Source: tales, SequenceNumbers: []int64{2}, SessionLockToken: &held.LockToken, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
		})
		if err != nil || texts(taken.GetMessages()) != "a2" {
			t.Errorf("got %v, %v", taken, err)
		}
		eventually(t, "a2 is gone", func() bool { return w.row(t, "a").GetDeferredCount()+w.row(t, "a").GetLockedCount() == 1 })
		for _, lock := range []*string{&held.LockToken, nil} { // needs no lock, but checks one that is given
			if _, err := w.messages.Reactivate(t.Context(), &sidebusv1.ReactivateRequest{Source: tales, SequenceNumbers: []int64{1}, SessionLockToken: lock}); err != nil {
				t.Fatal(err)
			}
			got := w.hear(t, held, 1)
			if texts(got) != "a1" {
				t.Fatalf("received %v, want a1 at its old place", got)
			}
			settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{got[0].GetLockToken()}}))
		}
	})
}

func TestSETTLE_11_SkipOrder(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "one", "two", "three")
		held := w.next(t)
		abandon := func(m *sidebusv1.ReceivedMessage, skips bool) {
			t.Helper()
			settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{
				Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{m.GetLockToken()},
				Delay: durationpb.New(10 * time.Second), SkipOrder: skips,
			}))
		}
		abandon(w.hear(t, held, 1)[0], true)
		two := w.hear(t, held, 1)
		if texts(two) != "two" {
			t.Fatalf("received %v, want the one behind", two)
		}
		abandon(two[0], false)
		if got := w.hear(t, held, 10); len(got) != 0 {
			t.Errorf("received %v behind a delayed message", got)
		}
		w.clock.advance(10 * time.Second)
		if got := texts(w.hear(t, held, 10)); got != "one two three" {
			t.Errorf("received %q", got)
		}
	})
}

func TestSESS_39_PeekInOneSession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "a", "a1", "a2")
		w.tell(t, "b", "b1")
		w.tell(t, "a", "a3")
		held := w.accept(t, "a")
		w.hear(t, held, 1)
		peek := func(request *sidebusv1.PeekRequest) []*sidebusv1.ReceivedMessage {
			t.Helper()
			request.Source, request.MaxMessages = tales, proto.Int32(10)
			peeked, err := w.messages.Peek(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			return peeked.GetMessages()
		}
		if got := texts(peek(&sidebusv1.PeekRequest{})); got != "a1 a2 b1 a3" { // PEEK-8
			t.Errorf("all: got %q", got)
		}
		for name, request := range map[string]*sidebusv1.PeekRequest{
			"by name": {SessionId: proto.String("a")}, "by lock": {SessionLockToken: &held.LockToken},
		} {
			got := peek(proto.CloneOf(request))
			if texts(got) != "a1 a2 a3" || !got[0].GetLocked() || got[1].GetLocked() || got[0].LockToken != nil {
				t.Errorf("%s: got %v", name, got)
			}
			from := proto.CloneOf(request)
			from.FromSequenceNumber, from.Include = proto.Int64(2), []sidebusv1.PeekRequest_Include{sidebusv1.PeekRequest_AVAILABLE}
			if got := texts(peek(from)); got != "a2 a3" {
				t.Errorf("%s, from 2: got %q", name, got)
			}
		}
		if got := peek(&sidebusv1.PeekRequest{SessionId: proto.String("A")}); len(got) != 0 {
			t.Errorf("another session: got %v", got)
		}
	})
}

func TestPURGE_7_PurgeOneSession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "a", "a1", "a2", "a3")
		w.tell(t, "b", "b1")
		held := w.accept(t, "a")
		taken := w.hear(t, held, 2)
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{taken[0].GetLockToken()}}))
		w.clock.advance(time.Millisecond)
		purge := func(request *sidebusv1.PurgeRequest, want int64) {
			t.Helper()
			request.Source = tales
			purged, err := w.messages.Purge(t.Context(), request)
			if err != nil || purged.GetDeleted() != want || purged.GetMore() {
				t.Errorf("%v: got %v, %v, want %d", request, purged, err, want)
			}
		}
		purge(&sidebusv1.PurgeRequest{SessionId: proto.String("nobody")}, 0)
		purge(&sidebusv1.PurgeRequest{SessionLockToken: &held.LockToken}, 1)
		purge(&sidebusv1.PurgeRequest{SessionId: proto.String("a"), Include: []sidebusv1.PurgeRequest_Include{sidebusv1.PurgeRequest_DEFERRED}}, 1)
		if got := texts(w.seen(t, sidebusv1.SubQueue_NONE)); got != "a2 b1" {
			t.Errorf("left: %q, want the locked one and that of the other session", got)
		}
		purge(&sidebusv1.PurgeRequest{}, 1)
		for name, request := range map[string]*sidebusv1.PurgeRequest{
			"by name": {SessionId: proto.String("a")}, "by lock": {SessionLockToken: &held.LockToken},
		} {
			request.Source, request.Include = tales, []sidebusv1.PurgeRequest_Include{sidebusv1.PurgeRequest_DEAD_LETTER}
			refuse(name, "INVALID_ARGUMENT", "include", purging, request).check(t, w.messages)
		}
	})
}

// The token of another session's message does nothing, in its row only (SETTLE-2).
func TestSETTLE_2_TokenOfAnotherSession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "a", "a1", "a2", "a3", "a4", "a5")
		w.tell(t, "b", "b1")
		held, other := w.accept(t, "a"), w.accept(t, "b")
		foreign := w.hear(t, other, 1)[0].GetLockToken()
		for _, verb := range []string{"complete", "abandon", "defer", "release", "dead-letter"} {
			own := w.hear(t, held, 1)[0].GetLockToken()
			response, err := settlements(w, foreign, own)[verb](t.Context(), &held.LockToken)
			if err != nil || response.GetResults()[0].GetReason() != "MESSAGE_LOCK_LOST" || response.GetResults()[1].Reason != nil {
				t.Errorf("%s: got %v, %v", verb, response, err)
			}
		}
		if m := w.row(t, "b"); m.GetLockedCount() != 1 {
			t.Errorf("got %v", m)
		}
	})
}

// SESS-34: dead letters belong to no session, they are received plainly, and sent again come at the end.
func TestDLQ_23_DeadLettersOfASession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "bad", "good")
		held := w.next(t)
		dead := w.hear(t, held, 1)[0].GetLockToken()
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{dead}}))
		const letters = sidebusv1.SubQueue_DEAD_LETTER
		taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: tales, SubQueue: letters, MaxWait: &durationpb.Duration{}})
		if err != nil || len(taken.GetMessages()) != 1 || taken.GetMessages()[0].GetSessionId() != "s" || taken.GetMessages()[0].GetSessionSequence() != 1 {
			t.Fatalf("got %v, %v", taken, err)
		}
		token := taken.GetMessages()[0].GetLockToken()
		no := "SESSION_NOT_SUPPORTED"
		for _, r := range []refusal{
			refuse("receive", no, "", sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: tales, SubQueue: letters, SessionLockToken: &held.LockToken}),
			refuse("complete", no, "", sidebusv1.MessagesClient.Complete, &sidebusv1.CompleteRequest{Source: tales, SubQueue: letters, SessionLockToken: &held.LockToken, LockTokens: []string{token}}),
			refuse("peek", no, "", peeking, &sidebusv1.PeekRequest{Source: tales, SubQueue: letters, SessionId: proto.String("s")}),
			refuse("purge", no, "", purging, &sidebusv1.PurgeRequest{Source: tales, SubQueue: letters, SessionId: proto.String("s")}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.messages) })
		}
		settled(t)(w.messages.Release(t.Context(), &sidebusv1.ReleaseRequest{Source: tales, SubQueue: letters, LockTokens: []string{token}}))
		resent, err := w.messages.Resubmit(t.Context(), &sidebusv1.ResubmitRequest{Source: tales})
		if err != nil || len(resent.GetResults()) != 1 || resent.GetResults()[0].Reason != nil {
			t.Fatalf("got %v, %v", resent, err)
		}
		got := w.hear(t, held, 10)
		if texts(got) != "good bad" || got[1].GetSessionSequence() != 3 {
			t.Errorf("received %v", got)
		}

		w.put(t, text("without a session"))
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{Source: orders, LockTokens: []string{w.take(t, 1)[0].GetLockToken()}}))
		refused, err := w.messages.Resubmit(t.Context(), &sidebusv1.ResubmitRequest{Source: orders, Target: tales})
		if err != nil || len(refused.GetResults()) != 1 || refused.GetResults()[0].GetReason() != "SESSION_ID_MISSING" {
			t.Errorf("got %v, %v", refused, err)
		}
	})
}
