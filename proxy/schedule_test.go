package proxy_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func (w *wire) in(d time.Duration) *timestamppb.Timestamp {
	return timestamppb.New(w.clock.Now().Add(d))
}

func TestSCHED_2_StoredUntilDue(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		due := w.in(time.Hour)
		later := text("later")
		later.ScheduledEnqueueTime = due
		sent := w.put(t, later, text("now"))
		if sent[0].GetSequenceNumber() == 0 || sent[0].GetDeduplicated() {
			t.Errorf("got %v", sent)
		}
		if got := texts(w.take(t, 10)); got != "now" {
			t.Errorf("received %q", got)
		}
		if counts := w.runtime(t); counts.GetScheduledMessageCount() != 1 || counts.GetActiveMessageCount() != 1 || counts.GetTotalMessageCount() != 2 {
			t.Errorf("got %v", counts)
		}
		seen, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, Include: []sidebusv1.PeekRequest_Include{sidebusv1.PeekRequest_SCHEDULED}})
		if err != nil || len(seen.GetMessages()) != 1 {
			t.Fatalf("got %v, %v", seen, err)
		}
		m := seen.GetMessages()[0]
		if m.GetState() != sidebusv1.ReceivedMessage_SCHEDULED || !proto.Equal(m.GetVisibleAt(), due) || !proto.Equal(m.GetScheduledEnqueueTime(), due) {
			t.Errorf("got %v", m)
		}

		w.clock.advance(time.Hour)
		taken := w.take(t, 10) // the other's lock has ended too
		if len(taken) != 2 || taken[1].GetText() != "later" {
			t.Fatalf("got %v", taken)
		}
		m = taken[1]
		if m.GetState() != sidebusv1.ReceivedMessage_ACTIVE || !proto.Equal(m.GetScheduledEnqueueTime(), due) || m.VisibleAt != nil ||
			m.GetSequenceNumber() <= sent[1].GetSequenceNumber() || m.GetEnqueuedTime().AsTime().Before(due.AsTime()) {
			t.Errorf("after activation (SCHED-3, MSG-7): got %v", m)
		}
	})
}

func TestSCHED_4_PastIsNow(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		// the last is the first of year 1
		past := []*timestamppb.Timestamp{w.in(0), w.in(-time.Hour), timestamppb.New(time.Unix(0, 0)), {Seconds: -62135596800}}
		for _, at := range past {
			w.put(t, &sidebusv1.Message{ScheduledEnqueueTime: at})
		}
		if taken := w.take(t, 10); len(taken) != len(past) {
			t.Errorf("received %d of %d: %v", len(taken), len(past), taken)
		}
	})
}

func TestSCHED_5_CancelIsAllOrNone(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		later := &sidebusv1.Message{ScheduledEnqueueTime: w.in(time.Hour)}
		sent := w.put(t, later, later, later, text("active"))
		number := func(i int) int64 { return sent[i].GetSequenceNumber() }
		check := w.unchanged(t)
		for _, missing := range []int64{number(3), 99} { // active, unknown
			_, err := w.messages.CancelScheduled(t.Context(), &sidebusv1.CancelScheduledRequest{Target: orders, SequenceNumbers: []int64{number(0), missing, missing}})
			if info := infoOf(t, err); info.GetReason() != "MESSAGE_NOT_FOUND" || info.GetMetadata()["sequenceNumbers"] == "" {
				t.Errorf("%d: got %v", missing, info)
			}
		}
		check(t)
		cancelled, err := w.messages.CancelScheduled(t.Context(), &sidebusv1.CancelScheduledRequest{Target: orders, SequenceNumbers: []int64{number(0), number(2), number(0)}})
		if err != nil || cancelled.GetCancelled() != 2 {
			t.Errorf("got %v, %v, want 2", cancelled, err)
		}
		_, err = w.messages.CancelScheduled(t.Context(), &sidebusv1.CancelScheduledRequest{Target: orders, SequenceNumbers: []int64{number(0)}})
		if infoOf(t, err).GetReason() != "MESSAGE_NOT_FOUND" {
			t.Errorf("a second time: got %v", err)
		}
		if n := w.runtime(t).GetScheduledMessageCount(); n != 1 {
			t.Errorf("%d are left, want 1", n)
		}
	})
}

func TestSCHED_8_CancelByMessageID(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		later := func(id string) *sidebusv1.Message {
			return &sidebusv1.Message{MessageId: &id, ScheduledEnqueueTime: w.in(time.Hour)}
		}
		w.put(t, later("a"), later("a"), later("b"), later("c"))
		cancelled, err := w.messages.CancelScheduled(t.Context(), &sidebusv1.CancelScheduledRequest{Target: orders, MessageIds: []string{"a", "b", "nobody's"}})
		if err != nil || cancelled.GetCancelled() != 3 {
			t.Errorf("got %v, %v, want 3", cancelled, err)
		}
		_, err = w.messages.CancelScheduled(t.Context(), &sidebusv1.CancelScheduledRequest{Target: orders, MessageIds: []string{"a", "nobody's"}})
		if infoOf(t, err).GetReason() != "MESSAGE_NOT_FOUND" {
			t.Errorf("a second time: got %v", err)
		}
	})
}

func TestMSG_16_PriorityIsIgnored(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		for _, priority := range []int32{1, 9, 0, -1, 1 << 30} {
			m := text("x")
			m.Priority = &priority
			w.put(t, m)
		}
		for i, m := range w.take(t, 10) {
			if m.GetSequenceNumber() != int64(i+1) {
				t.Errorf("number %d came as %d", m.GetSequenceNumber(), i+1)
			}
		}
	})
	s := start(t, newSpyStore())
	s.post(t, "send", `{"messages":[{"priority":5},{"priority":"5"},{"priority":null}]}`)
}

func TestDUP_7_DuplicateAnswersWithTheOriginal(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		const dedup = "queues/dedup"
		mustPut(t, w.sidecar, "/v1/"+dedup, `{"requiresDuplicateDetection":true}`)
		send := func(ids ...string) []*sidebusv1.SendResponse_Result {
			request := &sidebusv1.SendRequest{Target: dedup}
			for _, id := range ids {
				request.Messages = append(request.Messages, &sidebusv1.Message{MessageId: &id})
			}
			sent, err := w.messages.Send(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			return sent.GetResults()
		}
		first := send("a")[0]
		batch := send("b", "a", "b", "c") // DUP-8
		want := []*sidebusv1.SendResponse_Result{
			{SequenceNumber: 2, MessageId: "b"},
			{SequenceNumber: first.GetSequenceNumber(), MessageId: "a", Deduplicated: true},
			{SequenceNumber: 2, MessageId: "b", Deduplicated: true},
			{SequenceNumber: 3, MessageId: "c"},
		}
		for i := range want {
			if !proto.Equal(batch[i], want[i]) {
				t.Errorf("row %d: got %v, want %v", i, batch[i], want[i])
			}
		}
		w.clock.advance(10 * time.Minute) // DUP-4
		if again := send("a")[0]; again.GetDeduplicated() {
			t.Errorf("after the window: got %v", again)
		}
		w.eventuallyCounts(t, 4, "sidebus_messages_sent_total")
		w.eventuallyCounts(t, 2, "sidebus_messages_deduplicated_total")
	})
}
