package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// A sidecar listens at target. Without one, New takes SIDEBUS_GRPC_ADDR or 127.0.0.1:7421.
func ExampleNew() {
	sidebus, err := client.New(target, nil)
	if err != nil {
		panic(err)
	}
	defer sidebus.Close()

	sender, err := sidebus.NewSender("no-such-queue", nil)
	if err != nil {
		panic(err)
	}
	err = sender.SendMessage(context.Background(), &client.Message{Body: []byte("hello")}, nil)
	fmt.Println(errors.Is(err, client.CodeEntityNotFound))
	// Output: true
}

// Admin creates, reads, updates, lists and deletes queues, topics, subscriptions and rules.
func ExampleClient_Admin() {
	ctx := context.Background()
	sidebus, err := client.New(target, nil)
	if err != nil {
		panic(err)
	}
	defer sidebus.Close()

	ensured, err := sidebus.Admin().EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: "queues/example-admin"})
	if err != nil {
		panic(err)
	}
	queue, err := sidebus.Admin().GetQueue(ctx, &sidebusv1.GetQueueRequest{Name: "queues/example-admin"})
	if err != nil {
		panic(err)
	}
	fmt.Println(ensured.GetCreated(), queue.GetLockDuration().AsDuration())
	if _, err := sidebus.Admin().DeleteQueue(ctx, &sidebusv1.DeleteQueueRequest{Name: "queues/example-admin"}); err != nil {
		panic(err)
	}
	// Output: true 1m0s
}

func ExampleSender() {
	ctx := context.Background()
	sidebus, err := client.New(target, nil)
	if err != nil {
		panic(err)
	}
	defer sidebus.Close()
	mustQueue(ctx, sidebus, "example-sender", nil)

	sender, err := sidebus.NewSender("example-sender", nil)
	if err != nil {
		panic(err)
	}
	err = sender.SendMessage(ctx, &client.Message{
		Body:                  []byte("two shirts"),
		Subject:               new("order"),
		TimeToLive:            new(time.Hour),
		ApplicationProperties: map[string]any{"customer": "c-7", "total": 49},
	}, nil)
	if err != nil {
		panic(err)
	}

	// Several at a time: all are stored, or none.
	sent, err := sender.SendMessages(ctx, []*client.Message{{Body: []byte("one")}, {Body: []byte("two")}}, nil)
	if err != nil {
		panic(err)
	}
	for _, m := range sent {
		fmt.Println(m.SequenceNumber)
	}
	// Output:
	// 2
	// 3
}

func ExampleSender_NewMessageBatch() {
	ctx := context.Background()
	sidebus, sender := exampleQueue(ctx, "example-batch", nil)
	defer sidebus.Close()

	batch := sender.NewMessageBatch(nil)
	for range 10 {
		m := &client.Message{Body: make([]byte, 100_000)}
		err := batch.AddMessage(m, nil)
		if errors.Is(err, client.ErrMessageTooLarge) && batch.NumMessages() > 0 { // full: send it and begin another
			fmt.Println("send", batch.NumMessages())
			if _, err := sender.SendMessageBatch(ctx, batch, nil); err != nil {
				panic(err)
			}
			batch = sender.NewMessageBatch(nil)
			err = batch.AddMessage(m, nil)
		}
		if err != nil {
			panic(err)
		}
	}
	fmt.Println("send", batch.NumMessages())
	if _, err := sender.SendMessageBatch(ctx, batch, nil); err != nil {
		panic(err)
	}
	// Output:
	// send 2
	// send 2
	// send 2
	// send 2
	// send 2
}

