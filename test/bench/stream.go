package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// lastRequest is the settlement of the last message, the only one whose answer is awaited.
const lastRequest = "last"

// stream carries messages through Publish and Subscribe, one message a request, those of number i in session i modulo
// sessions, if there are any.
func stream(sessions int) work {
	return func(ctx context.Context, client sidebusv1.MessagesClient, queue string, messages int) error {
		return through(ctx, client, queue, messages, sessions)
	}
}

func through(ctx context.Context, client sidebusv1.MessagesClient, queue string, messages, sessions int) error {
	subscription, err := subscribe(ctx, client, queue)
	if err != nil {
		return err
	}
	published := make(chan error, 1)
	go func() { published <- publish(ctx, client, queue, messages, sessions) }()
	for left := messages; ; {
		answer, err := subscription.Recv()
		if err != nil {
			return err
		}
		if answer.GetRequestId() == lastRequest {
			break
		}
		tokens := tokensOf(answer)
		if len(tokens) == 0 {
			continue
		}
		settle := completion(tokens)
		if left -= len(tokens); left == 0 {
			settle.RequestId = lastRequest
		}
		if err := subscription.Send(settle); err != nil {
			return err
		}
	}
	if err := subscription.CloseSend(); err != nil {
		return err
	}
	return <-published
}

func subscribe(
	ctx context.Context, client sidebusv1.MessagesClient, queue string,
) (sidebusv1.Messages_SubscribeClient, error) {
	subscription, err := client.Subscribe(ctx)
	if err != nil {
		return nil, err
	}
	return subscription, subscription.Send(
		&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{
			Source: "queues/" + queue, Credits: proto.Int32(window), MaxConcurrentSessions: proto.Int32(window),
		}}},
	)
}

func tokensOf(answer *sidebusv1.SubscribeResponse) (tokens []string) {
	for _, d := range answer.GetDeliveries().GetDeliveries() {
		for _, m := range d.GetMessages() {
			tokens = append(tokens, m.GetLockToken())
		}
	}
	return tokens
}

func completion(tokens []string) *sidebusv1.SubscribeRequest {
	return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{
		LockTokens: tokens, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
	}}}
}

// publish sends with at most window unanswered messages.
func publish(ctx context.Context, client sidebusv1.MessagesClient, queue string, messages, sessions int) error {
	stream, err := client.Publish(ctx)
	if err != nil {
		return err
	}
	unanswered, ended := make(chan struct{}, window), make(chan error, 1)
	go func() {
		for range messages {
			answer, err := stream.Recv()
			if err == nil && answer.GetSent() == nil {
				err = fmt.Errorf("refused: %v", answer.GetFailure())
			}
			if err != nil {
				ended <- err
				return
			}
			<-unanswered
		}
		ended <- nil
	}()
	body := make([]byte, bodySize)
	for i := range messages {
		select {
		case unanswered <- struct{}{}:
		case err := <-ended:
			return err
		}
		m := &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: body}}
		if sessions > 0 {
			m.SessionId = proto.String(fmt.Sprint("session-", i%sessions))
		}
		if err := stream.Send(&sidebusv1.PublishRequest{
			Target:   "queues/" + queue,
			Messages: []*sidebusv1.Message{m},
		}); err != nil {
			return err
		}
	}
	return errors.Join(stream.CloseSend(), <-ended)
}
