package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

// backend does orders at its own pace, whatever comes. It takes the next one when it has done one.
type backend struct {
	paymentsFail atomic.Bool // the payment provider does not answer
}

// run has the clerks do the orders of a queue until ctx ends.
func (b *backend) run(ctx context.Context, source string) error {
	return handle(ctx, source, clerks, client.SubQueueNone, b.order)
}

// order does one order and answers to the queue that it names. An answer may come twice, when it was sent and the order
// was not completed.
func (b *backend) order(ctx context.Context, sidebus *client.Client, m *client.HandledMessage) error {
	select {
	case <-time.After(workTakes):
	case <-ctx.Done():
		return ctx.Err()
	}
	tea := string(m.Body)
	switch {
	case tea == "coffee": // no later try makes it tea
		return &client.DeadLetterError{Reason: "NoSuchTea", Description: "there is no tea of the name " + tea}
	case b.paymentsFail.Load(): // it may pass: given back, and comes again after the queue's redeliveryDelay
		return errors.New("the payment provider does not answer")
	}
	// Told to stop just now? An answer that is cut off may have been sent all the same, and then the order must not
	// come again.
	return send(context.WithoutCancel(ctx), sidebus, *m.ReplyTo, &client.Message{
		CorrelationID: &m.MessageID, Body: []byte(tea + ": done"), BodyType: client.BodyText,
	})
}

// shift is a time in which the back end works.
type shift struct {
	stop context.CancelFunc
	done chan error
}

func (b *backend) open(ctx context.Context, source string) *shift {
	ctx, stop := context.WithCancel(ctx)
	s := &shift{stop: stop, done: make(chan error, 1)}
	go func() { s.done <- b.run(ctx, source) }()
	return s
}

// close ends it in order: unsettled orders are released, and no delivery is counted.
func (s *shift) close() error {
	s.stop()
	return <-s.done
}
