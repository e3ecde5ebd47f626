package obs

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// shortLife is the time to live below which a message is counted as short-lived (TTL-14).
const shortLife = time.Second

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

// Received counts messages that were delivered.
func (m *Metrics) Received(source semantics.Source, n int) {
	if n > 0 {
		m.received.WithLabelValues(m.labels.Of(source.String())).Add(float64(n))
	}
}

// Settled counts the outcomes of a settlement. A message that was refused and is still locked counts neither as settled
// nor as lost.
func (m *Metrics) Settled(source semantics.Source, verb string, codes []semantics.Code) {
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
