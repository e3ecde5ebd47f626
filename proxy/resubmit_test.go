package proxy_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// deadLetter sends messages to a queue and dead-letters them.
func (w *wire) deadLetter(t *testing.T, queue string, messages ...*sidebusv1.Message) {
	t.Helper()
	if _, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: queue, Messages: messages}); err != nil {
		t.Fatal(err)
	}
	taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: queue, MaxMessages: proto.Int32(1000), MaxWait: &durationpb.Duration{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range taken.GetMessages() {
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
			Source: queue, LockTokens: []string{m.GetLockToken()}, Reason: proto.String("broken"),
		}))
	}
}

func (w *wire) resubmit(t *testing.T, request *sidebusv1.ResubmitRequest) *sidebusv1.ResubmitResponse {
	t.Helper()
	resubmitted, err := w.messages.Resubmit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return resubmitted
}

// rows shows the rows of an answer.
func rows(response *sidebusv1.ResubmitResponse) (old []int64, reasons string) {
	all := make([]string, len(response.GetResults()))
	for i, r := range response.GetResults() {
		old = append(old, r.GetSequenceNumber())
		all[i] = r.GetReason()
		if (r.Reason == nil) != (r.NewSequenceNumber != nil) {
			all[i] += "?"
		}
	}
	return old, strings.Join(all, ",")
}

func TestDLQ_22_ResubmitChooses(t *testing.T) {
	t.Parallel()
	message := func(name string, n int32) *sidebusv1.Message {
		return &sidebusv1.Message{
			Subject: &name, Properties: map[string]*sidebusv1.Value{"n": int32Value(n)}, Content: &sidebusv1.Message_Text{Text: name},
		}
	}
	cases := map[string]struct {
		request *sidebusv1.ResubmitRequest
		back    string // in the queue afterwards
		reasons string
		more    bool
	}{
		"all":            {&sidebusv1.ResubmitRequest{}, "a b c d", ",,,", false},
		"all, by name":   {&sidebusv1.ResubmitRequest{SubQueue: sidebusv1.SubQueue_DEAD_LETTER.Enum()}, "a b c d", ",,,", false},
		"at most":        {&sidebusv1.ResubmitRequest{Max: proto.Int32(3)}, "a b c", ",,", true},
		"exactly":        {&sidebusv1.ResubmitRequest{Max: proto.Int32(4)}, "a b c d", ",,,", false},
		"the most":       {&sidebusv1.ResubmitRequest{Max: proto.Int32(10000)}, "a b c d", ",,,", false},
		"numbers":        {&sidebusv1.ResubmitRequest{SequenceNumbers: []int64{3, 99, 1}}, "c a", ",MESSAGE_NOT_FOUND,", false},
		"filter":         {&sidebusv1.ResubmitRequest{Filter: proto.String("n % 2 = 0 AND sys.DeliveryCount = 0")}, "b d", ",", false},
		"filter, system": {&sidebusv1.ResubmitRequest{Filter: proto.String("sys.Label IN ('a', 'd') AND DeadLetterReason = 'broken'")}, "a d", ",", false},
		"filter, most":   {&sidebusv1.ResubmitRequest{Filter: proto.String("n > 1"), Max: proto.Int32(2)}, "b c", ",", true},
		"filter, none":   {&sidebusv1.ResubmitRequest{Filter: proto.String("nothing = 1")}, "", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, w *wire) {
				w.deadLetter(t, orders, message("a", 1), message("b", 2), message("c", 3), message("d", 4))
				request := proto.CloneOf(c.request)
				request.Source = orders
				response := w.resubmit(t, request)
				if _, reasons := rows(response); reasons != c.reasons || response.GetMore() != c.more {
					t.Errorf("got %v", response)
				}
				back := w.take(t, 10)
				if got := texts(back); got != c.back {
					t.Errorf("%q came back, want %q", got, c.back)
				}
				for _, m := range back {
					if m.DeadLetterReason != nil || m.GetDeliveryCount() != 1 || m.GetSequenceNumber() <= 4 {
						t.Errorf("MSG-17: got %v", m)
					}
				}
			})
		})
	}
}

func TestDLQ_22_LockedOnesStay(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.deadLetter(t, orders, text("a"), text("b"))
		taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders, SubQueue: sidebusv1.SubQueue_DEAD_LETTER})
		if err != nil || len(taken.GetMessages()) != 1 {
			t.Fatalf("got %v, %v", taken, err)
		}
		named := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: orders, SequenceNumbers: []int64{1}})
		if _, reasons := rows(named); reasons != "MESSAGE_NOT_FOUND" {
			t.Errorf("named: got %v", named)
		}
		all := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: orders})
		if old, reasons := rows(all); reasons != "" || len(old) != 1 || old[0] != 2 {
			t.Errorf("all: got %v", all)
		}
	})
}

