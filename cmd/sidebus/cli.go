package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// Exit codes (a second signal ends the process with 128 + its number, see stopSignals).
const (
	exitClean   = 0
	exitFailure = 1 // configuration or start failure
	exitUsage   = 2 // the command line cannot be understood
)

// kongUsage is how the parser marks errors of the command line, in contrast to those of other sources.
const kongUsage = 80

const description = `Sidebus gives applications the queues of Azure Service Bus over Redis, as a sidecar.

Settings of "serve" come from flags, then from the environment, then from the file named by --config; the file's
keys are the names of the flags.`

type grammar struct {
	Serve   serveCommand   `cmd:"" help:"Run the sidecar until SIGTERM or SIGINT, then drain and exit."`
	Wait    waitCommand    `cmd:"" help:"Wait until the sidecar is ready; exit 1 when it is not in time."`
	Drain   drainCommand   `cmd:"" help:"Tell the sidecar to take no new receives, and print what is left in hand."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// terminal is where a verb writes.
type terminal struct {
	stdout, stderr io.Writer
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exited := -1
	sources := &sources{}
	parser, err := kong.New(&grammar{},
		kong.Name("sidebus"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(code int) { exited = code }),
		kong.Vars(settingDefaults()), kong.WithBeforeResolve(sources.load), kong.Resolvers(sources),
	)
	if err != nil {
		fmt.Fprintf(stderr, "sidebus: %v\n", err)
		return exitFailure
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help was printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "sidebus: %v\n", err)
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.ExitCode() == kongUsage {
			fmt.Fprintln(stderr, `Run "sidebus --help" for the verbs and "sidebus VERB --help" for their flags.`)
			return exitUsage
		}
		return exitFailure
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(terminal{stdout: stdout, stderr: stderr}); err != nil {
		fmt.Fprintf(stderr, "sidebus: %v\n", sources.locate(err))
		return exitFailure
	}
	return exitClean
}
