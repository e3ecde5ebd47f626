package traces

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/semantics"
)

// Names of the properties of a message with its trace context, and of the headers of a call with the caller's. The
// clients of Service Bus also write the first under another name.
const (
	traceParent  = "traceparent"
	traceState   = "tracestate"
	diagnosticID = "Diagnostic-Id"
	maxEvent     = 256 << 10 // bytes of a cloud event in which a context is looked for
	maxState     = 512       // bytes; a longer tracestate is left out, as the recommendation of the W3C permits
)

var w3c propagation.TraceContext

// extract adds the trace context of a carrier to ctx.
func extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	ctx = w3c.Extract(ctx, from)
	if c := trace.SpanContextFromContext(ctx); len(c.TraceState().String()) > maxState {
		return trace.ContextWithRemoteSpanContext(ctx, c.WithTraceState(trace.TraceState{}))
	}
	return ctx
}

// contextOf returns the trace context of a message. isSet reports whether the sender set one, valid or not.
func contextOf(m *semantics.Message) (c trace.SpanContext, isSet bool) {
	carrier, other := propagation.MapCarrier{}, ""
	for name, value := range m.Properties {
		switch {
		case strings.EqualFold(name, traceParent):
			carrier[traceParent] = value.Text()
		case strings.EqualFold(name, traceState):
			carrier[traceState] = strings.Clone(value.Text()) // not the whole message, which it refers to
		case strings.EqualFold(name, diagnosticID):
			other = value.Text()
		default:
			continue
		}
		isSet = true
	}
	if !isSet {
		return c, false
	}
	if carrier[traceParent] == "" {
		carrier[traceParent] = other
	}
	//nolint:forbidigo // of an Extract that neither blocks nor keeps it
	return trace.SpanContextFromContext(extract(context.Background(), carrier)), true
}

// contextsOf returns the trace contexts of messages, as far as they have one.
func contextsOf(messages ...*semantics.Message) (contexts []trace.SpanContext) {
	for _, m := range messages {
		if c, _ := contextOf(m); c.IsValid() {
			contexts = append(contexts, c)
		}
	}
	return contexts
}

// Stamp returns the properties that carry the span of a send on with a message: none if ctx has no span of a send, or
// the message has a trace context already, which is the producer's own. It is a broker.Stamp.
func Stamp(ctx context.Context, m *semantics.Message) map[string]semantics.Value {
	current := trace.SpanContextFromContext(ctx)
	if !current.IsValid() || current.IsRemote() {
		return nil
	}
	if _, isSet := contextOf(m); isSet {
		return nil
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	stamp := map[string]semantics.Value{traceParent: semantics.String(carrier[traceParent])}
	if state := carrier[traceState]; state != "" && len(state) <= maxState {
		stamp[traceState] = semantics.String(state)
	}
	return stamp
}

// inject writes the span of ctx into the headers of a request.
func inject(ctx context.Context, header http.Header) {
	header.Del(traceParent)
	header.Del(traceState)
	w3c.Inject(ctx, propagation.HeaderCarrier(header))
}

// FromDapr is FromHTTP for what an app publishes through Dapr: the context is in the metadata of the call, in the
// metadata of the publish, or in the envelope of the cloud event that the Dapr runtime made.
func (t *Traces) FromDapr(ctx context.Context, published map[string]string, event []byte) context.Context {
	if t == nil || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	var envelope struct{ TraceParent, TraceState string }
	for name, value := range published {
		name = strings.ToLower(name)
		switch name = strings.TrimPrefix(name, "cloudevent."); name {
		case traceParent:
			envelope.TraceParent = value
		case traceState:
			envelope.TraceState = value
		}
	}
	if envelope.TraceParent == "" && len(event) > 0 && len(event) <= maxEvent && event[0] == '{' {
		_ = json.Unmarshal(event, &envelope) // if it is not a cloud event, it has no context
	}
	return extract(ctx, propagation.MapCarrier{traceParent: envelope.TraceParent, traceState: envelope.TraceState})
}

// held has the trace contexts of the messages that this sidecar delivered and that are not settled, so that a
// settlement, which has only tokens, can be linked to them. It keeps the last maxHeld.
type held struct {
	mu    sync.Mutex
	of    map[semantics.LockToken]trace.SpanContext
	order []semantics.LockToken // a ring, also of tokens that were taken
	next  int
}

const maxHeld = 10_000

func (h *held) put(token semantics.LockToken, c trace.SpanContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.order) < maxHeld {
		h.order = append(h.order, token)
	} else {
		delete(h.of, h.order[h.next])
		h.order[h.next] = token
		h.next = (h.next + 1) % maxHeld
	}
	h.of[token] = c
}

// take removes and returns the contexts of messages whose locks end.
func (h *held) take(tokens []semantics.LockToken) (contexts []trace.SpanContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, token := range tokens {
		if c, ok := h.of[token]; ok {
			contexts = append(contexts, c)
			delete(h.of, token)
		}
	}
	return contexts
}
