// Command log-crunch proves that no line of a real file is lost: it sends the file through Sidebus, one message a
// line, to four competing consumer processes, kills one of them and the sidecar it uses half-way, and counts by line
// at the end. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	queue        = "log-crunch"
	lockDuration = 5 * time.Second // short, so that the messages of the killed consumer are available again soon
	usage        = "usage: log-crunch run FILE | feed ADDRESS FILE | consume ADDRESS OUTPUT"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := do(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "log-crunch:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "run":
		return run(ctx, args[1])
	case len(args) == 3 && args[0] == "feed":
		return feed(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "consume":
		return consume(ctx, args[1], args[2])
	default:
		return fmt.Errorf("%s", usage)
	}
}
