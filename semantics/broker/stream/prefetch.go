package stream

import (
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// Bounds of what a subscription fetches ahead (RECV-12): messages, and bytes of them. One message always fits.
const (
	MaxPrefetch      = 1000
	MaxPrefetchBytes = 8 << 20
)

// prefetch is what a subscription has fetched beyond what its client has credits for (RECV-12). It counts as used
// credits, of which there are more by that. Locks run from the fetch and are not renewed here, so a message that waits
// too long has failed as if a client had been too slow for it. Its fields are under the subscription's mutex.
type prefetch struct {
	sub      *Subscription
	wake     chan struct{} // has room for one: something has changed
	messages []prefetched
	template *delivery.Delivery // of the source; nil: nothing was fetched yet
	bytes    int64              // of the messages
	handling time.Duration      // how long the client has a message, of late
	isCut    bool               // the client is too slow for as many as it asked for
}

type prefetched struct {
	message *semantics.Received
	token   semantics.LockToken
	endsAt  time.Time // no earlier than the end of its lock, by this process' clock
}

// add puts in what was fetched.
func (f *prefetch) add(taken *delivery.Delivery) {
	f.template = taken.Empty()
	endsAt := time.Now().Add(f.sub.lockFor)
	for i, m := range taken.Messages {
		f.messages = append(f.messages, prefetched{m, taken.Tokens()[i], endsAt})
	}
	f.count()
	loop.Poke(f.wake)
}

// lengthen puts the ends of the locks off.
func (f *prefetch) lengthen(longer time.Duration) {
	for i := range f.messages {
		f.messages[i].endsAt = f.messages[i].endsAt.Add(longer)
	}
}

// handled notes how long the client had a message. The last ones count most.
func (f *prefetch) handled(took time.Duration) {
	f.handling += (took - f.handling) / 8
	f.limit()
}

// limit sets how many messages are fetched ahead: as many as were asked for, unless the last of them would wait for
// longer than its lock lasts; no more than there are when what one more fetch may give has no room; none while the
// client has paused.
func (f *prefetch) limit() {
	s := f.sub
	most := s.options.Prefetch
	if f.handling > 0 {
		most = min(most, int(s.lockFor/f.handling))
	}
	if isCut := most < s.options.Prefetch; isCut != f.isCut {
		f.isCut = isCut
		if isCut {
			s.streams.prefetchesCut.Add(1)
		}
	}
	if f.bytes+semantics.MaxAnswerBytes > MaxPrefetchBytes {
		// What the client has credits for leaves at once, and nothing is fetched in its place.
		leaving := min(max(s.credits.granted-len(s.unsettled), 0), len(f.messages))
		most = min(most, len(f.messages)-leaving)
	}
	if s.credits.granted == 0 {
		most = 0
	}
	s.credits.ahead = most
}

// run hands on what was fetched, in its order, for as long as the subscription lives.
func (f *prefetch) run() {
	s := f.sub
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for {
		s.mu.Lock()
		isOver := s.life.Err() != nil
		now, back := f.next(), f.surplus()
		s.mu.Unlock()
		if len(back.Tokens()) > 0 {
			_ = back.Undelivered(s.life) // what cannot be given back comes again when its lock ends
			s.unuse(nil, len(back.Tokens()))
		}
		switch {
		case len(now.Tokens()) > 0:
			s.handOver(now)
		case isOver:
			return
		default:
			s.pass(f.wake, s.isDraining(), look.C)
		}
	}
}

// next takes out what the client has credits for.
func (f *prefetch) next() *delivery.Delivery {
	s := f.sub
	f.dropEnded()
	n := max(min(len(f.messages), s.credits.granted-len(s.unsettled)), 0)
	if s.life.Err() != nil || s.isDraining() {
		n = 0
	}
	if n > 0 && time.Until(f.messages[0].endsAt) < 2*s.lockFor/3 {
		s.renewSoon = true
	}
	out := f.take(0, n)
	s.book(nil, out)
	return out
}

// dropEnded drops what has been here for so long that its lock has ended, or would before it could be renewed: that
// counts as a failed delivery. A client for which it happens is too slow for any prefetch, until it has shown
// otherwise.
func (f *prefetch) dropEnded() {
	s, soon := f.sub, time.Now().Add(2*lockLook)
	bytes := int64(0)
	left := slices.DeleteFunc(f.messages, func(m prefetched) bool {
		isOver := m.endsAt.Before(soon)
		if isOver {
			bytes += m.message.AnswerSize()
		}
		return isOver
	})
	if dropped := len(f.messages) - len(left); dropped > 0 {
		semantics.MemoryOf(s.life).Give(bytes)
		f.messages, f.handling = left, max(f.handling, 2*s.lockFor)
		s.use(nil, -dropped)
		f.count()
		s.freed()
	}
}

// surplus takes out what is more than the client wants, the last ones, and everything at the end.
func (f *prefetch) surplus() *delivery.Delivery {
	s := f.sub
	n := min(len(f.messages), max(-s.credits.free(), 0))
	if s.life.Err() != nil || s.isDraining() {
		n = len(f.messages)
	}
	return f.take(len(f.messages)-n, n)
}

// take takes out n messages from a place on.
func (f *prefetch) take(from, n int) *delivery.Delivery {
	if n == 0 {
		return &delivery.Delivery{}
	}
	out := f.template.Empty()
	for _, m := range f.messages[from : from+n] {
		out.Add(m.message, m.token)
	}
	f.messages = slices.Delete(f.messages, from, from+n)
	f.count()
	return out
}

// count notes what is here after a change, which may make room for more.
func (f *prefetch) count() {
	f.bytes = 0
	for _, m := range f.messages {
		f.bytes += m.message.Size
	}
	f.limit()
	loop.Poke(f.sub.wake)
}

// PrefetchesCut is how often subscriptions have begun to fetch less ahead for a client than it wants, because it is too
// slow for it (RECV-12).
func (r *Streams) PrefetchesCut() int64 { return r.prefetchesCut.Load() }
