package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

// worker takes one session after the other and runs the steps that it finds there.
type worker struct {
	sidebus *client.Client
	world   world
}

// progress is the state of a session: what has been done for the order and what later steps need of it.
type progress struct {
	Done        int    `json:"done"` // steps
	Reservation string `json:"reservation"`
}

// work goes on until ctx ends.
func (w *worker) work(ctx context.Context) error {
	// A step may take longer than a lock: the client renews the lock of the session meanwhile.
	options := &client.SessionReceiverOptions{MaxAutoRenew: time.Hour}
	for {
		session, err := w.sidebus.AcceptNextSessionForQueue(ctx, queue, options)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil // told to stop while waiting
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		err = w.order(context.WithoutCancel(ctx), session)
		if err != nil && !errors.Is(err, client.CodeSessionLockLost) { // else another worker has the order now
			return fmt.Errorf("%s: %w", session.SessionID(), err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// order runs all steps of one order that are there, and then closes the session, so that any worker can continue it.
func (w *worker) order(ctx context.Context, session *client.SessionReceiver) (err error) {
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	state, err := session.GetSessionState(ctx, nil)
	if err != nil {
		return fmt.Errorf("get state: %w", err)
	}
	var known progress
	if state != nil {
		if err := json.Unmarshal(state, &known); err != nil {
			return err
		}
	}
	for {
		messages, err := session.ReceiveMessages(ctx, 1, &client.ReceiveMessagesOptions{MaxWait: new(time.Duration)})
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if len(messages) == 0 {
			return nil
		}
		if err := w.step(ctx, session, &known, messages[0]); err != nil {
			return err
		}
	}
}

// step runs one step and stores that in the state. A worker may be killed at any point of it: then the message is
// delivered again, to the next worker that has the order, with the state as it was last set.
func (w *worker) step(
	ctx context.Context, session *client.SessionReceiver, known *progress, m *client.ReceivedMessage,
) error {
	step := string(m.Body)
	number := slices.Index(steps, step) + 1
	plan := killAt(session.SessionID(), number, m.DeliveryCount)
	plan.reached("received")
	switch {
	case number > known.Done+1:
		return fmt.Errorf("%q came when %d steps were done", step, known.Done)
	case number <= known.Done:
		// Done by a worker that was killed before it completed the message.
	default:
		result, err := w.world.change(session.SessionID(), step, known.Reservation)
		if err != nil {
			return err
		}
		plan.reached("done")
		if known.Done = number; step == "reserve" {
			known.Reservation = result
		}
		state, err := json.Marshal(known)
		if err != nil {
			return err
		}
		if err := session.SetSessionState(ctx, state, nil); err != nil {
			return fmt.Errorf("set state: %w", err)
		}
		plan.reached("noted")
	}
	if err := session.CompleteMessage(ctx, m, nil); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	if known.Done < len(steps) {
		return nil
	}
	// The order is finished. Its state would count against the size of the queue.
	return session.SetSessionState(ctx, nil, nil)
}
