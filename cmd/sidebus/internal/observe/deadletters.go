// Package observe counts and logs what the store reports of its work.
package observe

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
)

// deadLetterLine is the message of the log line about one dead letter.
const deadLetterLine = "dead letter"

// deadLetterBacklog is how many dead letters may wait for their log line. Beyond it lines are left out and counted, so
// that a poisoned queue cannot slow down the sidecar.
const deadLetterBacklog = 4096

// DeadLetters counts the messages that become dead letters in this sidecar's calls and, if asked to, writes a line for
// each (DLQ-24).
type DeadLetters struct {
	counter *prometheus.CounterVec
	label   func(entity string) string
	lines   chan deadLetter // nil: neither lines nor spans
	missed  atomic.Int64
	logs    bool
	span    DeadLetterSpan // nil: none
}

// DeadLetterSpan records the span of a dead letter.
type DeadLetterSpan func(ctx context.Context, path, cause string, m *semantics.Received)

type deadLetter struct {
	entity, cause string
	number        int64
}

// sides are where the dead letter can be.
func (d deadLetter) sides() []semantics.SubQueue {
	switch d.cause {
	case semantics.ReasonDestinationNotFound, semantics.ReasonDestinationDisabled, semantics.ReasonDestinationFull:
		return []semantics.SubQueue{semantics.TransferDeadLetterQueue}
	case semantics.ReasonTooManyHops:
		return []semantics.SubQueue{semantics.DeadLetterQueue, semantics.TransferDeadLetterQueue}
	default:
		return []semantics.SubQueue{semantics.DeadLetterQueue}
	}
}

// NewDeadLetters registers the count of dead letters, for at most maxEntities entities by name, and prepares their log
// lines and spans. span may be nil.
func NewDeadLetters(registry *prometheus.Registry, maxEntities int, withLines bool, span DeadLetterSpan) *DeadLetters {
	d := &DeadLetters{logs: withLines, span: span, label: proxy.EntityLabels(maxEntities)}
	d.counter = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sidebus_dead_lettered_messages_total",
		Help: "Messages that this sidecar dead-lettered, by entity and cause.",
	}, []string{"entity", "cause"})
	registry.MustRegister(d.counter)
	if withLines || span != nil {
		d.lines = make(chan deadLetter, deadLetterBacklog)
	}
	return d
}

// Observe is a redisstore.Options.DeadLettered. It does not block.
func (d *DeadLetters) Observe(entity, cause string, numbers []int64) {
	d.counter.WithLabelValues(d.label(entity), cause).Add(float64(len(numbers)))
	if d.lines == nil || !d.logs && cause == byApplication {
		return
	}
	for _, n := range numbers {
		select {
		case d.lines <- deadLetter{entity: entity, cause: cause, number: n}:
		default:
			d.missed.Add(1)
		}
	}
}

// byApplication is the cause of dead letters that clients asked for. The span of the settlement has them.
const byApplication = "Application"

// Write writes the lines and records the spans until ctx ends. The message is looked up. If it was taken away already,
// the line is written without a message id, and no span is recorded.
func (d *DeadLetters) Write(ctx context.Context, store semantics.Receiver, logger *slog.Logger) {
	for {
		select {
		case letter := <-d.lines:
			d.writeOne(ctx, store, logger, letter)
		case <-ctx.Done():
			return
		}
	}
}

func (d *DeadLetters) writeOne(ctx context.Context, store semantics.Receiver, logger *slog.Logger, letter deadLetter) {
	fields := []any{"entity", letter.entity, "cause", letter.cause, "sequenceNumber", letter.number}
	for _, side := range letter.sides() {
		source := semantics.Source{Path: letter.entity, SubQueue: side}
		found, err := store.Peek(ctx, source, letter.number, 1, semantics.ShowAll)
		if err == nil && len(found) == 1 && found[0].SequenceNumber == letter.number {
			fields = append(fields, "messageId", found[0].MessageID, "reason", found[0].DeadLetterReason)
			if d.span != nil && letter.cause != byApplication {
				d.span(ctx, letter.entity, letter.cause, found[0])
			}
			break
		}
	}
	if !d.logs {
		return
	}
	logger.Warn(deadLetterLine, fields...)
	if missed := d.missed.Swap(0); missed > 0 {
		logger.Warn("dead letters were too many to log", "leftOut", missed)
	}
}
