package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// handful is the most messages a consumer has in hand, and so the most a kill can double.
const handful = 100

// consume takes lines until it is told to stop. Its work on a line is to write it to the output; only then the line is
// completed. A consumer killed in between leaves lines that another one does again.
func consume(ctx context.Context, address, output string) error {
	out, err := os.OpenFile(output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // every write was checked
	conn, err := connect(address)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	client := sidebusv1.NewMessagesClient(conn)

	most := int32(handful)
	request := &sidebusv1.ReceiveRequest{Source: source, MaxMessages: &most, MaxWait: durationpb.New(20 * time.Second)}
	for {
		received, err := client.Receive(ctx, request)
		if status.Code(err) == codes.Canceled && ctx.Err() != nil {
			return nil // told to stop while waiting
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if err := process(context.WithoutCancel(ctx), client, received.GetMessages(), out); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

func process(
	ctx context.Context, client sidebusv1.MessagesClient, messages []*sidebusv1.ReceivedMessage, out *os.File,
) error {
	if len(messages) == 0 {
		return nil
	}
	tokens := make([]string, len(messages))
	for i, m := range messages {
		// In hex, so that any line fits into one line of the output.
		_, err := fmt.Fprintf(
			out, "%s %d %s\n", m.GetMessageId(), m.GetDeliveryCount(), hex.EncodeToString(m.GetBody()),
		)
		if err != nil {
			return err
		}
		tokens[i] = m.GetLockToken()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done, err := client.Complete(ctx, &sidebusv1.CompleteRequest{Source: source, LockTokens: tokens})
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	for _, result := range done.GetResults() {
		if result.GetReason() != "" {
			return fmt.Errorf(
				"complete: %s: the work took longer than the lock of %s", result.GetReason(), lockDuration,
			)
		}
	}
	return nil
}
