package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/sidebus/sidebus/proto/client"
)

// handful is the most messages that a consumer has at a time, and so the most that a kill can double.
const handful = 100

// consume handles lines until ctx ends. Its work on a line is to write it to the output; after that, Handle completes
// the message. If a consumer is killed in between, another one handles the line again.
func consume(ctx context.Context, address, output string) error {
	out, err := os.OpenFile(output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // every write was checked
	sidebus, err := client.New(address, nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	receiver, err := sidebus.NewReceiverForQueue(queue, nil)
	if err != nil {
		return err
	}
	handler := func(_ context.Context, m *client.HandledMessage) error {
		// In hex, so that any line fits into one line of the output.
		_, err := fmt.Fprintf(out, "%s %d %s\n", m.MessageID, m.DeliveryCount, hex.EncodeToString(m.Body))
		return err // nil completes the message
	}
	return receiver.Handle(ctx, handler, &client.HandleOptions{
		Concurrency: handful,
		OnError:     func(err error) { fmt.Fprintln(os.Stderr, "log-crunch:", err) },
	})
}
