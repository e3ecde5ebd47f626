package account

import (
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// MaxPrefetchBytes bounds the bytes of messages that are fetched ahead (RECV-12). One message always fits.
const MaxPrefetchBytes = 8 << 20

// LockLook is how often a subscription that has unsettled messages looks at the queue's LockDuration: often enough to
// renew the shortest locks in time, however long they were before.
const LockLook = semantics.MinLockDuration / 5

// ahead is what was fetched beyond what the client has credits for (RECV-12). It counts as used credits, of which there
// are more by that. Locks run from the fetch and are not renewed here, so a message that waits too long has failed as
// if a client had been too slow for it.
type ahead struct {
	account  *Account
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

// TakeAhead takes out of what was fetched ahead what the client has credits for now, and what is more than it wants,
// which is to be given back with its credits. At the end and while the Broker drains all goes back.
func (a *Account) TakeAhead(isDraining bool) (now, back *delivery.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, isOver := a.ahead, isDraining || a.life.Err() != nil
	return f.next(isOver), f.surplus(isOver)
}

// add puts in what was fetched: nothing, of no source, if the client lowered its credits meanwhile.
func (f *ahead) add(taken *delivery.Delivery) {
	if len(taken.Tokens()) == 0 {
		return
	}
	f.template = taken.Empty()
	endsAt := time.Now().Add(f.account.lockFor)
	for i, m := range taken.Messages {
		f.messages = append(f.messages, prefetched{m, taken.Tokens()[i], endsAt})
	}
	f.count()
	loop.Poke(f.account.Fetched)
}

// lengthen puts the ends of the locks off.
func (f *ahead) lengthen(longer time.Duration) {
	for i := range f.messages {
		f.messages[i].endsAt = f.messages[i].endsAt.Add(longer)
	}
}

// handled notes how long the client had a message. The last ones count most.
func (f *ahead) handled(took time.Duration) {
	f.handling += (took - f.handling) / 8
	f.limit()
}

// limit sets how many messages are fetched ahead: as many as were asked for, unless the last of them would wait for
// longer than its lock lasts; no more than there are when what one more fetch may return does not fit; none while the
// client has paused.
func (f *ahead) limit() {
	a := f.account
	most := a.Prefetch
	if f.handling > 0 {
		most = min(most, int(a.lockFor/f.handling))
	}
	if isCut := most < a.Prefetch; isCut != f.isCut {
		f.isCut = isCut
		if isCut {
			a.PrefetchesCut.Add(1)
		}
	}
	if f.bytes+semantics.MaxAnswerBytes > MaxPrefetchBytes {
		// What the client has credits for leaves at once, and nothing is fetched in its place.
		leaving := min(max(a.credits.granted-len(a.unsettled), 0), len(f.messages))
		most = min(most, len(f.messages)-leaving)
	}
	if a.credits.granted == 0 {
		most = 0
	}
	a.credits.ahead = most
}

// next takes out what the client has credits for.
func (f *ahead) next(isOver bool) *delivery.Delivery {
	a := f.account
	f.dropEnded()
	n := max(min(len(f.messages), a.credits.granted-len(a.unsettled)), 0)
	if isOver {
		n = 0
	}
	if n > 0 && time.Until(f.messages[0].endsAt) < 2*a.lockFor/3 {
		a.renewSoon = true
	}
	out := f.take(0, n)
	a.book(nil, out)
	return out
}

// dropEnded drops what has been here for so long that its lock has ended, or would before it could be renewed: that
// counts as a failed delivery. A client for which it happens is too slow for any prefetch, until it has shown
// otherwise.
func (f *ahead) dropEnded() {
	a, soon := f.account, time.Now().Add(2*LockLook)
	bytes := int64(0)
	left := slices.DeleteFunc(f.messages, func(m prefetched) bool {
		isOver := m.endsAt.Before(soon)
		if isOver {
			bytes += m.message.AnswerSize()
		}
		return isOver
	})
	if dropped := len(f.messages) - len(left); dropped > 0 {
		semantics.MemoryOf(a.life).Give(bytes)
		f.messages, f.handling = left, max(f.handling, 2*a.lockFor)
		a.use(nil, -dropped)
		f.count()
		a.freed()
	}
}

// surplus takes out what is more than the client wants, the last ones, and everything at the end.
func (f *ahead) surplus(isOver bool) *delivery.Delivery {
	n := min(len(f.messages), max(-f.account.credits.free(), 0))
	if isOver {
		n = len(f.messages)
	}
	return f.take(len(f.messages)-n, n)
}

// take takes out n messages from a place on.
func (f *ahead) take(from, n int) *delivery.Delivery {
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

// count notes what is here after a change, which may let more be fetched.
func (f *ahead) count() {
	f.bytes = 0
	for _, m := range f.messages {
		f.bytes += m.message.Size
	}
	f.limit()
	loop.Poke(f.account.CreditsFree)
}
