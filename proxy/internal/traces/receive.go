package traces

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/semantics"
)

// Received records the span of a receive that has delivered messages, linked to each. Without messages there is none,
// because clients that poll would record little else.
func (t *Traces) Received(ctx context.Context, source semantics.Source, messages []*semantics.Received) {
	if t == nil || len(messages) == 0 {
		return
	}
	contexts := make([]trace.SpanContext, 0, len(messages))
	for _, m := range messages {
		c, _ := contextOf(&m.Message)
		if !c.IsValid() {
			continue
		}
		contexts = append(contexts, c)
		if !m.LockToken.IsZero() {
			t.held.put(m.LockToken, c)
		}
	}
	var attributes []attribute.KeyValue
	if len(messages) == 1 {
		attributes = append(single(&messages[0].Message), attribute.Int(deliveryCount, messages[0].DeliveryCount))
	}
	_, received := t.begin(ctx, span{
		operation: "receive", kind: typeReceive, on: trace.SpanKindClient, name: source.String(),
		destination: destinationOf(source), contexts: contexts, count: len(messages), at: arrivalOf(ctx),
	}, attributes...)
	noteRedeliveries(received, messages)
	received.End()
}

// noteRedeliveries adds an event for each message that was delivered before.
func noteRedeliveries(to trace.Span, messages []*semantics.Received) {
	events := 0
	for _, m := range messages {
		if m.DeliveryCount < 2 {
			continue
		}
		if events++; events > maxEvents {
			return
		}
		to.AddEvent(redeliveredEvent, trace.WithAttributes(
			text(messageID, m.MessageID), attribute.Int64(sequenceNumber, m.SequenceNumber),
			attribute.Int(deliveryCount, m.DeliveryCount),
		))
	}
}

// Processing is the span of a message that the app processes. A nil *Processing is that of no span.
type Processing struct {
	ctx  context.Context //nolint:containedctx // with the span
	span trace.Span
}

// Process begins the span of a message that the app processes, as a child of the message's trace context. The caller
// must call End.
func (t *Traces) Process(ctx context.Context, source semantics.Source, m *semantics.Received) *Processing {
	if t == nil {
		return nil
	}
	ctx, began := t.begin(ctx, span{
		operation: "process", kind: typeProcess, on: trace.SpanKindConsumer, name: source.String(),
		destination: destinationOf(source), contexts: contextsOf(&m.Message), count: 1, at: time.Now(),
	}, append(single(&m.Message), attribute.Int(deliveryCount, m.DeliveryCount))...)
	noteRedeliveries(began, []*semantics.Received{m})
	return &Processing{ctx, began}
}

// Inject writes the span into the headers of the request to the app, instead of the message's trace context.
func (p *Processing) Inject(header http.Header) {
	if p != nil {
		inject(p.ctx, header)
	}
}

// In returns ctx with the span as the parent of those that follow.
func (p *Processing) In(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, p.span)
}

// End ends the span with the outcome. hasFailed reports whether the app has failed the message.
func (p *Processing) End(outcome string, hasFailed bool) {
	if p == nil {
		return
	}
	p.span.SetAttributes(attribute.String(settlementOutcome, outcome))
	if hasFailed {
		fail(p.span, semantics.Code(outcome))
	}
	p.span.End()
}
