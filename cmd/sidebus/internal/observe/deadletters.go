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
	lines   chan deadLetter // nil: no lines
	missed  atomic.Int64
}

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
// lines.
func NewDeadLetters(registry *prometheus.Registry, maxEntities int, withLines bool) *DeadLetters {
	d := &DeadLetters{label: proxy.EntityLabels(maxEntities), counter: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sidebus_dead_lettered_messages_total",
		Help: "Messages that this sidecar dead-lettered, by entity and cause.",
	}, []string{"entity", "cause"})}
	registry.MustRegister(d.counter)
	if withLines {
		d.lines = make(chan deadLetter, deadLetterBacklog)
	}
	return d
}

// Observe is a redisstore.Options.DeadLettered. It does not block.
func (d *DeadLetters) Observe(entity, cause string, numbers []int64) {
	d.counter.WithLabelValues(d.label(entity), cause).Add(float64(len(numbers)))
	if d.lines == nil {
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

// Write writes the lines until ctx ends. The message id is looked up; a dead letter that was taken away already has
// none.
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
			break
		}
	}
	logger.Warn(deadLetterLine, fields...)
	if missed := d.missed.Swap(0); missed > 0 {
		logger.Warn("dead letters were too many to log", "leftOut", missed)
	}
}
