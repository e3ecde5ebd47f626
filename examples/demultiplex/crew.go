package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

// crew is the workers. Each has a connection of its own, as if it were on another machine.
type crew struct {
	dismiss context.CancelFunc
	work    sync.WaitGroup
	outcome [workers]error
}

func startCrew(ctx context.Context, r *record) *crew {
	ctx, dismiss := context.WithCancel(ctx)
	c := &crew{dismiss: dismiss}
	for i := range workers {
		c.work.Go(func() { c.outcome[i] = work(ctx, i, r) })
	}
	return c
}

// work is a worker: all it says is which messages it wants, how many sessions at a time, and what to do with a message.
func work(ctx context.Context, number int, r *record) error {
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	receiver, err := sidebus.NewReceiverForQueue(source, nil)
	if err != nil {
		return err
	}
	return receiver.Handle(ctx, func(ctx context.Context, m *client.HandledMessage) error {
		end := r.begin(number, *m.SessionID)
		defer end()
		select {
		case <-time.After(workTakes):
		case <-ctx.Done():
			return ctx.Err()
		}
		return r.handled(number, event{*m.SessionID, string(m.Body)})
	}, &client.HandleOptions{
		Concurrency: atATime, MaxConcurrentSessions: atATime,
		OnError: func(err error) { fmt.Fprintln(os.Stderr, "demultiplex:", err) },
	})
}

// stop ends the workers in order and returns why one of them ended before.
func (c *crew) stop() error {
	c.dismiss()
	c.work.Wait()
	return errors.Join(c.outcome[:]...)
}
