package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

// website takes orders. It never talks to the back end: it puts an order into the queue, and the user's page changes
// when an answer comes.
type website struct {
	sidebus *client.Client
	book    *book
}

// place is what happens when a user presses the button. It returns when the order is safe, not when it is done.
func (w *website) place(ctx context.Context, p *phase, id, tea string) error {
	began := time.Now()
	err := send(ctx, w.sidebus, orders, &client.Message{
		MessageID: &id, ReplyTo: new(confirmations), Body: []byte(tea), BodyType: client.BodyText,
		TimeToLive: new(deadline), // later the user has left the page
	})
	if err != nil {
		return fmt.Errorf("place %s: %w", id, err)
	}
	w.book.placed(p, time.Since(began))
	return nil
}

// trickle places the orders of a phase one after the other. Every tenth is for coffee where isCareless is set.
func (w *website) trickle(ctx context.Context, p *phase, pause time.Duration, isCareless bool) error {
	next := time.NewTicker(pause)
	defer next.Stop()
	for i, id := range p.ids {
		tea := "sencha"
		if isCareless && i%10 == 9 {
			tea = "coffee"
		}
		if err := w.place(ctx, p, id, tea); err != nil {
			return err
		}
		<-next.C
	}
	return nil
}

// burst places the orders of a phase as fast as so many visitors can press the button.
func (w *website) burst(ctx context.Context, p *phase, visitors int) error {
	ids, failures := make(chan string, len(p.ids)), make(chan error, visitors)
	for _, id := range p.ids {
		ids <- id
	}
	close(ids)
	var crowd sync.WaitGroup
	for range visitors {
		crowd.Go(func() {
			for id := range ids {
				if err := w.place(ctx, p, id, "sencha"); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	crowd.Wait()
	close(failures)
	return <-failures
}

// listen takes the answers to a queue until ctx ends and writes down what they mean for the order.
func listen(ctx context.Context, queue string, b *book, means outcome) error {
	return handle(
		ctx,
		queue,
		16,
		client.SubQueueNone,
		func(_ context.Context, _ *client.Client, m *client.HandledMessage) error {
			b.settle(*m.CorrelationID, means)
			return nil
		},
	)
}
