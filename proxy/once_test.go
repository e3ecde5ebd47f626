package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// A repeat through another sidecar, over the same wire or the other one, gets the answer of the first and stores
// nothing.
func TestIDEM_1_RepeatThroughAnotherSidecar(t *testing.T) {
	t.Parallel()
	at := newClock()
	store := memstore.New(memstore.WithClock(at.Now))
	one, other := start(t, store), start(t, store)
	mustPut(t, one, "/v1/topics/news", `{}`)
	mustPut(t, one, "/v1/topics/news/subscriptions/eu", `{}`)
	stored := int64(0)
	for _, target := range []string{orders, "topics/news"} {
		for _, from := range []string{"grpc", "http"} {
			for _, to := range []string{"grpc", "http"} {
				first, _ := one.clients(from)
				second, _ := other.clients(to)
				id := from + " to " + to
				request := &sidebusv1.SendRequest{Target: target, RequestId: &id, Messages: []*sidebusv1.Message{
					text("a"), {ScheduledEnqueueTime: (&wire{clock: at}).in(time.Hour)},
				}}
				sent, err := first.Send(t.Context(), request)
				if err != nil || sent.GetRepeated() || len(sent.GetResults()) != 2 {
					t.Fatalf("%s: got %v, %v", id, sent, err)
				}
				stored += 2
				at.advance(2*time.Minute - time.Millisecond)
				again, err := second.Send(t.Context(), request)
				if sent.Repeated = true; err != nil || !proto.Equal(again, sent) {
					t.Errorf("%s: got %v, %v, want %v", id, again, err, sent)
				}
				others := &sidebusv1.SendRequest{Target: target, RequestId: &id, Messages: []*sidebusv1.Message{text("a")}}
				_, err = second.Send(t.Context(), others)
				if info := infoOf(t, err); info.GetReason() != "INVALID_ARGUMENT" || info.GetMetadata()["field"] != "requestId" {
					t.Errorf("%s: other messages under the id: got %v", id, err)
				}
			}
		}
	}
	if counts := one.runtime(t); counts.GetActiveMessageCount() != 4 || counts.GetScheduledMessageCount() != 4 {
		t.Errorf("got %v, want 4 active and 4 scheduled", counts)
	}
	one.eventuallyCounts(t, int(stored), "sidebus_messages_sent_total")
	other.eventuallyCounts(t, 0, "sidebus_messages_sent_total")
}

func TestIDEM_1_Bounds(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		sending := sidebusv1.MessagesClient.Send
		check := w.unchanged(t)
		for _, id := range []string{"", strings.Repeat("x", 129)} {
			request := &sidebusv1.SendRequest{Target: orders, RequestId: &id, Messages: []*sidebusv1.Message{text("a")}}
			refuse("a bad id", "INVALID_ARGUMENT", "requestId", sending, request).check(t, w.messages)
			_, err := w.messages.Send(t.Context(), request)
			if !strings.Contains(err.Error(), "128") {
				t.Errorf("%v does not name the bound", err)
			}
		}
		check(t)
	})
}

// postWith makes a call under the keys.
func (s *sidecar) postWith(t *testing.T, path, body string, keys ...string) answer {
	t.Helper()
	request := newRequest(t, http.MethodPost, "http://"+s.proxy.HTTPAddr().String()+path, body)
	request.Header["Idempotency-Key"] = keys
	return s.exchange(t, request)
}

func TestIDEM_1_Header(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	const path, one = "/v1/queues/orders/messages:send", `{"messages":[{"messageId":"m","text":"a"}]}`
	const answered = `{"results":[{"sequenceNumber":"1","messageId":"m","deduplicated":false}],"repeated":%t}`
	for _, c := range []struct {
		body string
		keys []string
		want string
	}{
		{one, []string{"k"}, fmt.Sprintf(answered, false)},
		{one, []string{"k"}, fmt.Sprintf(answered, true)},
		{`{"requestId":"k",` + one[1:], nil, fmt.Sprintf(answered, true)},
		{`{"requestId":"k",` + one[1:], []string{"k"}, fmt.Sprintf(answered, true)},
	} {
		if a := s.postWith(t, path, c.body, c.keys...); a.body != c.want {
			t.Errorf("%s under %q: got %d %s, want %s", c.body, c.keys, a.status, a.body, c.want)
		}
	}
	for _, c := range []struct {
		path, body  string
		keys        []string
		field, text string
	}{
		{path, `{"requestId":"k",` + one[1:], []string{"K"}, "Idempotency-Key", "differs from requestId"},
		{path, one, []string{"k", "k"}, "Idempotency-Key", "appears twice"},
		{path, one, []string{""}, "requestId", "1 to 128 characters"},
		{path, one, []string{strings.Repeat("x", 129)}, "requestId", "at most 128"},
		{path, one, []string{"\xff"}, "requestId", "UTF-8"},
		{path, `{"messages":[]}`, []string{"k"}, "messages", "at least one"},
		{"/v1/queues/orders/messages:receive", `{"maxWait":"0s"}`, []string{"k"}, "Idempotency-Key", "messages:send and :transact only"},
		{"/v1/queues/orders/messages:request", `{"message":{},"replyTo":"queues/orders"}`, []string{"k"}, "Idempotency-Key", "messages:send and :transact only"},
	} {
		a := s.postWith(t, c.path, c.body, c.keys...)
		reason, field := a.reason(t)
		if a.status != http.StatusBadRequest || reason != "INVALID_ARGUMENT" || field != c.field || !strings.Contains(a.body, c.text) {
			t.Errorf("%s under %q: got %d %s, want %s %q", c.body, c.keys, a.status, a.body, c.field, c.text)
		}
	}
	if n := s.runtime(t).GetTotalMessageCount(); n != 1 {
		t.Errorf("%d messages are stored, want 1", n)
	}
}

// An error of unknown outcome names the next step.
func TestERR_6_UnknownTellsTheNextStep(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"grpc", "http"} {
		messages, _ := start(t, &unknownStore{memstore.New()}).clients(name)
		for id, next := range map[string]string{"": "send with a requestId", "r": "repeat the call with the same requestId within 2m0s"} {
			request := &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{text("a")}}
			if id != "" {
				request.RequestId = &id
			}
			_, err := messages.Send(t.Context(), request)
			if info := infoOf(t, err); info.GetMetadata()["outcome"] != "unknown" || !strings.Contains(err.Error(), next) {
				t.Errorf("got %v, want %q", err, next)
			}
		}
	}
}

// unknownStore never knows what became of a send.
type unknownStore struct{ *memstore.Store }

var errUnknown = semantics.Errorf(semantics.StoreUnavailable, "the answer was lost").
	With(semantics.DetailOutcome, semantics.OutcomeUnknown)

func (s *unknownStore) Send(context.Context, string, []*semantics.Message) ([]semantics.Stored, error) {
	return nil, errUnknown
}

func (s *unknownStore) SendOnce(context.Context, string, semantics.Once, []*semantics.Message) semantics.SendOutcome {
	return semantics.SendOutcome{Err: errUnknown}
}
