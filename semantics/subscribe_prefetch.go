package semantics

import (
	"slices"
	"time"
)

// MaxPrefetch is the most messages a subscription fetches ahead (RECV-12).
const MaxPrefetch = 1000

// prefetch is what a subscription has fetched beyond what its client has credits for (RECV-12). It counts as used credits, of which
// there are more by that. Locks run from the fetch and are not renewed here, so a message that waits too long has failed as if a
// client had been too slow for it. Its fields are under the subscription's mutex.
type prefetch struct {
	sub      *Subscription
	wake     chan struct{} // has room for one: something has changed
	messages []prefetched
	handling time.Duration // how long the client has a message, of late
}

type prefetched struct {
	message *Received
	token   LockToken
	endsAt  time.Time // no earlier than the end of its lock, by this process' clock
}

// add puts in what was fetched.
func (f *prefetch) add(delivery *Delivery) {
	endsAt := time.Now().Add(f.sub.lockFor)
	for i, m := range delivery.Messages {
		f.messages = append(f.messages, prefetched{m, delivery.tokens[i], endsAt})
	}
	poke(f.wake)
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

// limit sets how many messages are fetched ahead: as many as were asked for, unless the last of them would wait for longer than its
// lock lasts; none while the client has paused.
func (f *prefetch) limit() {
	s := f.sub
	most := s.options.Prefetch
	if f.handling > 0 {
		most = min(most, int(s.lockFor/f.handling))
	}
	if most < s.options.Prefetch && s.credits.ahead == s.options.Prefetch {
		s.broker.prefetchesCut.Add(1)
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
		if len(back.tokens) > 0 {
			_ = back.Undelivered(s.life) // what cannot be given back comes again when its lock ends
			s.unuse(nil, len(back.tokens))
		}
		switch {
		case len(now.tokens) > 0:
			s.hand(now)
		case isOver:
			return
		default:
			s.pass(f.wake, s.broker.Draining(), look.C)
		}
	}
}

// next takes out what the client has credits for.
func (f *prefetch) next() *Delivery {
	s := f.sub
	f.dropEnded()
	n := max(min(len(f.messages), s.credits.granted-len(s.unsettled)), 0)
	if s.life.Err() != nil || s.broker.Draining() {
		n = 0
	}
	if n > 0 && time.Until(f.messages[0].endsAt) < 2*s.lockFor/3 {
		s.renewSoon = true
	}
	out := f.take(0, n)
	s.book(nil, out)
	return out
}

// dropEnded drops what has been here for so long that its lock has ended, or would before it could be renewed: that counts as a
// failed delivery. A client for which it happens is too slow for any prefetch, until it has shown otherwise.
func (f *prefetch) dropEnded() {
	s, soon := f.sub, time.Now().Add(2*lockLook)
	isOver := func(m prefetched) bool { return m.endsAt.Before(soon) }
	left := slices.DeleteFunc(f.messages, isOver)
	if dropped := len(f.messages) - len(left); dropped > 0 {
		f.messages, f.handling = left, max(f.handling, 2*s.lockFor)
		s.use(nil, -dropped)
		f.limit()
		s.freed()
	}
}

// surplus takes out what is more than the client wants, the last ones, and everything at the end.
func (f *prefetch) surplus() *Delivery {
	s := f.sub
	n := min(len(f.messages), max(-s.credits.free(), 0))
	if s.life.Err() != nil || s.broker.Draining() {
		n = len(f.messages)
	}
	return f.take(len(f.messages)-n, n)
}

// take takes out n messages from a place on.
func (f *prefetch) take(from, n int) *Delivery {
	out := &Delivery{broker: f.sub.broker, source: f.sub.source, mode: f.sub.options.Mode}
	for _, m := range f.messages[from : from+n] {
		out.Messages, out.tokens = append(out.Messages, m.message), append(out.tokens, m.token)
	}
	f.messages = slices.Delete(f.messages, from, from+n)
	return out
}

// PrefetchesCut is how often this Broker has begun to fetch less ahead for a client than it wants, because it is too slow for it
// (RECV-12).
func (b *Broker) PrefetchesCut() int64 { return b.prefetchesCut.Load() }
