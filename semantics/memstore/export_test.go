package memstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// SweepOnce does once what Sweep does all the time.
func (s *Store) SweepOnce(ctx context.Context, upkeep semantics.Upkeep) error {
	_ = s.sweepOnce(ctx, upkeep)
	return nil
}

// WithMaxIdleSessions remembers fewer sessions that have nothing any more than semantics.MaxIdleSessions.
func WithMaxIdleSessions(n int) Option { return func(s *Store) { s.maxIdleSessions = n } }

// WithMaxSessionStates keeps fewer session states per queue than semantics.MaxSessionStates.
func WithMaxSessionStates(n int) Option { return func(s *Store) { s.maxSessionStates = n } }

// WithTopicLimits lets the subscriptions of a topic be and have fewer than RULE-4 permits.
func WithTopicLimits(subscriptions, sqlFilters, correlationFilters int) Option {
	return func(s *Store) { s.ofTopic = topicLimits{subscriptions, sqlFilters, correlationFilters} }
}
