// Package traces records spans for messages that are sent, received, processed and settled, by the semantic conventions
// of OpenTelemetry for messaging, and carries the W3C trace context with the message, as its application properties
// "traceparent" and "tracestate" (COMP-20). A nil *Traces records nothing and costs nothing.
package traces

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/sidebus/sidebus/semantics"
)

// Names of attributes and events. Those that begin with "messaging" and "error" are of the conventions.
const (
	system              = "messaging.system"
	operationName       = "messaging.operation.name"
	operationType       = "messaging.operation.type"
	destinationName     = "messaging.destination.name"
	subscriptionName    = "messaging.destination.subscription.name"
	messageCount        = "messaging.batch.message_count"
	messageID           = "messaging.message.id"
	conversationID      = "messaging.message.conversation_id"
	bodySize            = "messaging.message.body.size"
	errorType           = "error.type"
	subQueue            = "sidebus.sub_queue"
	deliveryCount       = "sidebus.message.delivery_count"
	sequenceNumber      = "sidebus.message.sequence_number"
	deadLetterReason    = "sidebus.dead_letter.reason"
	settlementOutcome   = "sidebus.outcome"
	redeliveredEvent    = "sidebus.redelivered"
	deadLetteredEvent   = "sidebus.dead_lettered"
	typeSend            = "send"
	typeReceive         = "receive"
	typeProcess         = "process"
	typeSettle          = "settle"
	scope               = "github.com/sidebus/sidebus"
	maxEvents, maxLinks = 128, 128 // of one span; the limits of the SDK
)

// Traces records spans. It is safe for concurrent use.
type Traces struct {
	tracer trace.Tracer
	held   held
}

// New returns a Traces, or nil if provider is nil.
func New(provider trace.TracerProvider) *Traces {
	if provider == nil {
		return nil
	}
	return &Traces{tracer: provider.Tracer(scope), held: held{of: map[semantics.LockToken]trace.SpanContext{}}}
}

type arrivalKey struct{}

// FromHTTP adds the trace context in the headers of a call to ctx, which becomes the parent of its spans.
func (t *Traces) FromHTTP(ctx context.Context, header http.Header) context.Context {
	if t == nil {
		return ctx
	}
	return arrive(extract(ctx, propagation.HeaderCarrier(header)))
}

// FromGRPC is FromHTTP for the metadata of a gRPC call.
func (t *Traces) FromGRPC(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return arrive(extract(ctx, incoming{ctx}))
}

// Detach removes the trace context from the metadata of a stream that carries calls, which may have their own: a trace
// does not last as long as such a stream.
func (t *Traces) Detach(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	all, _ := metadata.FromIncomingContext(ctx) // a copy
	all.Delete(traceParent)
	all.Delete(traceState)
	return metadata.NewIncomingContext(ctx, all)
}

// Begin notes that what follows begins now, for a call without a trace context.
func (t *Traces) Begin(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return arrive(ctx)
}

func arrive(ctx context.Context) context.Context {
	return context.WithValue(ctx, arrivalKey{}, time.Now())
}

// arrivalOf returns when the call of ctx arrived; now if that is not known.
func arrivalOf(ctx context.Context) time.Time {
	if at, ok := ctx.Value(arrivalKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}

// incoming is a carrier of the metadata of a call.
type incoming struct{ ctx context.Context } //nolint:containedctx // of one Extract

// Get returns the first value of a name.
func (i incoming) Get(name string) string {
	if values := metadata.ValueFromIncomingContext(i.ctx, name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set does nothing: metadata that came in is only read.
func (incoming) Set(string, string) {}

// Keys returns nothing, because W3C names are asked for one by one.
func (incoming) Keys() []string { return nil }

// span describes a span before it begins.
type span struct {
	operation, kind string // messaging.operation.name and .type
	on              trace.SpanKind
	destination     []attribute.KeyValue
	name            string // of the destination, for the name of the span
	contexts        []trace.SpanContext
	count           int // of messages
	at              time.Time
}

// begin begins a span with links to the messages. If the call has no trace context and concerns one message, the span
// continues the trace of that message; otherwise it begins a trace of its own.
func (t *Traces) begin(ctx context.Context, s span, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() && s.count == 1 && len(s.contexts) == 1 {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.contexts[0])
	}
	links := make([]trace.Link, 0, min(len(s.contexts), maxLinks))
	for _, c := range s.contexts[:min(len(s.contexts), maxLinks)] {
		links = append(links, trace.Link{SpanContext: c})
	}
	attributes = append(
		attributes, attribute.String(system, "sidebus"), attribute.String(operationName, s.operation),
		attribute.String(operationType, s.kind),
	)
	attributes = append(attributes, s.destination...)
	if s.count != 1 {
		attributes = append(attributes, attribute.Int(messageCount, s.count))
	}
	name := s.operation
	if s.name != "" {
		name += " " + s.name
	}
	return t.tracer.Start(
		ctx, name, trace.WithSpanKind(s.on), trace.WithTimestamp(s.at), trace.WithLinks(links...),
		trace.WithAttributes(attributes...),
	)
}

// fail marks a span as failed.
func fail(s trace.Span, code semantics.Code) {
	s.SetAttributes(attribute.String(errorType, string(code)))
	s.SetStatus(codes.Error, string(code))
}

// destinationOf returns the attributes of a source.
func destinationOf(source semantics.Source) []attribute.KeyValue {
	attributes := []attribute.KeyValue{text(destinationName, source.Path)}
	if topic, subscription, ok := semantics.SplitSubscription(source.Path); ok {
		attributes = []attribute.KeyValue{
			text(destinationName, topic), text(subscriptionName, subscription),
		}
	}
	if source.SubQueue != semantics.MainQueue {
		attributes = append(attributes, attribute.String(subQueue, source.SubQueue.String()))
	}
	return attributes
}

// text returns an attribute with a copy of a text. The texts of a message and of a request refer to all of it, which a
// span that waits for the collector must not keep in memory.
func text(key, value string) attribute.KeyValue { return attribute.String(key, strings.Clone(value)) }

// single returns the attributes of the only message of a span.
func single(m *semantics.Message) []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.Int(bodySize, len(m.Body))}
	if m.MessageID != "" {
		attributes = append(attributes, text(messageID, m.MessageID))
	}
	if m.CorrelationID != "" {
		attributes = append(attributes, text(conversationID, m.CorrelationID))
	}
	return attributes
}
