package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// holder accepts one session after the other and works on it.
type holder struct {
	*run

	rng *rand.Rand
}

func (h *holder) work() {
	for !h.isOver() {
		began := time.Now()
		ctx, cancel := context.WithTimeout(h.ctx, patience)
		by := h.any(h.rng)
		response, err := by.sessions.Accept(ctx, &sidebusv1.SessionsAcceptRequest{
			Source: resources[chats], MaxWait: durationpb.New(200 * time.Millisecond),
		})
		cancel()
		if !h.isExplained("accept", err) || response.GetSession() == nil {
			continue
		}
		s := response.GetSession()
		h.ledger.accept(s.GetSessionId(), s.GetLockToken(), by.number, began, s.GetLockedUntil().AsTime().Add(h.behind))
		h.hold(s.GetSessionId(), s.GetLockToken())
	}
}

// hold works on a session for a while. Now and then it goes on until the lock is lost, or leaves without a word.
func (h *holder) hold(name, token string) {
	for range 1 + h.rng.IntN(8) {
		got := done
		if h.rng.IntN(4) == 0 {
			got = h.renew(name, token)
		}
		if got == done {
			got = h.turn(name, token)
		}
		if got == lockLost {
			return
		}
		if got != done { // messages may be locked that it does not know of
			break
		}
	}
	if h.rng.IntN(20) == 0 && !h.isCalm() {
		return
	}
	h.ledger.closing(name, token)
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	_, err := h.any(h.rng).sessions.Close(ctx, &sidebusv1.SessionsCloseRequest{Source: resources[chats], LockToken: token})
	h.isExplained("close", err)
}

// renew makes the lock of a session last longer.
func (h *holder) renew(name, token string) outcome {
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	by := h.any(h.rng)
	h.ledger.use(name, token, by.number)
	response, err := by.sessions.RenewLock(ctx, &sidebusv1.SessionsRenewLockRequest{Source: resources[chats], LockToken: token})
	if err == nil {
		h.ledger.renewed(name, token, response.GetLockedUntil().AsTime().Add(h.behind))
	}
	return h.outcome(name, token, "renew", err)
}

// turn receives some messages of a session and completes them.
func (h *holder) turn(name, token string) outcome {
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	began := time.Now()
	by := h.any(h.rng)
	h.ledger.use(name, token, by.number)
	response, err := by.messages.Receive(ctx, &sidebusv1.ReceiveRequest{
		Source: resources[chats], MaxMessages: proto.Int32(int32(1 + h.rng.IntN(40))), MaxWait: durationpb.New(20 * time.Millisecond),
		SessionLockToken: &token,
	})
	if err != nil {
		return h.outcome(name, token, "receive in a session", err)
	}
	all := h.handedOut(source{to: chats, name: resources[chats]}, response.GetMessages(), by, began)
	if len(all) == 0 {
		return done
	}
	if h.rng.IntN(30) == 0 && !h.isCalm() {
		all = all[:h.rng.IntN(len(all))] // the others come again when the session is free
	}
	if len(all) == 0 {
		return done
	}
	tokens := make([]string, len(all))
	for i, one := range all {
		tokens[i] = one.token
	}
	settled, err := h.any(h.rng).messages.Complete(ctx, &sidebusv1.CompleteRequest{
		Source: resources[chats], LockTokens: tokens, SessionLockToken: &token,
	})
	for i, one := range settled.GetResults() {
		if one.Reason == nil {
			h.ledger.complete(all[i].id, 0)
		}
	}
	return h.outcome(name, token, "complete in a session", err)
}

// outcome returns the outcome of a call about a session, and notes what it means for its lock.
func (h *holder) outcome(name, token, what string, err error) outcome {
	got, _ := outcomeOf(err)
	if got == lockLost {
		h.ledger.lost(name, token)
	} else {
		h.isExplained(what, err)
	}
	return got
}
