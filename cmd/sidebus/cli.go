package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit codes. A signal that ends an operator verb, or the second one that comes to "serve", is 128 + its number.
const (
	exitClean   = 0
	exitFailure = 1 // configuration or start failure; of an operator verb: the call failed, in full or in part
	exitUsage   = 2 // the command line cannot be understood, or would have to ask and cannot
)

// kongUsage is how the parser marks errors of the command line, in contrast to those of other sources.
const kongUsage = 80

const description = `Sidebus gives applications the queues and topics of Azure Service Bus over Redis, as a sidecar.

Settings of "serve" come from flags, then from the environment, then from the file named by --config; the file's
keys are the names of the flags. The verbs for entities and messages speak to the gRPC address of a running sidecar.`

type grammar struct {
	Serve   serveCommand   `cmd:"" help:"Run the sidecar until SIGTERM or SIGINT, then drain and exit."`
	Wait    waitCommand    `cmd:"" help:"Wait until the sidecar is ready; exit 1 when it is not in time."`
	Drain   drainCommand   `cmd:"" help:"Tell the sidecar to take no new receives, and print what is left in hand."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Send    sendCommand    `cmd:"" group:"verbs" help:"Send messages."`
	Receive receiveCommand `cmd:"" group:"verbs" help:"Receive messages and say what becomes of them."`
	Peek    peekCommand    `cmd:"" group:"verbs" help:"Look at messages without touching them."`
	Session sessionCommand `cmd:"" group:"verbs" help:"List and show sessions, read and set their state."`
	DLQ     dlqCommand     `cmd:"" name:"dlq" group:"verbs" help:"Look at, count, resubmit and remove dead letters."`
	Purge   purgeCommand   `cmd:"" group:"verbs" help:"Remove many messages without a trace."`
	Entity  entityCommand  `cmd:"" group:"verbs" help:"List, show, create, change and delete queues, topics and subscriptions."`
	Rule    ruleCommand    `cmd:"" group:"verbs" help:"List, show, add, delete and test rules of subscriptions."`
	Stats   statsCommand   `cmd:"" group:"verbs" help:"Count the messages of queues, topics and subscriptions."`
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, to terminal) int {
	exited := -1
	sources := &sources{}
	parser, err := kong.New(&grammar{},
		kong.Name("sidebus"), kong.Description(description), kong.Writers(to.stdout, to.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ExplicitGroups([]kong.Group{{Key: "verbs", Title: "Entities and messages:"}}),
		kong.Exit(func(code int) { exited = code }),
		kong.Vars(settingDefaults()), kong.WithBeforeResolve(sources.load), kong.Resolvers(sources),
	)
	if err != nil {
		fmt.Fprintf(to.stderr, "sidebus: %v\n", err)
		return exitFailure
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help was printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(to.stderr, "sidebus: %v\n", err)
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.ExitCode() == kongUsage {
			fmt.Fprintln(to.stderr, `Run "sidebus --help" for the verbs and "sidebus VERB --help" for their flags.`)
			return exitUsage
		}
		return exitFailure
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(sources)
	if err := command.Run(to); err != nil {
		for text := range strings.SplitSeq(sources.locate(err).Error(), "\n") {
			fmt.Fprintf(to.stderr, "sidebus: %s\n", text)
		}
		return exitCode(err)
	}
	return exitClean
}

func exitCode(err error) int {
	var usage usageError
	var stopped interrupted
	switch {
	case errors.As(err, &stopped):
		return exitCodeOf(stopped.by)
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitFailure
	}
}
