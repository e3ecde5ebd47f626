// Command reply-queues is a worker that answers into the queue that each request names. It knows none of them beforehand, and some are
// gone when it answers. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	requests  = "queues/weekdays"
	workTakes = 20 * time.Millisecond // for one request, as a call of another system would
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reply-queues:", err)
		os.Exit(1)
	}
}

// run answers requests until ctx ends, eight at a time.
func run(ctx context.Context) error {
	conn, err := grpc.NewClient(os.Getenv("GRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	messages, credits := sidebusv1.NewMessagesClient(conn), int32(8)
	open := &sidebusv1.SubscribeOpen{Source: requests, Credits: &credits}
	return sidebusv1.Handle(ctx, messages, open, func(ctx context.Context, m *sidebusv1.HandledMessage) error {
		if m.GetReplyTo() == "" {
			return sidebusv1.DeadLetter(errors.New("it does not say where the answer goes"))
		}
		day, err := time.Parse(time.DateOnly, m.GetText())
		if err != nil {
			return sidebusv1.DeadLetter(err) // no date; no later try makes it one
		}
		select {
		case <-time.After(workTakes):
		case <-ctx.Done():
			return ctx.Err()
		}
		return answer(ctx, messages, m, day.Weekday().String())
	}, sidebusv1.OnFailure(func(err error) { fmt.Fprintln(os.Stderr, "reply-queues:", err) }))
}

// answer sends to whoever asked. The request is completed after that, so that no answer is lost; one may be sent twice.
func answer(ctx context.Context, messages sidebusv1.MessagesClient, m *sidebusv1.HandledMessage, text string) error {
	reply := &sidebusv1.Message{CorrelationId: m.MessageId, Content: &sidebusv1.Message_Text{Text: text}}
	_, err := messages.Send(ctx, &sidebusv1.SendRequest{Target: "queues/" + m.GetReplyTo(), Messages: []*sidebusv1.Message{reply}})
	if status.Code(err) == codes.NotFound {
		fmt.Println("nobody waits any more at", m.GetReplyTo()) // and nobody will: the request is done
		return nil
	}
	return err
}
