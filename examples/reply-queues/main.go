// Command reply-queues is a worker that answers into the queue that each request names. It knows none of them
// beforehand, and some are gone when it answers. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

const (
	requests  = "weekdays"
	workTakes = 20 * time.Millisecond // for one request, as a call of another system would
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reply-queues:", err)
		os.Exit(1)
	}
}

// run answers requests until ctx ends, eight at a time.
func run(ctx context.Context) error {
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	receiver, err := sidebus.NewReceiverForQueue(requests, nil)
	if err != nil {
		return err
	}
	return receiver.Handle(ctx, func(ctx context.Context, m *client.HandledMessage) error {
		if m.ReplyTo == nil {
			return client.DeadLetter(errors.New("it does not say where the answer goes"))
		}
		day, err := time.Parse(time.DateOnly, string(m.Body))
		if err != nil {
			return client.DeadLetter(err) // no date; no later try makes it one
		}
		select {
		case <-time.After(workTakes):
		case <-ctx.Done():
			return ctx.Err()
		}
		return answer(ctx, sidebus, m, day.Weekday().String())
	}, &client.HandleOptions{Concurrency: 8, OnError: func(err error) {
		fmt.Fprintln(os.Stderr, "reply-queues:", err)
	}})
}

// answer sends to the requester. The request is completed after that, so that no answer is lost; one may be sent twice.
func answer(ctx context.Context, sidebus *client.Client, m *client.HandledMessage, text string) error {
	err := sidebus.Reply(ctx, m.ReceivedMessage, &client.Message{Body: []byte(text), BodyType: client.BodyText}, nil)
	if errors.Is(err, client.CodeEntityNotFound) {
		fmt.Println("no client waits at", *m.ReplyTo) // the request is processed
		return nil
	}
	return err
}
