package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Why the broker makes dead letters. Any other reason is one of the back end.
const (
	expired  = "TTLExpiredException"      // nobody took it in time
	tooOften = "MaxDeliveryCountExceeded" // it failed every time
)

// deed says what the watch does about a dead letter.
func deed(reason string) string {
	switch reason {
	case expired:
		return "told the user, sent again without a deadline"
	case tooOften:
		return "set aside, resubmitted when payments worked again"
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
	credits := int32(16)
	open := &sidebusv1.SubscribeOpen{Source: orders, SubQueue: sidebusv1.SubQueue_DEAD_LETTER, Credits: &credits}
	return errors.Join(handle(ctx, open, w.look), <-retried)
}

// look deals with one dead letter. Those that it leaves alone it defers, so that they stay and do not come again.
func (w *watch) look(ctx context.Context, messages sidebusv1.MessagesClient, m *sidebusv1.HandledMessage) error {
	reason := m.GetDeadLetterReason()
	w.book.saw(reason)
	switch reason {
	case expired:
		return w.takesLonger(ctx, messages, m)
	case tooOften:
		err := m.Defer(ctx, nil)
		if err == nil {
			w.aside.Add(1)
		}
		return err
	default:
		w.book.settle(m.GetMessageId(), human)
		return m.Defer(ctx, nil)
	}
}

// takesLonger tells the user so and sends the order where it has no deadline. A resubmit would keep its time to live. Until the dead letter
// is completed it may come again, and then be sent again: the target drops the second one by its id.
func (w *watch) takesLonger(ctx context.Context, messages sidebusv1.MessagesClient, m *sidebusv1.HandledMessage) error {
	w.book.tell(m.GetMessageId())
	replyTo := mails
	return send(ctx, messages, ordersByMail, &sidebusv1.Message{
		MessageId: m.MessageId, ReplyTo: &replyTo, Content: &sidebusv1.Message_Text{Text: m.GetText()},
	})
}

// retry sends those that failed again once the payment provider answers: all of them in one call, each removed and sent in one step.
func (w *watch) retry(ctx context.Context) error {
	conn, err := connect()
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	messages, filter := sidebusv1.NewMessagesClient(conn), "DeadLetterReason = '"+tooOften+"'"
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
		sent, err := messages.Resubmit(ctx, &sidebusv1.ResubmitRequest{Source: orders, Filter: &filter})
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
