// Command sidebus is the sidecar that gives applications Service Bus queues over Redis, and the verbs that steer
// it and its queues. See "sidebus --help".
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], processTerminal()))
}
