package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proto/client"
)

// seen is what the workers have processed.
type seen struct {
	mu   sync.Mutex
	next map[string]int // number of the next order, by customer
	in   map[string]int // partition, by customer
}

// processSession processes what there is of one customer and returns how many orders that was.
func (s *seen) processSession(ctx context.Context, session *client.SessionReceiver) (n int, err error) {
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	for {
		messages, err := session.ReceiveMessages(ctx, each, &client.ReceiveMessagesOptions{MaxWait: new(time.Duration)})
		if err != nil || len(messages) == 0 {
			return n, err
		}
		for _, m := range messages {
			if err := s.note(session.SessionID(), m); err != nil {
				return n, err
			}
			if err := session.CompleteMessage(ctx, m, nil); err != nil {
				return n, err
			}
			n++
		}
	}
}

// note checks that an order is the next one of its customer, and in the same partition as those before.
func (s *seen) note(customer string, m *client.ReceivedMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, want := string(m.Body), strconv.Itoa(s.next[customer]); got != want {
		return fmt.Errorf("order %s came where %s was next", got, want)
	}
	s.next[customer]++
	partition := int(m.SequenceNumber >> 48) // the topmost 16 bits
	if before, is := s.in[customer]; is && before != partition {
		return fmt.Errorf("an order is in partition %d, those before in %d", partition, before)
	}
	s.in[customer] = partition
	return nil
}

// check checks that each order came, and that the customers are spread over the partitions.
func (s *seen) check() error {
	var count [partitions]int
	for i := range customers {
		name := customer(i)
		if s.next[name] != each {
			return fmt.Errorf("%s has %d orders, want %d", name, s.next[name], each)
		}
		count[s.in[name]]++
	}
	fmt.Printf("%d orders, each once and in the order of its customer\n", customers*each)
	fmt.Printf("customers in each partition: %v\n", count)
	for p, n := range count {
		if n == 0 {
			return fmt.Errorf("partition %d has no customer", p)
		}
	}
	return nil
}
