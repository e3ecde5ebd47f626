// Command load-levelling is a tea shop whose website takes orders faster than its back end can handle them: a queue lies between, an
// order has a deadline, and a watch looks after those that became dead letters. At the end every order is accounted for. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	orders        = "queues/orders"
	ordersByMail  = "queues/orders-by-mail" // without a deadline
	confirmations = "confirmations"         // queue of the answers to the website
	mails         = "mails"                 // queue of the answers that go out by e-mail

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

// connect gives each part of the shop a connection of its own, as if it were on another machine.
func connect() (*grpc.ClientConn, error) {
	return grpc.NewClient(os.Getenv("GRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

type handler func(ctx context.Context, messages sidebusv1.MessagesClient, m *sidebusv1.HandledMessage) error

// handle gives every message of a source to h until ctx ends.
func handle(ctx context.Context, open *sidebusv1.SubscribeOpen, h handler) error {
	conn, err := connect()
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	messages := sidebusv1.NewMessagesClient(conn)
	return sidebusv1.Handle(ctx, messages, open, func(ctx context.Context, m *sidebusv1.HandledMessage) error {
		return h(ctx, messages, m)
	}, sidebusv1.OnFailure(func(err error) { fmt.Fprintln(os.Stderr, "load-levelling:", err) }))
}

// send sends one message.
func send(ctx context.Context, messages sidebusv1.MessagesClient, target string, m *sidebusv1.Message) error {
	_, err := messages.Send(ctx, &sidebusv1.SendRequest{Target: target, Messages: []*sidebusv1.Message{m}})
	return err
}