func ExampleSender_ScheduleMessages() {
	ctx := context.Background()
	sidebus, sender := exampleQueue(ctx, "example-schedule", nil)
	defer sidebus.Close()

	tomorrow := time.Now().Add(24 * time.Hour)
	numbers, err := sender.ScheduleMessages(ctx, []*client.Message{{Body: []byte("pay")}, {Body: []byte("ship")}}, tomorrow, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(numbers)

	// It was paid already.
	if err := sender.CancelScheduledMessages(ctx, numbers[:1], nil); err != nil {
		panic(err)
	}
	fmt.Println(errors.Is(sender.CancelScheduledMessages(ctx, numbers[:1], nil), client.CodeMessageNotFound))
	// Output:
	// [1 2]
	// true
}

func ExampleReceiver() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sidebus, sender := exampleQueue(ctx, "example-receiver", nil)
	defer sidebus.Close()
	if _, err := sender.SendMessages(ctx, []*client.Message{{Body: []byte("tea")}, {Body: []byte("coffee")}}, nil); err != nil {
		panic(err)
	}

	// The locks are renewed for an hour, unless the messages are settled first.
	receiver, err := sidebus.NewReceiverForQueue("example-receiver", &client.ReceiverOptions{MaxAutoRenew: time.Hour})
	if err != nil {
		panic(err)
	}
	for range 2 {
		messages, err := receiver.ReceiveMessages(ctx, 1, nil) // waits for the first one
		if err != nil {
			panic(err)
		}
		for _, m := range messages {
			if string(m.Body) == "coffee" {
				err = receiver.DeadLetterMessage(ctx, m, &client.DeadLetterOptions{Reason: new("NoSuchTea")})
			} else {
				err = receiver.CompleteMessage(ctx, m, nil)
			}
			if err != nil {
				panic(err)
			}
		}
	}

	letters, err := sidebus.NewReceiverForQueue("example-receiver", &client.ReceiverOptions{SubQueue: client.SubQueueDeadLetter})
	if err != nil {
		panic(err)
	}
	dead, err := letters.PeekMessages(ctx, 10, nil)
	if err != nil {
		panic(err)
	}
	for _, m := range dead {
		fmt.Println(string(m.Body), *m.DeadLetterReason)
	}
	// Output: coffee NoSuchTea
}

// A loop that makes one call for each batch: it completes the last one and receives the next.
func ExampleReceiver_CompleteAndReceive() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sidebus, sender := exampleQueue(ctx, "example-next-batch", nil)
	defer sidebus.Close()
	if _, err := sender.SendMessages(ctx, []*client.Message{{Body: []byte("tea")}, {Body: []byte("coffee")}}, nil); err != nil {
		panic(err)
	}

	receiver, err := sidebus.NewReceiverForQueue("example-next-batch", nil)
	if err != nil {
		panic(err)
	}
	options := &client.CompleteAndReceiveOptions{MaxWait: new(100 * time.Millisecond)}
	var done []*client.ReceivedMessage
	for {
		next, err := receiver.CompleteAndReceive(ctx, done, 1, options)
		if err != nil {
			panic(err)
		}
		if err := errors.Join(next.Completed...); err != nil {
			fmt.Println(err) // its lock was lost, so it comes again
		}
		if done = next.Messages; len(done) == 0 {
			break
		}
		for _, m := range done {
			fmt.Println(string(m.Body))
		}
	}
	// Output:
	// tea
	// coffee
}

func ExampleSessionReceiver() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sidebus, sender := exampleQueue(ctx, "example-session", &sidebusv1.Queue{RequiresSession: new(true)})
	defer sidebus.Close()
	for _, step := range []string{"cut", "sew", "press"} {
		if err := sender.SendMessage(ctx, &client.Message{SessionID: new("shirt-7"), Body: []byte(step)}, nil); err != nil {
			panic(err)
		}
	}

	receiver, err := sidebus.AcceptNextSessionForQueue(ctx, "example-session", &client.SessionReceiverOptions{MaxAutoRenew: time.Hour})
	if err != nil {
		panic(err)
	}
	messages, err := receiver.ReceiveMessages(ctx, 10, nil)
	if err != nil {
		panic(err)
	}
	for _, m := range messages {
		fmt.Println(receiver.SessionID(), *m.SessionSequence, string(m.Body))
		// The state tells the next receiver how far the work is, should this one stop here.
		if err := receiver.SetSessionState(ctx, m.Body, nil); err != nil {
			panic(err)
		}
		if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
			panic(err)
		}
	}
	if err := receiver.Close(ctx); err != nil { // another receiver may have the session now
		panic(err)
	}
	// Output:
	// shirt-7 1 cut
	// shirt-7 2 sew
	// shirt-7 3 press
}

