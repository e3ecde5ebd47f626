package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

const (
	callerTrace  = "0af7651916cd43dd8448eb211c80319c"
	callerSpan   = "b7ad6b7169203331"
	callerHeader = "00-" + callerTrace + "-" + callerSpan + "-01"
)

// traceOver runs a sidecar that records spans, over a store that others may use too.
func traceOver(t *testing.T, over store) (*sidecar, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := tracesdk.NewTracerProvider(tracesdk.WithSpanProcessor(spans))
	b := broker.New(over, broker.WithRules(filter.Compile), broker.WithStamp(proxy.TraceContext))
	s := launchBroker(t, b, over, func(c *proxy.Config) { c.Tracing = provider })
	wait(t, "start", s.proxy.Started())
	mustPut(t, s, "/v1/queues/orders", `{}`)
	return s, spans
}

func textMessage(text string, properties map[string]*sidebusv1.Value) *sidebusv1.Message {
	return &sidebusv1.Message{Content: &sidebusv1.Message_Text{Text: text}, Properties: properties}
}

func textValue(text string) *sidebusv1.Value {
	return &sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{StringValue: text}}
}

// sendTraced sends in the trace of a caller.
func sendTraced(t *testing.T, conn grpc.ClientConnInterface, request *sidebusv1.SendRequest) *sidebusv1.SendResponse {
	t.Helper()
	request.Target = orders
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", callerHeader, "tracestate", "shop=1")
	response, err := sidebusv1.NewMessagesClient(conn).Send(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// takeOne receives and completes the next message, without a trace of the caller's own.
func takeOne(t *testing.T, s *sidecar) *sidebusv1.ReceivedMessage {
	t.Helper()
	got, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders})
	if err != nil || len(got.GetMessages()) != 1 {
		t.Fatalf("received %v, %v", got, err)
	}
	m := got.GetMessages()[0]
	if _, err := s.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: orders, LockTokens: []string{m.GetLockToken()}}); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCOMP_20_TheContextGoesWithTheMessage(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	s, _ := traceOver(t, over)
	plain := start(t, over) // another sidecar, without a collector

	for wire, conn := range map[string]grpc.ClientConnInterface{"grpc": s.conn, "one stream": s.shared} {
		sendTraced(t, conn, &sidebusv1.SendRequest{Messages: []*sidebusv1.Message{textMessage("x", nil)}})
		m := takeOne(t, plain)
		got := m.GetProperties()["traceparent"].GetStringValue()
		if !strings.HasPrefix(got, "00-"+callerTrace) || strings.Contains(got, callerSpan) || m.GetProperties()["tracestate"].GetStringValue() != "shop=1" {
			t.Errorf("%s: the message has %v", wire, m.GetProperties())
		}
	}
	for _, own := range []string{"TraceParent", "Diagnostic-Id", "tracestate"} {
		sendTraced(t, s.conn, &sidebusv1.SendRequest{Messages: []*sidebusv1.Message{
			textMessage("x", map[string]*sidebusv1.Value{own: textValue("mine")}),
		}})
		if got := takeOne(t, s).GetProperties(); len(got) != 1 || got[own].GetStringValue() != "mine" {
			t.Errorf("the producer's own %s became %v", own, got)
		}
	}
	sendTraced(t, plain.conn, &sidebusv1.SendRequest{Messages: []*sidebusv1.Message{textMessage("x", nil)}})
	if got := takeOne(t, s).GetProperties(); len(got) != 0 {
		t.Errorf("without a collector the message has %v", got)
	}
	transaction := &sidebusv1.TransactRequest{Operations: []*sidebusv1.Operation{{Operation: &sidebusv1.Operation_Send{
		Send: &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{textMessage("x", nil)}},
	}}}}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", callerHeader)
	if _, err := sidebusv1.NewTransactionsClient(s.conn).Transact(ctx, transaction); err != nil {
		t.Fatal(err)
	}
	if got := takeOne(t, s).GetProperties()["traceparent"].GetStringValue(); !strings.HasPrefix(got, "00-"+callerTrace) {
		t.Errorf("what a transaction sent has %q", got)
	}
}

