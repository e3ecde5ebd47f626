package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Why the broker makes dead letters. Any other reason is one of the back end.
const (
	expired  = "TTLExpiredException"      // no clerk took it in time
	tooOften = "MaxDeliveryCountExceeded" // it failed every time
)

// deed says what the watch does about a dead letter.
func deed(reason string) string {
	switch reason {
	case expired:
		return "told the user, sent again without a deadline"
	case tooOften:
		return "kept, resubmitted when payments worked again"
	default:
		return "left for a human"
	}
}

// watch looks after the dead letters of the orders. The reason says what to do about one.
type watch struct {
	backend *backend
	book    *book
	aside   atomic.Int64 // dead letters that wait for the payment provider
}

// run goes on until ctx ends.
func (w *watch) run(ctx context.Context) error {
	retried := make(chan error, 1)
	go func() { retried <- w.retry(ctx) }()
	return errors.Join(handle(ctx, orders, 16, client.SubQueueDeadLetter, w.look), <-retried)
}

// look deals with one dead letter. Those that it leaves alone it defers, so that they stay and do not come again.
func (w *watch) look(ctx context.Context, sidebus *client.Client, m *client.HandledMessage) error {
	reason := *m.DeadLetterReason
	w.book.saw(reason)
	switch reason {
	case expired:
		return w.takesLonger(ctx, sidebus, m)
	case tooOften:
		err := m.Defer(ctx, nil)
		if err == nil {
			w.aside.Add(1)
		}
		return err
	default:
		w.book.settle(m.MessageID, human)
		return m.Defer(ctx, nil)
	}
}

// takesLonger shows that to the user and sends the order where it has no deadline. A resubmit would keep its time to
// live. Until the dead letter is completed it may come again, and then be sent again: the target drops the second one
// by its id.
func (w *watch) takesLonger(ctx context.Context, sidebus *client.Client, m *client.HandledMessage) error {
	w.book.tell(m.MessageID)
	return send(ctx, sidebus, ordersByMail, &client.Message{
		MessageID: &m.MessageID, ReplyTo: new(mails), Body: m.Body, BodyType: client.BodyText,
	})
}

// retry sends those that failed again once the payment provider answers: all of them in one call, each removed and sent
// in one step.
func (w *watch) retry(ctx context.Context) error {
	sidebus, err := connect()
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // nothing is sent any more
	messages, filter := sidebusv1.NewMessagesClient(sidebus.Conn()), "DeadLetterReason = '"+tooOften+"'"
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
		if w.aside.Load() == 0 || w.backend.paymentsFail.Load() {
			continue
		}
		sent, err := messages.Resubmit(ctx, &sidebusv1.ResubmitRequest{Source: "queues/" + orders, Filter: &filter})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "load-levelling: resubmit, again soon:", err)
		}
		for _, result := range sent.GetResults() {
			if result.GetReason() == "" {
				w.aside.Add(-1)
			}
		}
	}
}