func ExampleReceiver_Handle() {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	sidebus, sender := exampleQueue(ctx, "example-handle", nil)
	defer sidebus.Close()
	for _, body := range []string{"one", "two", "three"} {
		if err := sender.SendMessage(ctx, &client.Message{Body: []byte(body)}, nil); err != nil {
			panic(err)
		}
	}

	receiver, err := sidebus.NewReceiverForQueue("example-handle", nil)
	if err != nil {
		panic(err)
	}
	var handled atomic.Int32
	handler := func(ctx context.Context, m *client.HandledMessage) error {
		switch {
		case string(m.Body) == "two" && m.DeliveryCount == 1:
			return errors.New("try again") // abandons it: it comes again
		case string(m.Body) == "three":
			defer stop() // ends Handle, once this handler has returned
		}
		handled.Add(1)
		return nil // completes it
	}
	// Handle returns when ctx has ended and all handlers have returned.
	err = receiver.Handle(ctx, handler, &client.HandleOptions{Concurrency: 1})
	fmt.Println(handled.Load(), err)
	// Output: 3 <nil>
}

// A session queue needs no other code: messages of one session are handled one after the other, in order.
func ExampleReceiver_Handle_sessions() {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	sidebus, sender := exampleQueue(ctx, "example-handle-sessions", &sidebusv1.Queue{RequiresSession: new(true)})
	defer sidebus.Close()
	for i := range 3 {
		err := sender.SendMessage(ctx, &client.Message{SessionID: new("cart-7"), Body: fmt.Append(nil, "item ", i+1)}, nil)
		if err != nil {
			panic(err)
		}
	}

	receiver, err := sidebus.NewReceiverForQueue("example-handle-sessions", nil)
	if err != nil {
		panic(err)
	}
	err = receiver.Handle(ctx, func(ctx context.Context, m *client.HandledMessage) error {
		state := append(m.SessionState(), m.Body...)
		if *m.SessionSequence == 3 {
			fmt.Println(*m.SessionID, string(state))
			stop()
			return nil
		}
		return m.SetSessionState(ctx, append(state, ", "...))
	}, &client.HandleOptions{Concurrency: 8, MaxConcurrentSessions: 8})
	if err != nil {
		panic(err)
	}
	// Output: cart-7 item 1, item 2, item 3
}

func ExampleSender_Request() {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	sidebus, err := client.New(target, nil)
	if err != nil {
		panic(err)
	}
	defer sidebus.Close()
	mustQueue(ctx, sidebus, "example-questions", nil)
	mustQueue(ctx, sidebus, "example-answers", &sidebusv1.Queue{RequiresSession: new(true)})

	worker, err := sidebus.NewReceiverForQueue("example-questions", nil)
	if err != nil {
		panic(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- worker.Handle(ctx, func(ctx context.Context, m *client.HandledMessage) error {
			return sidebus.Reply(ctx, m.ReceivedMessage, &client.Message{Body: []byte("42")}, nil)
		}, nil)
	}()

	sender, err := sidebus.NewSender("example-questions", nil)
	if err != nil {
		panic(err)
	}
	reply, err := sender.Request(ctx, &client.Message{Body: []byte("6 x 7?")}, "example-answers", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(reply.Body))
	stop()
	if err := <-done; err != nil {
		panic(err)
	}
	// Output: 42
}
