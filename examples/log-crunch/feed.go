package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/sidebus/sidebus/proto/client"
)

// feed sends a file, one message a line, with the number of the line as message id. A batch is stored completely or not
// at all. The client repeats a send that fails, and Sidebus stores the batch once.
func feed(ctx context.Context, address, file string) error {
	lines, err := readLines(file)
	if err != nil {
		return err
	}
	sidebus, err := client.New(address, nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	sender, err := sidebus.NewSender(queue, nil)
	if err != nil {
		return err
	}
	batch := sender.NewMessageBatch(nil)
	for i, line := range lines {
		m := &client.Message{MessageID: new(strconv.Itoa(i + 1)), Body: line}
		err := batch.AddMessage(m, nil)
		if errors.Is(err, client.ErrMessageTooLarge) && batch.NumMessages() > 0 { // the batch is full
			if _, err := sender.SendMessageBatch(ctx, batch, nil); err != nil {
				return fmt.Errorf("send before line %d: %w", i+1, err)
			}
			batch = sender.NewMessageBatch(nil)
			err = batch.AddMessage(m, nil)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	_, err = sender.SendMessageBatch(ctx, batch, nil)
	return err
}

// readLines returns the lines of a file without their ends.
func readLines(file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), nil
}
