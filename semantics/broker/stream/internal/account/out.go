package account

import (
	"slices"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

type delivered = delivery.Delivery

// maxEventBytes bounds the messages of one event, unless a single one is larger, so that a client's limit of what it
// takes at once suffices whatever its credits are.
const maxEventBytes = 256 << 10

// Event is one event for the client. Exactly one of its fields is set.
type Event struct {
	// messages; Delivered or Undelivered of the Subscription must be called, not of the Delivery
	Delivery      *delivery.Delivery
	SessionOpened *semantics.Session // its messages follow
	SessionClosed *ClosedSession
	LocksLost     []semantics.LockToken // of messages that were delivered and can no longer be settled
	Failure       *semantics.Error      // that passes: the subscription goes on (RECV-13)
}

// ClosedSession is a session that a subscription no longer holds.
type ClosedSession struct {
	ID   string
	Lock semantics.LockToken
	Why  SessionEnd
}

// out is an event that waits for the client. There are no more messages in such events than the client has credits for,
// and one failure.
type out struct {
	Event
	session *Session // nil: of none
}

func (a *Account) push(p *Session, e Event) {
	a.out = append(a.out, out{e, p})
	loop.Poke(a.EventReady)
}

// Piece takes from messages what fits into one event, and returns the rest.
func Piece(taken *delivery.Delivery) (rest *delivery.Delivery) {
	return taken.Split(semantics.Fitting(taken.Messages, maxEventBytes, (*semantics.Received).AnswerSize))
}

func (a *Account) pushDelivery(p *Session, taken *delivery.Delivery) {
	for piece := taken; len(piece.Tokens()) > 0; {
		rest := Piece(piece)
		a.push(p, Event{Delivery: piece})
		piece = rest
	}
}

// Fail lets the client hear of a failure that passes, unless it has not read the last one yet.
func (a *Account) Fail(e *semantics.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.out, func(one out) bool { return one.Failure != nil }) {
		a.push(nil, Event{Failure: e})
	}
}

// NextEvent takes the next event of the sessions for the client, which knows of it then. It reports false if there is
// none.
func (a *Account) NextEvent() (Event, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.out) == 0 {
		return Event{}, false
	}
	next := a.out[0]
	a.out[0] = out{}
	if a.out = a.out[1:]; len(a.out) == 0 {
		a.out = nil
	}
	switch {
	case next.SessionOpened != nil:
		next.session.isOpen = true
		next.session.change()
	case next.SessionClosed != nil:
		next.session.remove()
	}
	return next.Event, true
}

// Withdraw takes back the messages of a session that the client has not got yet.
func (p *Session) Withdraw() (taken []*delivery.Delivery) {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.account.out = slices.DeleteFunc(p.account.out, func(one out) bool {
		isTaken := one.session == p && one.Delivery != nil
		if isTaken {
			taken = append(taken, one.Delivery)
		}
		return isTaken
	})
	return taken
}

// WithdrawAll takes back all messages that the client has not got yet, at the end of the subscription.
func (a *Account) WithdrawAll() (taken []*delivery.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.out {
		if one.Delivery != nil {
			taken = append(taken, one.Delivery)
		}
	}
	a.out = nil
	return taken
}
