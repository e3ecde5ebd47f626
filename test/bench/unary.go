package main

import (
	"context"
	"errors"
	"fmt"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type lifecycle = func(ctx context.Context, client sidebusv1.MessagesClient, queue string, more func() bool) error

// calling carries messages from as many callers as asynq has workers.
func calling(carry lifecycle) work {
	return func(ctx context.Context, client sidebusv1.MessagesClient, queue string, messages int) error {
		return fromCallers(messages, func(more func() bool) error { return carry(ctx, client, queue, more) })
	}
}

// steps makes three calls a message, one for each step.
func steps(ctx context.Context, client sidebusv1.MessagesClient, queue string, more func() bool) error {
	for more() {
		if err := send(ctx, client, queue); err != nil {
			return err
		}
		taken, err := client.Receive(ctx, &sidebusv1.ReceiveRequest{Source: "queues/" + queue})
		if err != nil {
			return err
		}
		if len(taken.GetMessages()) != 1 {
			return errors.New("nothing came")
		}
		if err := complete(ctx, client, queue, taken.GetMessages()[0].GetLockToken()); err != nil {
			return err
		}
	}
	return nil
}

// turns makes two calls a message: one that sends, and one that completes the last message and receives the next.
func turns(ctx context.Context, client sidebusv1.MessagesClient, queue string, more func() bool) error {
	var done []string
	for more() {
		if err := send(ctx, client, queue); err != nil {
			return err
		}
		next, err := client.CompleteAndReceive(
			ctx, &sidebusv1.CompleteAndReceiveRequest{Source: "queues/" + queue, LockTokens: done},
		)
		if err != nil {
			return err
		}
		if len(next.GetMessages()) != 1 {
			return fmt.Errorf("nothing came: %v", next.GetFailure())
		}
		done = []string{next.GetMessages()[0].GetLockToken()}
	}
	return complete(ctx, client, queue, done...)
}

func send(ctx context.Context, client sidebusv1.MessagesClient, queue string) error {
	m := &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: make([]byte, bodySize)}}
	_, err := client.Send(ctx, &sidebusv1.SendRequest{Target: "queues/" + queue, Messages: []*sidebusv1.Message{m}})
	return err
}

func complete(ctx context.Context, client sidebusv1.MessagesClient, queue string, tokens ...string) error {
	if len(tokens) == 0 {
		return nil
	}
	_, err := client.Complete(ctx, &sidebusv1.CompleteRequest{Source: "queues/" + queue, LockTokens: tokens})
	return err
}
