package obs

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// shortLife is the time to live below which a message is counted as short-lived (TTL-14).
const shortLife = time.Second

// settlementNames are the verbs of metrics.
var settlementNames = map[semantics.OperationVerb]string{
	semantics.OperationComplete: Complete, semantics.OperationAbandon: Abandon,
	semantics.OperationDefer: Defer, semantics.OperationDeadLetter: DeadLetter,
}

// Transacted counts what a transaction has done, as its verbs do.
func (m *Metrics) Transacted(result *broker.TransactionResult) {
	for i, o := range result.Operations {
		switch {
		case o.Verb == semantics.OperationSend:
			m.Sent(semantics.Target{Path: o.Source.Path, IsTopic: o.IsTopic}, o.Messages, result.Results[i].Sent)
		case o.Verb == semantics.OperationCancel:
			m.Removed(o.Source.Path, Cancel, int64(len(o.Numbers)))
		case o.Verb.Settles():
			m.CountSettled(o.Source, settlementNames[o.Verb], make([]semantics.Code, len(o.Tokens)))
		}
	}
}

// Sent counts the outcomes of a send. results are those of the first messages: a send that stored nothing has none.
func (m *Metrics) Sent(target semantics.Target, messages []*semantics.Message, results []semantics.SendResult) {
	stored, shortLived := 0, 0
	for i, r := range results {
		if r.Deduplicated {
			continue
		}
		stored++
		if ttl := messages[i].TimeToLive; ttl != nil && *ttl < shortLife {
			shortLived++
		}
	}
	entity := m.labels.Of(target.Path)
	m.sent.WithLabelValues(entity).Add(float64(stored))
	if shortLived > 0 {
		m.shortLived.WithLabelValues(entity).Add(float64(shortLived))
	}
	if dropped := len(results) - stored; dropped > 0 {
		m.deduplicated.WithLabelValues(entity).Add(float64(dropped))
	}
}

// Received counts messages that were delivered by the call of ctx, and records a span.
func (m *Metrics) Received(ctx context.Context, source semantics.Source, messages []*semantics.Received) {
	if len(messages) > 0 {
		m.received.WithLabelValues(m.labels.Of(source.String())).Add(float64(len(messages)))
		m.Traces.Received(ctx, source, messages)
	}
}

// Settlement is what was asked of a settlement.
type Settlement struct {
	Source semantics.Source
	Verb   string
	Tokens []semantics.LockToken
	Reason string // of a dead letter; empty if the request has none
}

// Settled counts the outcomes of a settlement, those of its tokens, and records a span.
func (m *Metrics) Settled(ctx context.Context, s Settlement, codes []semantics.Code) {
	m.CountSettled(s.Source, s.Verb, codes)
	m.Traces.Settled(ctx, s.Source, s.Verb, s.Tokens, codes, s.Reason)
}

// CountSettled is Settled without a span. A message that was refused and is still locked counts neither as settled nor
// as lost.
func (m *Metrics) CountSettled(source semantics.Source, verb string, codes []semantics.Code) {
	settled := 0
	for _, code := range codes {
		switch code {
		case "", semantics.DurabilityNotMet:
			settled++
		case semantics.MessageLockLost, semantics.SessionLockLost:
			m.LockLost(source, verb)
		default:
		}
	}
	if settled > 0 {
		m.settled.WithLabelValues(m.labels.Of(source.String()), verb).Add(float64(settled))
	}
}

// LockLost counts a settlement or renewal whose lock was lost.
func (m *Metrics) LockLost(source semantics.Source, verb string) {
	m.locksLost.WithLabelValues(m.labels.Of(source.String()), verb).Inc()
}

// Removed counts messages that were removed without being received. entity is a path, or a semantics.Source as text.
func (m *Metrics) Removed(entity, verb string, n int64) {
	if n > 0 {
		m.removed.WithLabelValues(m.labels.Of(entity), verb).Add(float64(n))
	}
}

// Resubmitted counts dead letters that were sent again.
func (m *Metrics) Resubmitted(source semantics.Source, n int) {
	if n > 0 {
		m.resubmitted.WithLabelValues(m.labels.Of(source.String())).Add(float64(n))
	}
}
