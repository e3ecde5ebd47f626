// Command partitions spreads the orders of many customers over the partitions of one queue. Workers process them in the
// order of each customer. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	queue      = "orders"
	partitions = 6

	customers, each, workers = 60, 20, 8
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "partitions:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context) error {
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	_, err = sidebus.Admin().EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{
		Name: "queues/" + queue, Queue: &sidebusv1.Queue{Partitions: new(int32(partitions)), RequiresSession: new(true)},
	})
	if err != nil {
		return err
	}
	if err := order(ctx, sidebus); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	fmt.Printf("%d orders of %d customers in a queue with %d partitions, %d workers\n", customers*each, customers, partitions, workers)
	seen, err := process(ctx, sidebus)
	if err != nil {
		return err
	}
	return seen.check()
}

func customer(i int) string { return fmt.Sprintf("customer-%02d", i) }

// order sends the orders of all customers, in turn. The session is the key that decides about the partition.
func order(ctx context.Context, sidebus *client.Client) error {
	sender, err := sidebus.NewSender(queue, nil)
	if err != nil {
		return err
	}
	for number := range each {
		for i := range customers {
			m := &client.Message{Body: []byte(strconv.Itoa(number)), SessionID: new(customer(i))}
			if err := sender.SendMessage(ctx, m, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// process lets workers process all orders.
func process(ctx context.Context, sidebus *client.Client) (*seen, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &seen{next: map[string]int{}, in: map[string]int{}}
	var left atomic.Int64
	left.Store(customers * each)
	done := func(n int) {
		if left.Add(-int64(n)) == 0 {
			stop()
		}
	}
	failures := make(chan error, workers)
	var crew sync.WaitGroup
	for range workers {
		crew.Go(func() {
			if err := work(ctx, sidebus, s, done); err != nil {
				failures <- err
				stop()
			}
		})
	}
	crew.Wait()
	close(failures)
	var err error
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return s, err
}

// work takes one customer after the other until ctx ends.
func work(ctx context.Context, sidebus *client.Client, s *seen, done func(int)) error {
	for {
		session, err := sidebus.AcceptNextSessionForQueue(ctx, queue, nil)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		n, err := s.processSession(context.WithoutCancel(ctx), session)
		if err != nil {
			return fmt.Errorf("%s: %w", session.SessionID(), err)
		}
		done(n)
	}
}
