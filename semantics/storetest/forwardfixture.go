package storetest

import (
	"errors"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Most tests of forwarding have orders forward to one of these queues.
var (
	archive, attic = semantics.Source{Path: "archive"}, semantics.Source{Path: "attic"}
	deadArchive    = deadOf(archive)
)

// undelivered names the transfer dead-letter queue of a source.
func undelivered(source semantics.Source) semantics.Source {
	return semantics.Source{Path: source.Path, SubQueue: semantics.TransferDeadLetterQueue}
}

func forwardsTo(path string) change {
	return func(o *semantics.Options) { o.ForwardTo = path }
}

func forwardsDeadTo(path string) change {
	return func(o *semantics.Options) { o.ForwardDeadLetteredMessagesTo = path }
}

// createForwarding makes archive, and orders, which forwards to it.
func (h *fixture) createForwarding(changes ...change) {
	h.t.Helper()
	h.createNamed(archive.Path)
	h.create(append(changes, forwardsTo(archive.Path))...)
}

// updateNamed sets options of a queue.
func (h *fixture) updateNamed(queue semantics.Source, c change, names ...string) {
	h.t.Helper()
	var options semantics.Options
	c(&options)
	h.ok(second(h.Store.UpdateEntity(h.t.Context(), semantics.QueueKind, queue.Path, options, names)))
}

// forwardTo sets or, with "", clears where orders forwards to.
func (h *fixture) forwardTo(path string) {
	h.t.Helper()
	h.update(forwardsTo(path), "forwardTo")
}

func (h *fixture) deleteQueue(queue semantics.Source) {
	h.t.Helper()
	h.ok(h.broker.DeleteEntity(h.t.Context(), semantics.QueueKind, queue.Path))
}

// sendToQueue sends messages to a queue in one call.
func (h *fixture) sendToQueue(queue semantics.Source, messages ...*semantics.Message) {
	h.t.Helper()
	h.ok(second(h.broker.Send(h.t.Context(), semantics.ToQueue(queue.Path), messages)))
}

// forward forwards all messages from all sources until none are left, as a sweep does.
func (h *fixture) forward() {
	h.t.Helper()
	h.forwardBy(h.broker)
}

func (h *fixture) forwardBy(broker *broker.Broker) {
	h.t.Helper()
	sources := h.forwarding()
	for range semantics.MaxForwardHops + 2 { // each round takes every message one hop on
		for _, source := range sources {
			h.ok(broker.Forward(h.t.Context(), source))
		}
	}
}

// forwarding returns all sources that forward.
func (h *fixture) forwarding() (sources []semantics.Source) {
	h.t.Helper()
	add := func(entities []semantics.Entity) {
		for _, e := range entities {
			source := semantics.Source{Path: e.Name}
			if e.Options.ForwardTo != "" {
				sources = append(sources, source)
			}
			if e.Options.ForwardDeadLetteredMessagesTo != "" {
				sources = append(sources, deadOf(source))
			}
			if e.Options.UnmatchedTo != "" {
				sources = append(sources, unmatchedOf(e.Name))
			}
		}
	}
	topics := h.entities(semantics.TopicKind, "")
	add(h.entities(semantics.QueueKind, ""))
	add(topics)
	for _, topic := range topics {
		add(h.entities(semantics.SubscriptionKind, topic.Name))
	}
	return sources
}

func (h *fixture) entities(kind semantics.Kind, topic string) []semantics.Entity {
	h.t.Helper()
	entities, _, err := h.Store.ListEntities(h.t.Context(), kind, topic, "", 1000)
	h.ok(err)
	return entities
}

// unmatchedOf is where the messages are on their way that no subscription of a topic gets.
func unmatchedOf(topic string) semantics.Source {
	return semantics.Source{Path: semantics.SubscriptionPath(topic, semantics.UnmatchedSubscription)}
}

// countsOf counts a queue, without sizes and times.
func (h *fixture) countsOf(queue semantics.Source) semantics.Runtime {
	h.t.Helper()
	r, err := h.broker.Runtime(h.t.Context(), semantics.QueueKind, queue.Path)
	h.ok(err)
	checkSum(h.t, r)
	r.SizeInBytes, r.OldestEnqueuedAt, r.AvailableSince, r.Partitions = 0, time.Time{}, time.Time{}, nil
	r.LastSequence = 0
	return r
}

// begin begins a transfer from a source, or returns the one under way, and says what it carries.
func (h *fixture) begin(source semantics.Source, path string, limit int) semantics.Transfer {
	h.t.Helper()
	to, err := h.Store.Destination(h.t.Context(), path)
	h.ok(err)
	transfer, err := h.Store.BeginTransfer(h.t.Context(), source, to, limit)
	h.ok(err)
	return transfer
}

// carried returns the messages of a transfer as they are to arrive, and those that follow them.
func carried(transfer semantics.Transfer) []semantics.Publication {
	publications := make([]semantics.Publication, len(transfer.Messages))
	for i, m := range transfer.Messages {
		message := m.Message
		message.Forwarded = &semantics.Forwarded{Hops: 1, EnqueuedSequenceNumber: m.EnqueuedSequenceNumber}
		publications[i].Message = &message
	}
	return publications
}

// arrive lets all of a transfer arrive at a queue and returns what became of each message.
func (h *fixture) arrive(transfer semantics.Transfer) []semantics.Code {
	h.t.Helper()
	return h.arriveWith(transfer, carried(transfer))
}

func (h *fixture) arriveWith(transfer semantics.Transfer, publications []semantics.Publication) (codes []semantics.Code) {
	h.t.Helper()
	arrivals, err := h.Store.Arrive(h.t.Context(), transfer, 0, publications, true)
	h.ok(err)
	h.same(len(arrivals), len(publications))
	for _, a := range arrivals {
		codes = append(codes, a.Refused)
	}
	return codes
}

// isOvertaken checks that a transfer does not arrive any more.
func (h *fixture) isOvertaken(transfer semantics.Transfer) {
	h.t.Helper()
	arrivals, err := h.Store.Arrive(h.t.Context(), transfer, 0, carried(transfer), true)
	if !errors.Is(err, semantics.ErrOvertaken) {
		h.t.Errorf("it was overtaken: %v %v", arrivals, err)
	}
}

// end removes all of a transfer from its source.
func (h *fixture) end(transfer semantics.Transfer) {
	h.t.Helper()
	h.ok(h.Store.EndTransfer(h.t.Context(), transfer, make([]semantics.Fate, len(transfer.Messages))))
}

// wantReasons checks why messages of a source are dead letters, in order of number.
func (h *fixture) wantReasons(source semantics.Source, want ...string) {
	h.t.Helper()
	var reasons []string
	for _, m := range h.peek(source) {
		reasons = append(reasons, m.DeadLetterReason)
	}
	h.same(reasons, want)
}
