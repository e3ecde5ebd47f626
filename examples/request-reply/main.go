// Command request-reply asks and answers through queues: the worker sends each reply into the session that the
// requester names, and the sidecar delivers it to the requester. See README.md.
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

	"github.com/sidebus/sidebus/proto/client"
)

const (
	requests = "factors"
	replies  = "replies"
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
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	if args[0] == "work" {
		return work(ctx, sidebus)
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return ask(ctx, sidebus, count)
}

// work answers requests until ctx ends, eight at a time. It need not know the requesters: the request says where the
// reply goes.
func work(ctx context.Context, sidebus *client.Client) error {
	receiver, err := sidebus.NewReceiverForQueue(requests, nil)
	if err != nil {
		return err
	}
	return receiver.Handle(ctx, func(ctx context.Context, m *client.HandledMessage) error {
		n, err := strconv.Atoi(string(m.Body))
		if err != nil {
			return client.DeadLetter(err) // no request; no later try makes it one
		}
		if n%1000 == 0 { // hard work
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		reply := &client.Message{Body: fmt.Append(nil, n, " = ", factors(n)), BodyType: client.BodyText}
		// The request is completed after its reply was sent, so that none is lost; one may be sent twice.
		return sidebus.Reply(ctx, m.ReceivedMessage, reply, nil)
	}, &client.HandleOptions{Concurrency: 8, OnError: func(err error) {
		fmt.Fprintln(os.Stderr, "request-reply:", err)
	}})
}

// factors returns a number as a product.
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
func ask(ctx context.Context, sidebus *client.Client, count int) error {
	sender, err := sidebus.NewSender(requests, nil)
	if err != nil {
		return err
	}
	began := time.Now()
	failures := make(chan error, count)
	var askers sync.WaitGroup
	for i := range count {
		askers.Go(func() {
			n := 1001 + i%998 // asked several times over, by askers who know nothing of one another
			request := &client.Message{Body: []byte(strconv.Itoa(n)), BodyType: client.BodyText}
			reply, err := sender.Request(ctx, request, replies, &client.RequestOptions{Timeout: 15 * time.Second})
			if err != nil {
				failures <- err
			} else if got, want := string(reply.Body), fmt.Sprint(n, " = ", factors(n)); got != want {
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
