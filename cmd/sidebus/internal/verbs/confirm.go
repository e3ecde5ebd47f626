package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

// confirmation are the flags of verbs that destroy.
type confirmation struct {
	Yes bool `name:"yes" short:"y" help:"Skip confirmation."`
}

var errNoAnswer = cli.Misuse("stdin is not a terminal; pass --yes to skip confirmation")

// check refuses, before anything is called, a verb that would have to ask and cannot.
func (c *confirmation) check(to terminal.Streams) error {
	if c.Yes || to.CanAsk {
		return nil
	}
	return errNoAnswer
}

// confirm asks whether to do what the text says with the resource. Without --yes it requires the name of the resource.
func (o *operator) confirm(ctx context.Context, c *confirmation, resource, text string) error {
	name := client.Name(resource)
	return o.ask(ctx, c, text, fmt.Sprintf("Type %q to confirm: ", name), name, resource)
}

// agree asks whether to do what the text says. It is for what can be undone.
func (o *operator) agree(ctx context.Context, c *confirmation, text string) error {
	return o.ask(ctx, c, text, "Continue? [y/N] ", "y", "yes")
}

func (o *operator) ask(ctx context.Context, c *confirmation, text, question string, accepted ...string) error {
	if c.Yes {
		return nil
	}
	if err := c.check(o.Streams); err != nil {
		return err
	}
	fmt.Fprintf(o.Stderr, "%s\n%s", text, question)
	answer, err := await(ctx, func() (string, error) { return bufio.NewReader(o.Stdin).ReadString('\n') })
	answer = strings.TrimSpace(answer)
	switch {
	case done(ctx) != nil:
		fmt.Fprintln(o.Stderr)
		return err
	case slices.ContainsFunc(accepted, func(word string) bool { return strings.EqualFold(answer, word) }):
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(o.Stderr)
		return cli.Misuse("stdin ended without an answer; pass --yes to skip confirmation")
	default:
		return errors.New("not confirmed; nothing was changed")
	}
}
