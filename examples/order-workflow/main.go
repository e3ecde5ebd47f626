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

	"github.com/sidebus/sidebus/proto/client"
)

const queue = "orders"

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
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	if args[0] == "work" {
		return (&worker{sidebus: sidebus, world: world(args[1])}).work(ctx)
	}
	return run(ctx, sidebus, world(args[1]))
}
