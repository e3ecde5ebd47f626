package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

var requesting = sidebusv1.MessagesClient.Request

// asking is a request to "orders" whose reply is to come to "tales".
func asking(m *sidebusv1.Message) *sidebusv1.RequestRequest {
	return &sidebusv1.RequestRequest{Target: orders, Message: m, ReplyTo: tales, Timeout: durationpb.New(patience)}
}

// request makes a request and gives the text of the reply, or the reason of the failure.
func (w *wire) request(t *testing.T, r *sidebusv1.RequestRequest) <-chan string {
	t.Helper()
	answered := make(chan string, 1)
	go func() {
		response, err := w.messages.Request(t.Context(), r)
		if err != nil {
			answered <- infoOf(t, err).GetReason() + " " + infoOf(t, err).GetMetadata()["outcome"] + " " + infoOf(t, err).GetMetadata()["cause"]
			return
		}
		answered <- response.GetMessage().GetText()
	}()
	return answered
}

// requested waits for n requests and removes them.
func (s *sidecar) requested(t *testing.T, source string, n int) []*sidebusv1.ReceivedMessage {
	t.Helper()
	var all []*sidebusv1.ReceivedMessage
	for len(all) < n {
		got, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
			Source: source, MaxMessages: proto.Int32(int32(n - len(all))), MaxWait: durationpb.New(patience), Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
		})
		if err != nil || len(got.GetMessages()) == 0 {
			t.Fatalf("got %v, %v", got, err)
		}
		all = append(all, got.GetMessages()...)
	}
	return all
}

// reply answers a request as a worker does (RR-3).
func (s *sidecar) reply(t *testing.T, to *sidebusv1.ReceivedMessage, content string) {
	t.Helper()
	m := text(content)
	m.SessionId, m.CorrelationId = to.ReplyToSessionId, to.CorrelationId
	if m.CorrelationId == nil {
		m.CorrelationId = to.MessageId
	}
	if _, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/" + to.GetReplyTo(), Messages: []*sidebusv1.Message{m}}); err != nil {
		t.Fatal(err)
	}
}

