// Command sidebus is the sidecar that gives applications Service Bus queues over Redis, and the few verbs that steer
// it. See "sidebus --help".
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
