// Command sidebus is the sidecar that provides Service Bus queues over Redis to applications, and the verbs that steer
// it and its queues. See "sidebus --help".
package main

import (
	"context"
	"os"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/doctor"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/serve"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/verbs"
)

type grammar struct {
	Serve   serve.Command  `cmd:"" help:"Run the sidecar until SIGTERM or SIGINT, then drain and exit."`
	Doctor  doctor.Command `cmd:"" help:"Check Redis and what is kept in it, and say what to do. Reads --store like serve, and needs no sidecar."`
	Console serve.Console  `cmd:"" help:"Serve the web console of a namespace until SIGTERM or SIGINT. Reads --store like serve, and needs no sidecar."`
	Scaler  serve.Scaler   `cmd:"" help:"Answer KEDA, which scales receivers by what their queues hold, until SIGTERM or SIGINT. Reads --store like serve, and needs no sidecar."`

	verbs.Grammar
}

func main() {
	os.Exit(cli.Run(context.Background(), &grammar{}, os.Args[1:], terminal.Process()))
}
