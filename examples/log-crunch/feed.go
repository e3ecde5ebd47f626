package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// A batch stays under the bound of 256 KiB for queues with messages of that size.
const (
	batchLines = 500
	batchBytes = 128 << 10
)

// feed sends a file, one message a line, the line's number as message id. A send is retried by nobody: a failure ends
// the run, because without duplicate detection a repeated send could double lines.
func feed(ctx context.Context, address, file string) error {
	lines, err := readLines(file)
	if err != nil {
		return err
	}
	conn, err := connect(address)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	client := sidebusv1.NewMessagesClient(conn)

	var batch []*sidebusv1.Message
	size := 0
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		_, err := client.Send(ctx, &sidebusv1.SendRequest{Target: source, Messages: batch})
		batch, size = batch[:0], 0
		return err
	}
	for i, line := range lines {
		if len(batch) == batchLines || size+len(line) > batchBytes {
			if err := send(); err != nil {
				return fmt.Errorf("send before line %d: %w", i+1, err)
			}
		}
		number := strconv.Itoa(i + 1)
		batch = append(batch, &sidebusv1.Message{MessageId: &number, Content: &sidebusv1.Message_Body{Body: line}})
		size += len(line) + len(number)
	}
	return send()
}

// readLines gives the lines of a file without their ends.
func readLines(file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), nil
}