func TestCOMP_20_NoMessageIsTooLargeWithItsContext(t *testing.T) {
	t.Parallel()
	s, _ := traceOver(t, memstore.New())
	id := "id"
	for _, left := range []int{0, 65, 500} { // bytes below the limit of the queue
		m := textMessage(strings.Repeat("x", semantics.SmallBatchSize-len(id)-left), nil)
		m.MessageId = &id
		sendTraced(t, s.conn, &sidebusv1.SendRequest{Messages: []*sidebusv1.Message{m}})
		if got := takeOne(t, s); (got.GetProperties()["traceparent"] != nil) != (left == 500) {
			t.Errorf("%d bytes below the limit: got %v", left, got.GetProperties())
		}
	}
	full := map[string]*sidebusv1.Value{"a": textValue(strings.Repeat("x", 32<<10)), "b": textValue(strings.Repeat("x", 32<<10-4))}
	m := textMessage("x", full)
	m.MessageId = &id
	sendTraced(t, s.conn, &sidebusv1.SendRequest{Messages: []*sidebusv1.Message{m}})
	if got := takeOne(t, s).GetProperties(); len(got) != 2 {
		t.Errorf("a message with full headers has %d properties", len(got))
	}
}

func TestCOMP_20_ARepeatIsComparedWithoutTheContext(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	s, _ := traceOver(t, over)
	plain := start(t, over)
	request := "order-1"
	for n, conn := range []grpc.ClientConnInterface{s.conn, plain.conn, s.conn} {
		response := sendTraced(t, conn, &sidebusv1.SendRequest{
			RequestId: &request, Messages: []*sidebusv1.Message{textMessage("x", nil)},
		})
		if response.GetRepeated() != (n > 0) {
			t.Errorf("call %d: repeated is %t", n, response.GetRepeated())
		}
	}
}

// A settlement and a receive without a caller continue the trace of the one message that they are about.
func TestCOMP_21_SpansAndTheirLinks(t *testing.T) {
	t.Parallel()
	s, recorder := traceOver(t, memstore.New())
	const secret = "a body that no span may have"
	body := strings.NewReader(`{"messages":[{"text":"` + secret + `","correlationId":"c"}]}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v1/queues/orders/messages:send", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("traceparent", callerHeader)
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	m := takeOne(t, s)
	eventually(t, "three spans", func() bool { return len(recorder.Ended()) == 3 })
	spans := map[string]tracesdk.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		spans[span.Name()] = span
		if span.SpanContext().TraceID().String() != callerTrace {
			t.Errorf("%s is in the trace %s", span.Name(), span.SpanContext().TraceID())
		}
		if text := fmt.Sprint(span.Attributes(), span.Events()); strings.Contains(text, secret) {
			t.Errorf("%s has %s", span.Name(), text)
		}
	}
	sent := spans["send orders"]
	if sent.Parent().SpanID().String() != callerSpan {
		t.Errorf("the send is a child of %s", sent.Parent().SpanID())
	}
	for _, name := range []string{"receive orders", "complete orders"} {
		span := spans[name]
		if len(span.Links()) != 1 || span.Links()[0].SpanContext.SpanID() != sent.SpanContext().SpanID() || span.Parent().SpanID() != sent.SpanContext().SpanID() {
			t.Errorf("%s: links %v, parent %s", name, span.Links(), span.Parent().SpanID())
		}
	}
	want := map[attribute.Key]string{
		"messaging.system": "sidebus", "messaging.operation.name": "receive", "messaging.operation.type": "receive",
		"messaging.destination.name": "orders", "messaging.message.id": m.GetMessageId(),
		"messaging.message.conversation_id": "c", "messaging.message.body.size": fmt.Sprint(len(secret)),
		"sidebus.message.delivery_count": "1",
	}
	for _, a := range spans["receive orders"].Attributes() {
		if want[a.Key] != a.Value.String() {
			t.Errorf("%s is %q, want %q", a.Key, a.Value.String(), want[a.Key])
		}
		delete(want, a.Key)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
