package traces

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/semantics"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// large is a message as it comes from a request or from Redis: all its texts refer to one large piece of memory.
func large(freed chan<- struct{}) *semantics.Received {
	memory := new([1 << 20]byte)
	runtime.AddCleanup(memory, func(freed chan<- struct{}) { close(freed) }, freed)
	used := 0
	text := func(s string) string {
		at := used
		used += copy(memory[at:], s)
		return unsafe.String(&memory[at], len(s))
	}
	m := &semantics.Received{LockToken: semantics.LockToken{1}, DeliveryCount: 2}
	m.MessageID, m.CorrelationID = text("id"), text("cause")
	m.Properties = map[string]semantics.Value{
		traceParent: semantics.String(text(parent)), traceState: semantics.String(text("vendor=state")),
	}
	m.Body = memory[used:]
	return m
}

// Spans wait for the collector, and contexts for settlements. They keep a few hundred bytes of a message, not all of it.
func TestCOMP_22_SpansDoNotKeepMessages(t *testing.T) {
	t.Parallel()
	ended := tracetest.NewSpanRecorder()
	traces := New(tracesdk.NewTracerProvider(tracesdk.WithSpanProcessor(ended)))
	freed, source := make(chan struct{}), semantics.Source{Path: "orders"}
	func() {
		m := large(freed)
		_, sending := traces.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{&m.Message})
		sending.End(nil)
		traces.Received(t.Context(), source, []*semantics.Received{m})
		processing := traces.Process(t.Context(), source, m)
		processing.End("complete", false)
		traces.DeadLettered(t.Context(), "orders", "MaxDeliveryCountExceeded", m)
	}()
	deadline := time.After(time.Minute)
	for isFreed := false; !isFreed; {
		runtime.GC()
		select {
		case <-freed:
			isFreed = true
		case <-deadline:
			t.Fatal("the memory of the message is not free")
		default:
		}
	}
	if n := len(ended.Ended()); n != 4 {
		t.Errorf("there are %d spans", n)
	}
	if kept := traces.held.take([]semantics.LockToken{{1}}); len(kept) != 1 || kept[0].TraceState().String() != "vendor=state" {
		t.Errorf("kept %v", kept)
	}
}

// A tracestate that is longer than is carried on is not kept either, of a call or of a message.
func TestCOMP_22_LongTracestatesAreLeftOut(t *testing.T) {
	t.Parallel()
	traces := New(tracesdk.NewTracerProvider())
	long := "a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("x", 250) + ",c=" + strings.Repeat("x", 250)
	for state, want := range map[string]string{"a=x": "a=x", long: ""} {
		header := http.Header{"Traceparent": {parent}, "Tracestate": {state}}
		message := &semantics.Message{Properties: map[string]semantics.Value{
			traceParent: semantics.String(parent), traceState: semantics.String(state),
		}}
		ofMessage, _ := contextOf(message)
		published := map[string]string{"cloudevent.traceparent": parent, "cloudevent.tracestate": state}
		for of, c := range map[string]trace.SpanContext{
			"a header":  trace.SpanContextFromContext(traces.FromHTTP(t.Context(), header)),
			"Dapr":      trace.SpanContextFromContext(traces.FromDapr(context.WithoutCancel(t.Context()), published, nil)),
			"a message": ofMessage,
		} {
			if got := c.TraceState().String(); got != want || !c.IsValid() {
				t.Errorf("%s: got %q, valid %t; want %q", of, got, c.IsValid(), want)
			}
		}
	}
}
