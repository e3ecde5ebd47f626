package broker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Stamp returns the properties that a send adds to a message, nil for none. It must not change the message, and is
// called by several goroutines.
type Stamp func(ctx context.Context, m *semantics.Message) map[string]semantics.Value

// WithStamp adds the properties of stamp to each message that is sent (COMP-20). Messages that would be too large with
// them, by the limits that the target had within the last minute, stay as they are. The properties do not count when a
// repeat is compared with the first call (IDEM-1).
func WithStamp(stamp Stamp) Option { return func(b *Broker) { b.stamps.stamp = stamp } }

// entityReader is the part of a Store that has the options of entities.
type entityReader interface {
	GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error)
}

// stamps adds properties to messages, as far as they fit.
type stamps struct {
	stamp Stamp // nil: adds nothing
	store entityReader

	mu    sync.Mutex
	known map[string]sizeLimits // by folded path
}

// sizeLimits are what a message and a batch may have, in bytes, as they were read.
type sizeLimits struct {
	message, batch int64
	until          time.Time // when they are read again
}

const (
	limitsKeptFor   = time.Minute
	mostKnownLimits = 10_000
)

// stamped are messages that have got stamps, with the properties that they had before.
type stamped []struct {
	message *semantics.Message
	before  map[string]semantics.Value
}

// undo takes the stamps away, so that another try with the same messages has the digest of this one.
func (s stamped) undo() {
	for _, one := range s {
		one.message.Properties = one.before
	}
}

// add stamps the messages of one call to a target.
func (s *stamps) add(ctx context.Context, target semantics.Target, messages []*semantics.Message) (done stamped) {
	if s.stamp == nil {
		return nil
	}
	total, limits := int64(0), sizeLimits{}
	for _, m := range messages {
		total += m.Size()
	}
	for _, m := range messages {
		added := s.stamp(ctx, m)
		if len(added) == 0 {
			continue
		}
		if limits == (sizeLimits{}) {
			var ok bool
			if limits, ok = s.limits(ctx, target); !ok {
				return nil
			}
		}
		size := (&semantics.Message{Properties: added}).HeaderSize()
		isTooLarge := m.Size()+size > limits.message || m.HeaderSize()+size > semantics.MaxHeaderSize ||
			len(messages) > 1 && total+size > limits.batch
		if isTooLarge {
			continue
		}
		total += size
		done = append(done, stamped{{m, m.Properties}}...)
		maps.Copy(added, m.Properties)
		m.Properties = added
	}
	return done
}

// limits returns the limits of a target. It reports false if they cannot be read; then the send fails too, or nothing
// is lost but the stamp.
func (s *stamps) limits(ctx context.Context, target semantics.Target) (sizeLimits, bool) {
	name := semantics.Fold(target.Path)
	s.mu.Lock()
	known, ok := s.known[name]
	s.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known, true
	}
	kind := semantics.QueueKind
	if target.IsTopic {
		kind = semantics.TopicKind
	}
	entity, err := s.store.GetEntity(ctx, kind, target.Path)
	if err != nil {
		return sizeLimits{}, false
	}
	known = sizeLimits{
		message: entity.Options.MaxMessageBytes(), batch: entity.Options.MaxBatchBytes(),
		until: time.Now().Add(limitsKeptFor),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostKnownLimits {
		s.known = map[string]sizeLimits{}
	}
	s.known[name] = known
	return known, true
}

// addToAll stamps the messages that operations send.
func (s *stamps) addToAll(ctx context.Context, operations []semantics.Operation) (done stamped) {
	for _, o := range operations {
		if o.Verb == semantics.OperationSend {
			target := semantics.Target{Path: o.Source.Path, IsTopic: o.IsTopic}
			done = append(done, s.add(ctx, target, o.Messages)...)
		}
	}
	return done
}
