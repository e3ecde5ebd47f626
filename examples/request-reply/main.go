// Command request-reply asks and answers through queues: the worker sends each reply into the session that the requester names, and
// the sidecar gives it to whoever asked. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	requests = "queues/factors"
	replies  = "queues/replies"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := do(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "request-reply:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "work" && (args[0] != "ask" || len(args) != 2) {
		return fmt.Errorf("usage: request-reply work | ask COUNT, with the sidecar's address in $GRPC")
	}
	conn, err := grpc.NewClient(os.Getenv("GRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	messages := sidebusv1.NewMessagesClient(conn)
	if args[0] == "work" {
		return work(ctx, messages)
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return ask(ctx, messages, count)
}

// work answers requests until ctx ends, eight at a time. Nobody needs to know who asks: the request says where the reply goes.
func work(ctx context.Context, messages sidebusv1.MessagesClient) error {
	credits := int32(8)
	open := &sidebusv1.SubscribeOpen{Source: requests, Credits: &credits}
	return sidebusv1.Handle(ctx, messages, open, func(ctx context.Context, m *sidebusv1.HandledMessage) error {
		n, err := strconv.Atoi(m.GetText())
		if err != nil {
			return sidebusv1.DeadLetter(err) // no request; no later try makes it one
		}
		if n%1000 == 0 { // hard work
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		reply := &sidebusv1.Message{
			SessionId:     m.ReplyToSessionId,
			CorrelationId: m.CorrelationId,
			Content:       &sidebusv1.Message_Text{Text: fmt.Sprint(n, " = ", factors(n))},
		}
		if reply.CorrelationId == nil {
			reply.CorrelationId = m.MessageId
		}
		_, err = messages.Send(ctx, &sidebusv1.SendRequest{Target: "queues/" + m.GetReplyTo(), Messages: []*sidebusv1.Message{reply}})
		return err // the request is completed after its reply was sent, so that none is lost; one may be sent twice
	}, sidebusv1.OnFailure(func(err error) { fmt.Fprintln(os.Stderr, "request-reply:", err) }))
}

// factors gives a number as a product.
func factors(n int) string {
	product := ""
	for p := 2; n > 1; p++ {
		for ; n%p == 0; n /= p {
			product += " * " + strconv.Itoa(p)
		}
	}
	return product[min(len(product), 3):]
}

// ask makes so many requests at the same time and looks at every reply.
func ask(ctx context.Context, messages sidebusv1.MessagesClient, count int) error {
	began := time.Now()
	failures := make(chan error, count)
	var askers sync.WaitGroup
	for i := range count {
		askers.Go(func() {
			n := 1001 + i%998 // asked several times over, by askers who know nothing of one another
			response, err := messages.Request(ctx, &sidebusv1.RequestRequest{
				Target: requests, ReplyTo: replies, Timeout: durationpb.New(15 * time.Second),
				Message: &sidebusv1.Message{Content: &sidebusv1.Message_Text{Text: strconv.Itoa(n)}},
			})
			if err != nil {
				failures <- err
			} else if got, want := response.GetMessage().GetText(), fmt.Sprint(n, " = ", factors(n)); got != want {
				failures <- fmt.Errorf("asked for %d, got %q, want %q", n, got, want)
			}
		})
	}
	askers.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	fmt.Printf("%d requests at the same time: each got its own reply, in %.2f s\n", count, time.Since(began).Seconds())
	return nil
}