func TestRR_6_ManyRequestsOverManyQueues(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"acceptNext":"FORBIDDEN"`)
		mustPut(t, w.sidecar, "/v1/queues/more%2Forders", `{}`)
		const each = 25
		var answers sync.Map
		var all sync.WaitGroup
		for i := range each {
			for _, target := range []string{orders, "queues/more/orders"} {
				r := asking(text(fmt.Sprint(target, i)))
				r.Target = target
				answer := w.request(t, r)
				all.Go(func() { answers.Store(r.GetMessage().GetText(), <-answer) })
			}
		}
		for _, target := range []string{orders, "queues/more/orders"} {
			requests := w.requested(t, target, each)
			for i := range requests { // the last one first
				r := requests[each-1-i]
				if r.GetReplyTo() != "tales" || r.GetReplyToSessionId() == "" || r.GetTimeToLive().AsDuration() != patience {
					t.Fatalf("a request has not what a worker needs: %v", r)
				}
				w.reply(t, r, "reply to "+r.GetText())
			}
		}
		all.Wait()
		n := 0
		answers.Range(func(request, answer any) bool {
			n++
			if answer != "reply to "+request.(string) {
				t.Errorf("request %q got %q", request, answer)
			}
			return true
		})
		if n != 2*each {
			t.Errorf("%d answers, want %d", n, 2*each)
		}
		eventually(t, "no reply is left", func() bool { return len(w.seen(t, sidebusv1.SubQueue_NONE)) == 0 })
		w.eventuallyCounts(t, 100, "sidebus_messages_sent_total")
		w.eventuallyMeasured(t, "sidebus_orphan_replies_total 0")
		if w.broker.Held() != 1 {
			t.Errorf("%d held, want the session of the replies alone", w.broker.Held())
		}
	})
}

func TestRR_6_ReplyAsItWasSent(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		answered := make(chan *sidebusv1.ReceivedMessage, 1)
		go func() {
			response, err := w.messages.Request(t.Context(), asking(&sidebusv1.Message{CorrelationId: proto.String("c"), MessageId: proto.String("m")}))
			if err != nil {
				t.Error(err)
			}
			answered <- response.GetMessage()
		}()
		r := w.requested(t, orders, 1)[0]
		_, err := w.sidecar.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: tales, Messages: []*sidebusv1.Message{{
			SessionId: r.ReplyToSessionId, CorrelationId: proto.String("c"), Subject: proto.String("done"), Content: &sidebusv1.Message_Body{Body: []byte{0, 1}},
			Properties: map[string]*sidebusv1.Value{"p": {Kind: &sidebusv1.Value_Int64Value{Int64Value: 7}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		got := <-answered
		if string(got.GetBody()) != "\x00\x01" || got.GetSubject() != "done" || got.GetProperties()["p"].GetInt64Value() != 7 || got.GetDeliveryCount() != 1 || got.LockToken != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestRR_6_NoReplyInTimeAndLateReply(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		r := asking(text("slow"))
		r.Timeout = durationpb.New(200 * time.Millisecond)
		if got := <-w.request(t, r); got != "SERVICE_TIMEOUT unknown " {
			t.Errorf("got %q", got)
		}
		w.reply(t, w.requested(t, orders, 1)[0], "too late")
		w.eventuallyMeasured(t, "sidebus_orphan_replies_total 1")
		if left := w.seen(t, sidebusv1.SubQueue_NONE); len(left) != 0 {
			t.Errorf("the late reply is left: %v", left)
		}
	})
}

func TestRR_6_RefusedRequests(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		changed := func(change func(r *sidebusv1.RequestRequest)) *sidebusv1.RequestRequest {
			r := asking(text("x"))
			change(r)
			return r
		}
		message := func(m *sidebusv1.Message) *sidebusv1.RequestRequest { return asking(m) }
		check := w.unchanged(t)
		for _, r := range []refusal{
			refuse("unknown queue", "ENTITY_NOT_FOUND", "", requesting, changed(func(r *sidebusv1.RequestRequest) { r.Target = absent })),
			refuse("unknown reply queue", "ENTITY_NOT_FOUND", "", requesting, changed(func(r *sidebusv1.RequestRequest) { r.ReplyTo = absent })),
			refuse("no reply queue", "INVALID_ARGUMENT", "replyTo", requesting, changed(func(r *sidebusv1.RequestRequest) { r.ReplyTo = "" })),
			refuse("bare reply queue", "INVALID_ARGUMENT", "replyTo", requesting, changed(func(r *sidebusv1.RequestRequest) { r.ReplyTo = "tales" })),
			refuse("bad reply queue", "INVALID_ARGUMENT", "replyTo", requesting, changed(func(r *sidebusv1.RequestRequest) { r.ReplyTo = "queues/?" })),
			refuse("reply queue without sessions", "SESSION_NOT_SUPPORTED", "", requesting, changed(func(r *sidebusv1.RequestRequest) { r.ReplyTo = orders })),
			refuse("no time", outOfRange, "timeout", requesting, changed(func(r *sidebusv1.RequestRequest) { r.Timeout = &durationpb.Duration{} })),
			refuse("too long", outOfRange, "timeout", requesting, changed(func(r *sidebusv1.RequestRequest) { r.Timeout = durationpb.New(301 * time.Second) })),
			refuse("no message", "INVALID_ARGUMENT", "message", requesting, changed(func(r *sidebusv1.RequestRequest) { r.Message = nil })),
			refuse("own header", "INVALID_ARGUMENT", "message.replyTo", requesting, message(&sidebusv1.Message{ReplyTo: proto.String("tales")})),
			refuse("own session", "INVALID_ARGUMENT", "message.replyToSessionId", requesting, message(&sidebusv1.Message{ReplyToSessionId: proto.String("s")})),
			refuse("scheduled", "INVALID_ARGUMENT", "message.scheduledEnqueueTime", requesting, message(&sidebusv1.Message{ScheduledEnqueueTime: timestamppb.Now()})),
			refuse("empty id", "INVALID_ARGUMENT", "messageId", requesting, message(&sidebusv1.Message{MessageId: proto.String("")})),
			refuse("long id", "INVALID_ARGUMENT", "correlationId", requesting, message(&sidebusv1.Message{CorrelationId: proto.String(strings.Repeat("x", 129))})),
			refuse("too large", "MESSAGE_SIZE_EXCEEDED", "message", requesting, message(text(strings.Repeat("x", 300<<10)))),
			refuse("target wants a session", "SESSION_ID_MISSING", "", requesting, changed(func(r *sidebusv1.RequestRequest) { r.Target = tales })),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.messages) })
		}
		check(t)
		unknown := refuse("unknown field", "INVALID_ARGUMENT", "request", requesting, unknownField(asking(text("x"))))
		unknown.check(t, w.sidecar.messages)
	})
}

func TestRR_6_SameKeyTwice(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		m := &sidebusv1.Message{MessageId: proto.String("m")}
		first := w.request(t, asking(m))
		r := w.requested(t, orders, 1)[0]
		refuse("twice", "INVALID_OPERATION", "", requesting, asking(m)).check(t, w.messages)
		w.reply(t, r, "once")
		if got := <-first; got != "once" {
			t.Errorf("got %q", got)
		}
	})
}

// Who stops waiting gets no reply; it is an orphan.
func TestRR_6_RequesterGone(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := w.messages.Request(ctx, asking(text("x")))
			gone <- err
		}()
		r := w.requested(t, orders, 1)[0]
		leave()
		if err := <-gone; err == nil {
			t.Error("the request succeeded")
		}
		eventually(t, "the sidecar knows", func() bool {
			return strings.Contains(w.ask(t, http.MethodGet, "/metrics").body, `sidebus_rpcs_total{code="CANCELLED",method="Messages.Request"`)
		})
		w.reply(t, r, "to nobody")
		w.eventuallyMeasured(t, "sidebus_orphan_replies_total 1")
	})
}

// A text that is not UTF-8 cannot be written to gRPC, which is a way to make the writing itself fail.
func TestRR_6_ReplyThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	w := overSpy(t, over, "grpc")
	failed := make(chan error, 1)
	go func() {
		_, err := w.messages.Request(t.Context(), asking(&sidebusv1.Message{MessageId: proto.String("m")}))
		failed <- err
	}()
	r := w.requested(t, orders, 1)[0]
	awaitCount(t, "removed", over.completed, 1) // the request
	broken := &semantics.Message{
		MessageID: "1", SessionID: r.GetReplyToSessionId(), CorrelationID: "m", Body: []byte("\xff"), BodyKind: semantics.BodyText,
	}
	if _, err := over.Store.Send(t.Context(), "tales", []*semantics.Message{broken}); err != nil {
		t.Fatal(err)
	}
	wake := &semantics.Message{MessageID: "2", SessionID: r.GetReplyToSessionId()}
	if _, err := over.Store.Send(t.Context(), "tales", []*semantics.Message{wake}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	awaitCount(t, "released", over.released, 1)
	w.eventuallyMeasured(t, "sidebus_orphan_replies_total 2")
	if left := w.seen(t, sidebusv1.SubQueue_NONE); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRR_6_StopEndsRequests(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		waiting := w.request(t, asking(text("x")))
		w.requested(t, orders, 1)
		w.stop()
		if got := <-waiting; got != "STORE_UNAVAILABLE unknown draining" {
			t.Errorf("got %q", got)
		}
		wait(t, "end of Run", w.done)
		if n := w.broker.Held(); n != 0 {
			t.Errorf("%d held", n)
		}
	})
}
