package otlp

import (
	"context"
	"sync/atomic"

	tracesdk "go.opentelemetry.io/otel/sdk/trace"
)

// maxQueue is how many spans may wait to be exported. Further ones are dropped and counted.
const maxQueue = 2048

// Outcomes of spans, as in metrics.
const (
	exported = "exported"
	failed   = "failed"  // the collector did not take them
	dropped  = "dropped" // the queue was full
)

// queue is the processor of batches of the SDK, which counts neither what it exports nor what it drops.
type queue struct {
	tracesdk.SpanProcessor

	count   func(outcome string, n int)
	pending *atomic.Int64
}

func newQueue(exporter tracesdk.SpanExporter, count func(outcome string, n int)) *queue {
	pending := &atomic.Int64{}
	return &queue{
		SpanProcessor: tracesdk.NewBatchSpanProcessor(
			counting{exporter, count, pending}, tracesdk.WithMaxQueueSize(maxQueue),
		),
		count: count, pending: pending,
	}
}

// OnEnd queues a span, or drops it. It does not block.
func (q *queue) OnEnd(s tracesdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.pending.Add(1) > maxQueue {
		q.pending.Add(-1)
		q.count(dropped, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// counting counts what an exporter exports.
type counting struct {
	tracesdk.SpanExporter

	count   func(outcome string, n int)
	pending *atomic.Int64
}

// ExportSpans exports spans and counts them.
func (c counting) ExportSpans(ctx context.Context, spans []tracesdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.pending.Add(int64(-len(spans)))
	if err != nil {
		c.count(failed, len(spans))
		return err
	}
	c.count(exported, len(spans))
	return nil
}