func TestDLQ_22_TargetAndDuplicates(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		const dedup, small = "queues/dedup", "queues/small"
		mustPut(t, w.sidecar, "/v1/"+dedup, `{"requiresDuplicateDetection":true}`)
		mustPut(t, w.sidecar, "/v1/"+small, `{"maxMessageCount":1}`)
		message := func(id string) *sidebusv1.Message {
			return &sidebusv1.Message{MessageId: &id, SessionId: proto.String("s"), TimeToLive: durationpb.New(time.Hour)}
		}
		w.deadLetter(t, dedup, message("a"), message("b"), message("c"), message("d"))

		dropped := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: dedup, SequenceNumbers: []int64{1}})
		if r := dropped.GetResults()[0]; !r.GetDeduplicated() || r.GetNewSequenceNumber() != 1 || r.Reason != nil {
			t.Errorf("inside the window: got %v", r)
		}
		bypassed := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: dedup, SequenceNumbers: []int64{2}, BypassDuplicateDetection: true})
		if r := bypassed.GetResults()[0]; r.GetDeduplicated() || r.GetNewSequenceNumber() != 5 || r.Reason != nil {
			t.Errorf("bypassed: got %v", r)
		}
		w.clock.advance(time.Minute)
		renamed := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: dedup, SequenceNumbers: []int64{3}, NewMessageIds: true, KeepExpiry: true, Target: orders})
		if r := renamed.GetResults()[0]; r.GetDeduplicated() || r.GetNewSequenceNumber() != 1 {
			t.Errorf("to another queue: got %v", r)
		}
		m := w.take(t, 1)[0]
		if m.GetMessageId() == "c" || len(m.GetMessageId()) != len(nobodysToken) || m.GetSessionId() != "s" || !m.GetExpiresAt().AsTime().Equal(w.clock.Now().Add(59*time.Minute)) {
			t.Errorf("new id, old expiry: got %v", m)
		}

		if _, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: small, Messages: []*sidebusv1.Message{{}}}); err != nil {
			t.Fatal(err)
		}
		full := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: dedup, Target: small})
		if old, reasons := rows(full); reasons != "ENTITY_FULL" || old[0] != 4 {
			t.Errorf("a full target: got %v", full)
		}
		w.eventuallyCounts(t, 3, "sidebus_messages_resubmitted_total")
	})
}

// Dead letters of a queue, of a subscription, and those that could not be forwarded go to a topic.
func TestDLQ_22_ToATopic(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		const news, eu, us = "topics/news", "topics/news/subscriptions/eu", "topics/news/subscriptions/us"
		mustPut(t, w.sidecar, "/v1/"+news, `{}`)
		mustPut(t, w.sidecar, "/v1/"+eu, `{}`)
		mustPut(t, w.sidecar, "/v1/"+us, `{}`)
		w.deadLetter(t, orders, text("a"), text("b"))
		sent := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: orders, Target: news, SequenceNumbers: []int64{2, 9}})
		if _, reasons := rows(sent); reasons != "?,MESSAGE_NOT_FOUND" { // without a new number
			t.Errorf("of a queue: got %v", sent)
		}
		seen := func(source string) string {
			all, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: source, MaxMessages: proto.Int32(9)})
			if err != nil {
				t.Fatal(err)
			}
			return texts(all.GetMessages())
		}
		if got := seen(eu) + "," + seen(us); got != "b,b" {
			t.Errorf("got %q", got)
		}
		taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: eu})
		if err != nil {
			t.Fatal(err)
		}
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
			Source: eu, LockTokens: []string{taken.GetMessages()[0].GetLockToken()},
		}))
		if all := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: eu, Target: news}); len(all.GetResults()) != 1 || all.GetMore() {
			t.Errorf("of a subscription: got %v", all)
		}
		if got := seen(eu) + "," + seen(us); got != "b,b b" {
			t.Errorf("got %q", got)
		}
		w.eventuallyCounts(t, 2, "sidebus_messages_resubmitted_total")
		refuse("no such topic", "ENTITY_NOT_FOUND", "", sidebusv1.MessagesClient.Resubmit,
			&sidebusv1.ResubmitRequest{Source: orders, Target: "topics/none"}).check(t, w.messages)
	})
}

// A filter without a result for a message is a mistake of the filter; nothing has moved.
func TestRULE_8_FilterWithoutResult(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		zero := text("a")
		zero.Properties = map[string]*sidebusv1.Value{"n": int32Value(0)}
		w.deadLetter(t, orders, zero)
		check := w.unchanged(t)
		refuse("division by zero", "FILTER_INVALID", "filter", sidebusv1.MessagesClient.Resubmit,
			&sidebusv1.ResubmitRequest{Source: orders, Filter: proto.String("10 / n > 1")}).check(t, w.messages)
		check(t)
	})
}
