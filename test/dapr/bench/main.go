package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 2 && args[0] == "serve-floor" {
		return serveFloor(ctx, args[1])
	}
	if len(args) != 3 {
		return fmt.Errorf("there are %d arguments, must be 3", len(args))
	}
	c, callers := contenders[args[0]], 0
	if c == nil {
		return fmt.Errorf("there is no component %q", args[0])
	}
	callers, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	bed, err := newBed(ctx, c, args[1])
	if err != nil {
		return err
	}
	defer bed.stop()
	if err := c.start(ctx, bed, callers); err != nil {
		return err
	}
	answer := json.NewEncoder(out)
	if err := answer.Encode(bed.hello(ctx)); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var verb string
		var messages int
		if _, err := fmt.Sscan(lines.Text(), &verb, &messages); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		values, err := c.do(ctx, bed, verb, messages)
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if err := answer.Encode(values); err != nil {
			return err
		}
	}
	return nil
}
