// Command load-levelling is a tea shop whose website takes orders faster than its back end can handle them: a queue
// lies between, an order has a deadline, and a watch looks after those that became dead letters. At the end every order
// is accounted for. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

const (
	orders        = "orders"
	ordersByMail  = "orders-by-mail" // without a deadline
	confirmations = "confirmations"  // queue of the answers to the website
	mails         = "mails"          // queue of the answers that go out by e-mail

	deadline  = 2 * time.Second       // so long a user looks at the page
	clerks    = 2                     // of the back end, and of those who do the orders by mail
	workTakes = 20 * time.Millisecond // for one order
	bound     = time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "load-levelling:", err)
		os.Exit(1)
	}
}

// connect makes a client. Each part of the shop has one of its own, as if it were on another machine.
func connect() (*client.Client, error) { return client.New(os.Getenv("GRPC"), nil) }

type handler func(ctx context.Context, sidebus *client.Client, m *client.HandledMessage) error

// handle passes every message of a queue to h until ctx ends.
func handle(ctx context.Context, queue string, atATime int, from client.SubQueue, h handler) error {
	sidebus, err := connect()
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // nothing is sent any more
	receiver, err := sidebus.NewReceiverForQueue(queue, &client.ReceiverOptions{SubQueue: from})
	if err != nil {
		return err
	}
	return receiver.Handle(ctx, func(ctx context.Context, m *client.HandledMessage) error {
		return h(ctx, sidebus, m)
	}, &client.HandleOptions{
		Concurrency: atATime, OnError: func(err error) { fmt.Fprintln(os.Stderr, "load-levelling:", err) },
	})
}

// send sends one message.
func send(ctx context.Context, sidebus *client.Client, queue string, m *client.Message) error {
	sender, err := sidebus.NewSender(queue, nil)
	if err != nil {
		return err
	}
	return sender.SendMessage(ctx, m, nil)
}
