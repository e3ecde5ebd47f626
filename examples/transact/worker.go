package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

// accidents counts what happened to the workers.
type accidents struct{ crashes, repeats atomic.Int64 }

// worker takes one account after the other and processes its payments.
type worker struct {
	sidebus   *client.Client
	accidents *accidents
}

// errCrash stands for the end of a process.
var errCrash = errors.New("the worker crashed")

// work goes on until ctx ends.
func (w *worker) work(ctx context.Context) error {
	for {
		session, err := w.sidebus.AcceptNextSessionForQueue(ctx, payments, nil)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		err = w.account(context.WithoutCancel(ctx), session)
		if err != nil && !errors.Is(err, errCrash) {
			return fmt.Errorf("%s: %w", session.SessionID(), err)
		}
	}
}

// account processes the payments of one account. A worker that crashes leaves its message to the next one.
func (w *worker) account(ctx context.Context, session *client.SessionReceiver) (err error) {
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	state, err := session.GetSessionState(ctx, nil)
	if err != nil {
		return err
	}
	balance := 0
	if state != nil {
		if balance, err = strconv.Atoi(string(state)); err != nil {
			return err
		}
	}
	for {
		messages, err := session.ReceiveMessages(ctx, 1, &client.ReceiveMessagesOptions{MaxWait: new(time.Duration)})
		if err != nil || len(messages) == 0 {
			return err
		}
		if balance, err = w.payment(ctx, session, messages[0], balance); err != nil {
			return err
		}
	}
}

// payment completes a payment, stores the new balance and sends the receipt: all of it, or nothing.
func (w *worker) payment(
	ctx context.Context, session *client.SessionReceiver, m *client.ReceivedMessage, balance int,
) (int, error) {
	amount, err := strconv.Atoi(string(m.Body))
	if err != nil {
		return 0, err
	}
	if rand.IntN(8) == 0 { //nolint:gosec // any accident will do
		w.accidents.crashes.Add(1)
		return 0, errCrash
	}
	balance += amount
	text := []byte(strconv.Itoa(balance))
	transact := func() error {
		_, err := w.sidebus.Transact(ctx, func(tx *client.Tx) error {
			tx.CompleteMessage(session, m)
			tx.SetSessionState(session, text)
			tx.SendToQueue(receipts, &client.Message{Body: text, CorrelationID: new(session.SessionID())})
			return nil
		}, &client.TransactOptions{RequestID: fmt.Sprintf("%s/%d", session.SessionID(), m.SequenceNumber)})
		return err
	}
	if err := transact(); err != nil {
		return 0, err
	}
	if rand.IntN(8) == 0 { //nolint:gosec // as if the answer was lost
		w.accidents.repeats.Add(1)
		return balance, transact()
	}
	return balance, nil
}
