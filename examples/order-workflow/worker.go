package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// worker takes one session after the other and does what it finds there (the imperative model).
type worker struct {
	messages sidebusv1.MessagesClient
	sessions sidebusv1.SessionsClient
	world    world
}

// progress is the state of a session: what has been done for the order and what later steps need of it.
type progress struct {
	Done        int    `json:"done"` // steps
	Reservation string `json:"reservation"`
}

// work goes on until ctx ends.
func (w *worker) work(ctx context.Context) error {
	for {
		accepted, err := w.sessions.Accept(
			ctx, &sidebusv1.SessionsAcceptRequest{Source: source, MaxWait: durationpb.New(20 * time.Second)},
		)
		switch {
		case ctx.Err() != nil:
			return nil // told to stop while waiting
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		case accepted.GetSession() == nil:
			continue // none became ready
		}
		if err := w.order(context.WithoutCancel(ctx), accepted.GetSession()); err != nil {
			return fmt.Errorf("%s: %w", accepted.GetSession().GetSessionId(), err)
		}
	}
}

// order does all steps that are there for one order, and then gives the session up, so that it may go on elsewhere.
func (w *worker) order(ctx context.Context, s *sidebusv1.Session) error {
	var known progress
	if s.State != nil {
		if err := json.Unmarshal(s.GetState(), &known); err != nil {
			return err
		}
	}
	for {
		received, err := w.messages.Receive(
			ctx,
			&sidebusv1.ReceiveRequest{Source: source, SessionLockToken: &s.LockToken, MaxWait: &durationpb.Duration{}},
		)
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if len(received.GetMessages()) == 0 {
			_, err := w.sessions.Close(
				ctx, &sidebusv1.SessionsCloseRequest{Source: source, LockToken: s.GetLockToken()},
			)
			return err
		}
		// A step may take long: from here on there is the whole lock duration again.
		_, err = w.sessions.RenewLock(
			ctx, &sidebusv1.SessionsRenewLockRequest{Source: source, LockToken: s.GetLockToken()},
		)
		if status.Code(err) == codes.FailedPrecondition {
			return nil // the lock is lost: somebody else has the order, and does this step
		}
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		if err := w.step(ctx, s, &known, received.GetMessages()[0]); err != nil {
			return err
		}
	}
}

// step does one step and notes it. A worker may die at any point of it: the step comes again, to whoever has the order
// then, with the state as it was last set.
func (w *worker) step(ctx context.Context, s *sidebusv1.Session, known *progress, m *sidebusv1.ReceivedMessage) error {
	number := slices.Index(steps, m.GetText()) + 1
	plan := killAt(s.GetSessionId(), number, m.GetDeliveryCount())
	plan.reached("received")
	switch {
	case number > known.Done+1:
		return fmt.Errorf("%q came when %d steps were done", m.GetText(), known.Done)
	case number <= known.Done:
		// Done by one who died before it could complete the message.
	default:
		result, err := w.world.change(s.GetSessionId(), m.GetText(), known.Reservation)
		if err != nil {
			return err
		}
		plan.reached("done")
		if known.Done = number; m.GetText() == "reserve" {
			known.Reservation = result
		}
		if err := w.note(ctx, s, known); err != nil {
			return err
		}
		plan.reached("noted")
	}
	done, err := w.messages.Complete(
		ctx,
		&sidebusv1.CompleteRequest{
			Source:           source,
			LockTokens:       []string{m.GetLockToken()},
			SessionLockToken: &s.LockToken,
		},
	)
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	if reason := done.GetResults()[0].GetReason(); reason != "" {
		return fmt.Errorf("complete: %s: the step took longer than the lock", reason)
	}
	if known.Done < len(steps) {
		return nil
	}
	return w.note(ctx, s, nil) // the order is done with; what it leaves behind would count against the queue for ever
}

// note sets the state, nil clears it.
func (w *worker) note(ctx context.Context, s *sidebusv1.Session, known *progress) error {
	request := &sidebusv1.SessionsSetStateRequest{Source: source, LockToken: s.GetLockToken()}
	if known != nil {
		var err error
		if request.State, err = json.Marshal(known); err != nil {
			return err
		}
	}
	if _, err := w.sessions.SetState(ctx, request); err != nil {
		return fmt.Errorf("set state: %w", err)
	}
	return nil
}
