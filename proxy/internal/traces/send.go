package traces

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/semantics"
)

// Sending is the span of a send. A nil *Sending is that of no span.
type Sending struct {
	span     trace.Span
	messages []*semantics.Message
}

// Send begins the span of a send. Its context goes with the messages that have none of their own; to the others it is
// linked. The caller must call End.
func (t *Traces) Send(
	ctx context.Context, target semantics.Target, messages []*semantics.Message,
) (context.Context, *Sending) {
	if t == nil {
		return ctx, nil
	}
	return t.send(ctx, "send", target, messages)
}

// SendEach is Send for several calls that are sent together.
func (t *Traces) SendEach(
	ctx context.Context, target semantics.Target, calls [][]*semantics.Message,
) (context.Context, *Sending) {
	if t == nil {
		return ctx, nil
	}
	var messages []*semantics.Message
	for _, some := range calls {
		messages = append(messages, some...)
	}
	return t.send(ctx, "send", target, messages)
}

// Request is Send for a request that waits for its reply.
func (t *Traces) Request(
	ctx context.Context, target semantics.Target, message *semantics.Message,
) (context.Context, *Sending) {
	if t == nil {
		return ctx, nil
	}
	return t.send(ctx, "request", target, []*semantics.Message{message})
}

func (t *Traces) send(
	ctx context.Context, operation string, target semantics.Target, messages []*semantics.Message,
) (context.Context, *Sending) {
	contexts := contextsOf(messages...)
	ctx, began := t.begin(ctx, span{
		operation: operation, kind: typeSend, on: trace.SpanKindProducer, name: target.Path,
		destination: []attribute.KeyValue{text(destinationName, target.Path)},
		contexts:    contexts, count: len(messages), at: arrivalOf(ctx),
	})
	return ctx, &Sending{began, messages}
}

// End ends the span with the outcome of the send.
func (s *Sending) End(err error) {
	if s == nil {
		return
	}
	if len(s.messages) == 1 { // now it has an id, also if the sender set none
		s.span.SetAttributes(single(s.messages[0])...)
	}
	if err != nil {
		fail(s.span, semantics.CodeOf(err))
	}
	s.span.End()
}

// EndEach is End for SendEach. It reports one failure of several.
func (s *Sending) EndEach(errs []error) {
	if s == nil {
		return
	}
	for _, err := range errs {
		if err != nil {
			s.End(err)
			return
		}
	}
	s.End(nil)
}

// Transaction is the span of a transaction. A nil *Transaction is that of no span.
type Transaction struct {
	traces *Traces
	span   trace.Span
}

// Transact begins the span of a transaction, whose context goes with the messages that it sends. The caller must call
// End.
func (t *Traces) Transact(ctx context.Context, operation string) (context.Context, *Transaction) {
	if t == nil {
		return ctx, nil
	}
	ctx, began := t.begin(ctx, span{operation: operation, kind: typeSend, on: trace.SpanKindClient, at: arrivalOf(ctx)})
	return ctx, &Transaction{t, began}
}

// End ends the span with the operations that took effect, or with the error.
func (t *Transaction) End(operations []semantics.Operation, err error) {
	if t == nil {
		return
	}
	count := 0
	for _, o := range operations {
		contexts := append(
			contextsOf(o.Messages...),
			t.traces.held.take(o.Tokens)...,
		)
		for _, c := range contexts {
			if c.SpanID() != t.span.SpanContext().SpanID() {
				t.span.AddLink(trace.Link{SpanContext: c})
			}
		}
		count += len(o.Messages) + len(o.Tokens)
	}
	t.span.SetAttributes(attribute.Int(messageCount, count))
	if err != nil {
		fail(t.span, semantics.CodeOf(err))
	}
	t.span.End()
}
