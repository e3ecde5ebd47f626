package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// source is a place where messages of a target come to.
type source struct {
	to    target
	place int
	name  string
	dead  bool
}

func (s source) subQueue() sidebusv1.SubQueue_Kind {
	if s.dead {
		return sidebusv1.SubQueue_DEAD_LETTER
	}
	return sidebusv1.SubQueue_NONE
}

// held is a message that a receiver has locked.
type held struct {
	id    id
	token string
	until time.Time
}

// receiver takes messages of a source without sessions and settles them, not always as it should.
type receiver struct {
	*run

	rng   *rand.Rand
	from  source
	stale []held // what it has not settled, to try it when the lock has ended
}

func (r *receiver) work() {
	for !r.isOver() {
		all := r.receive(storetest.RandomLogUniform(r.rng, 250))
		var complete, back, dead []held
		for _, one := range all {
			switch chance := r.rng.IntN(100); {
			case r.isCalm() || chance < 95:
				complete = append(complete, one)
			case chance < 97:
				back = append(back, one)
			case chance < 98 && !r.from.dead:
				dead = append(dead, one)
			case len(r.stale) < 50:
				r.stale = append(r.stale, one)
			}
		}
		r.settle(complete, "complete")
		r.settle(back, "abandon")
		r.settle(dead, "dead-letter")
		r.tryStale()
	}
}

func (r *receiver) receive(most int) []held {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	began := time.Now()
	by := r.any(r.rng)
	response, err := by.messages.Receive(ctx, &sidebusv1.ReceiveRequest{
		Source: r.from.name, MaxMessages: proto.Int32(int32(most)), MaxWait: durationpb.New(200 * time.Millisecond),
		SubQueue: r.from.subQueue(),
	})
	if !r.isExplained("receive from "+r.from.name, err) {
		return nil
	}
	return r.handedOut(r.from, response.GetMessages(), by, began)
}

// handedOut notes what a receive has given.
func (r *run) handedOut(from source, messages []*sidebusv1.ReceivedMessage, by *sidecar, began time.Time) []held {
	ended := time.Now()
	all := make([]held, 0, len(messages))
	for _, m := range messages {
		i, err := parse(m.GetMessageId())
		if err != nil || !isWhole(i, m.GetBody()) {
			r.ledger.unexpected("the body of "+m.GetMessageId()+" is not what was sent", err)
			continue
		}
		until := m.GetLockedUntil().AsTime().Add(r.behind)
		place := from.place
		number := m.GetSequenceNumber()
		if from.dead { // it has a number of its own there
			number = m.GetEnqueuedSequenceNumber()
		}
		r.ledger.receive(delivery{i, place, m.GetSessionId(), number, began, ended, until, by.number})
		all = append(all, held{i, m.GetLockToken(), until})
	}
	return all
}

// isExplained reports whether a call succeeded. It notes a failure that no fault explains, and rests after any.
func (r *run) isExplained(what string, err error) bool {
	got, isExpected := outcomeOf(err)
	if got == done {
		return true
	}
	if !isExpected && r.ctx.Err() == nil {
		r.ledger.unexpected(what, err)
	}
	r.rest(5 * time.Millisecond)
	return false
}

// settle settles messages in one call.
func (r *receiver) settle(which []held, verb string) {
	if len(which) == 0 {
		return
	}
	for _, one := range which {
		r.ledger.settling(one.id, r.from.place)
	}
	response, err := r.call(which, verb)
	if !r.isExplained(verb+" in "+r.from.name, err) || verb != "complete" {
		return
	}
	for i, one := range response.GetResults() {
		if one.Reason == nil {
			r.ledger.complete(which[i].id, r.from.place)
		}
	}
}

func (r *receiver) call(which []held, verb string) (*sidebusv1.SettleResponse, error) {
	tokens := make([]string, len(which))
	for i, one := range which {
		tokens[i] = one.token
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	messages := r.any(r.rng).messages
	switch verb {
	case "abandon":
		return messages.Abandon(ctx, &sidebusv1.AbandonRequest{Source: r.from.name, LockTokens: tokens, SubQueue: r.from.subQueue()})
	case "dead-letter":
		return messages.DeadLetter(ctx, &sidebusv1.DeadLetterRequest{Source: r.from.name, LockTokens: tokens, SubQueue: r.from.subQueue()})
	default:
		return messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: r.from.name, LockTokens: tokens, SubQueue: r.from.subQueue()})
	}
}

// tryStale tries to complete messages whose locks have ended, which must change nothing (I5).
func (r *receiver) tryStale() {
	var left []held
	for _, one := range r.stale {
		ago := time.Since(one.until)
		if ago < time.Millisecond {
			left = append(left, one)
			continue
		}
		response, err := r.call([]held{one}, "complete")
		if !r.isExplained("complete in "+r.from.name, err) {
			continue
		}
		if response.GetResults()[0].Reason == nil {
			r.ledger.settledLate(one.id, ago)
		} else {
			r.ledger.refusedLate()
		}
	}
	r.stale = left
}
