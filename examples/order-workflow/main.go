// Command order-workflow carries orders through their steps: the steps of an order are the messages of one session, and
// what is known of the order is the session's state. Workers are killed with SIGKILL in the middle of steps, and at the
// end every step has been done exactly once in effect and in order. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const source = "queues/orders"

// steps are what has to be done for an order, in this order.
var steps = []string{"reserve", "charge", "pack", "ship", "invoice"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := do(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "order-workflow:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	if len(args) != 2 || args[0] != "run" && args[0] != "work" {
		return fmt.Errorf("usage: order-workflow run|work FOLDER, with the sidecar's address in $GRPC")
	}
	conn, err := grpc.NewClient(os.Getenv("GRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	messages, sessions := sidebusv1.NewMessagesClient(conn), sidebusv1.NewSessionsClient(conn)
	if args[0] == "work" {
		return (&worker{messages: messages, sessions: sessions, world: world(args[1])}).work(ctx)
	}
	return run(ctx, messages, sessions, sidebusv1.NewAdminClient(conn), world(args[1]))
}
