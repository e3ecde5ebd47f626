// Package cli runs one command line: it parses the flags, fills in the rest from the environment and the file, runs the
// verb and turns its error into an exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/version"
)

// kongUsage is how the parser marks errors of the command line, in contrast to those of other sources.
const kongUsage = 80

const description = `Sidebus is a sidecar that adds the queues and topics of Azure Service Bus to Redis.

"serve" reads each setting from its flag, else from the environment, else from the file named by --config. The keys
of the file are the names of the flags. The commands for entities and messages call the gRPC API of a running sidecar.`

// Run runs one command line of a grammar, which is a pointer to a struct of verbs for kong, and returns the exit code.
// The Run methods of verbs may take a context, terminal.Streams and *settings.Sources.
func Run(ctx context.Context, grammar any, args []string, to terminal.Streams) int {
	exited := -1
	sources := &settings.Sources{}
	parser, err := newParser(grammar, to, sources, func(code int) { exited = code })
	if err != nil {
		fmt.Fprintf(to.Stderr, "sidebus: %v\n", err)
		return Failure
	}
	if len(args) > 0 && args[0] == completeVerb {
		complete(parser.Model, args[1:], to.Stdout)
		return Clean
	}
	args = rewrite(grammar, args)
	if len(args) == 0 {
		fmt.Fprintln(to.Stderr, `Run "sidebus serve" to start a sidecar. "sidebus --help" lists the commands.`)
		return Usage
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help was printed
		return exited
	}
	if err != nil {
		return explainParsing(err, sources.Given(args), to)
	}
	sources.Warnings = settings.UnknownVariables(parser.Model)
	if command.Command() != "serve" { // which logs them
		for _, warning := range sources.Warnings {
			fmt.Fprintf(to.Stderr, "%s warning: %s\n", to.PaintError(terminal.Yellow, "sidebus:"), warning)
		}
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(sources)
	if err := command.Run(to); err != nil {
		for text := range strings.SplitSeq(settings.Hide(sources.Locate(err).Error(), sources.Given(args)), "\n") {
			fmt.Fprintf(to.Stderr, "%s %s\n", to.PaintError(terminal.Red, "sidebus:"), text)
		}
		return codeOf(err)
	}
	return Clean
}

// newParser returns a parser of a grammar. It calls exit after it has printed a help text.
func newParser(
	grammar any, to terminal.Streams, sources *settings.Sources, exit func(code int),
) (*kong.Kong, error) {
	parser, err := kong.New(
		grammar, kong.Name("sidebus"), kong.Description(description), kong.Writers(to.Stdout, to.Stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.ValueFormatter(explain),
		kong.ExplicitGroups([]kong.Group{{Key: "verbs", Title: "Entities and messages:"}}),
		kong.Exit(exit), settings.Vars(), kong.Vars{"version": version.Line()},
		settings.Durations(), kong.WithBeforeResolve(sources.Load), kong.Resolvers(sources),
	)
	if err != nil {
		return nil, err
	}
	for _, flag := range parser.Model.Flags {
		if flag.Name == "help" {
			flag.Help = "Show this help."
		}
	}
	return parser, nil
}

// explainParsing prints why a command line was not parsed, without its secrets, and returns the exit code.
func explainParsing(err error, given []string, to terminal.Streams) int {
	var parse *kong.ParseError
	text := err.Error()
	if errors.As(err, &parse) {
		text = reword(parse)
	}
	fmt.Fprintf(to.Stderr, "%s %s\n", to.PaintError(terminal.Red, "sidebus:"), settings.Hide(text, given))
	if parse == nil || parse.ExitCode() != kongUsage {
		return Failure
	}
	fmt.Fprintln(to.Stderr, advice(parse))
	return Usage
}
