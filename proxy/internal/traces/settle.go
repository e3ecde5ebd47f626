package traces

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/semantics"
)

// Settled records the span of a settlement, linked to the messages as far as this sidecar delivered them. reason is
// that of a dead letter, if the request has one. codes are those of the tokens.
func (t *Traces) Settled(
	ctx context.Context, source semantics.Source, verb string, tokens []semantics.LockToken, codes []semantics.Code,
	reason string,
) {
	if t == nil || len(tokens) == 0 {
		return
	}
	_, settled := t.begin(ctx, span{
		operation: verb, kind: typeSettle, on: trace.SpanKindClient, name: source.String(),
		destination: destinationOf(source), contexts: t.held.take(tokens), count: len(tokens), at: arrivalOf(ctx),
	})
	if verb == "dead_letter" {
		noteDeadLetter(settled, reason)
	}
	for _, code := range codes {
		if !code.Took() {
			fail(settled, code)
			break
		}
	}
	settled.End()
}

// DeadLettered records that Sidebus has dead-lettered a message without being asked to. path is that of its entity.
func (t *Traces) DeadLettered(ctx context.Context, path, cause string, m *semantics.Received) {
	_, noted := t.begin(ctx, span{
		operation: "dead_letter", kind: typeSettle, on: trace.SpanKindInternal, name: path,
		destination: destinationOf(semantics.Source{Path: path}), contexts: contextsOf(&m.Message), count: 1,
		at: time.Now(),
	}, single(&m.Message)...)
	noteDeadLetter(noted, cause)
	noted.End()
}

// noteDeadLetter adds the event of a dead letter. Its description is left out: it may have what the app knows of the
// message.
func noteDeadLetter(to trace.Span, reason string) {
	to.AddEvent(
		deadLetteredEvent, trace.WithAttributes(text(deadLetterReason, semantics.Shorten(reason))),
	)
}
