//go:build !race

package proxy_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
)

// clients are those of one connection.
type clients struct {
	sidebusv1.MessagesClient
	sidebusv1.SessionsClient
	sidebusv1.AdminClient
}

func clientsOf(t *testing.T, p *proxy.Proxy) clients {
	t.Helper()
	return clientsOver(dial(t, p.GRPCAddr().String()))
}

// clientsOverOneStream makes their calls over one stream.
func clientsOverOneStream(t *testing.T, p *proxy.Proxy) clients {
	t.Helper()
	return clientsOver(multiplexed(t, p))
}

func clientsOver(conn grpc.ClientConnInterface) clients {
	return clients{sidebusv1.NewMessagesClient(conn), sidebusv1.NewSessionsClient(conn), sidebusv1.NewAdminClient(conn)}
}

// carry carries messages from a sender to a receiver that completes them.
type carry func(t *testing.T, client clients, messages int)

const steps = "queues/steps" // requires sessions

func message1K() *sidebusv1.Message {
	return &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: make([]byte, 1024)}}
}

// byCalls makes three calls for each message.
func byCalls(t *testing.T, client clients, messages int) {
	t.Helper()
	for range messages {
		_, err := client.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{message1K()}})
		must(t, err)
		taken, err := client.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders})
		must(t, err)
		_, err = client.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: orders, LockTokens: []string{taken.GetMessages()[0].GetLockToken()}})
		must(t, err)
	}
}

// byTurns makes two calls for each message: one that sends, and one that completes the last message and receives the next.
func byTurns(t *testing.T, client clients, messages int) {
	t.Helper()
	var done []string
	for range messages {
		_, err := client.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{message1K()}})
		must(t, err)
		next, err := client.CompleteAndReceive(t.Context(), &sidebusv1.CompleteAndReceiveRequest{Source: orders, LockTokens: done})
		must(t, err)
		done = []string{next.GetMessages()[0].GetLockToken()}
	}
	_, err := client.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: orders, LockTokens: done})
	must(t, err)
}

// bySession makes three calls for each message of a session, which is held all the time.
func bySession(t *testing.T, client clients, messages int) {
	t.Helper()
	_, err := client.EnsureQueue(t.Context(), &sidebusv1.EnsureQueueRequest{
		Name: steps, Queue: &sidebusv1.Queue{RequiresSession: proto.Bool(true)},
	})
	must(t, err)
	held, err := client.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: steps, SessionId: proto.String("a")})
	must(t, err)
	lock := proto.String(held.GetSession().GetLockToken())
	for range messages {
		m := message1K()
		m.SessionId = proto.String("a")
		_, err := client.Send(t.Context(), &sidebusv1.SendRequest{Target: steps, Messages: []*sidebusv1.Message{m}})
		must(t, err)
		taken, err := client.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: steps, SessionLockToken: lock})
		must(t, err)
		_, err = client.Complete(t.Context(), &sidebusv1.CompleteRequest{
			Source: steps, SessionLockToken: lock, LockTokens: []string{taken.GetMessages()[0].GetLockToken()},
		})
		must(t, err)
	}
	_, err = client.SessionsClient.Close(t.Context(), &sidebusv1.SessionsCloseRequest{Source: steps, LockToken: *lock})
	must(t, err)
}

// byStreamInSession sends to a session with large calls, and completes its messages one by one on a stream, in turns.
func byStreamInSession(t *testing.T, client clients, messages int) {
	t.Helper()
	for left := messages; left > 0; left -= 100 {
		request := &sidebusv1.SendRequest{Target: steps}
		for range min(left, 100) {
			m := message1K()
			m.SessionId = proto.String("b")
			request.Messages = append(request.Messages, m)
		}
		_, err := client.Send(t.Context(), request)
		must(t, err)
	}
	completeByStream(t, client, steps, messages, 1)
}

// byStreams returns a function that publishes, and then receives and completes, so many messages a request.
func byStreams(batch int) carry {
	return func(t *testing.T, client clients, messages int) {
		t.Helper()
		carryByStream(t, client, messages, batch)
	}
}

func carryByStream(t *testing.T, client clients, messages, batch int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), streamPatience)
	defer cancel()
	publish, err := client.Publish(ctx)
	must(t, err)
	for range messages / batch {
		request := &sidebusv1.PublishRequest{Target: orders}
		for range batch {
			request.Messages = append(request.Messages, message1K())
		}
		must(t, publish.Send(request))
		_, err := publish.Recv()
		must(t, err)
	}
	must(t, publish.CloseSend())
	completeByStream(t, client, orders, messages, batch)
}

// completeByStream completes messages on a stream with so many credits. It completes as many with each request, so that
// the number of requests does not depend on the portions in which they arrive.
func completeByStream(t *testing.T, client clients, source string, messages, credits int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), streamPatience)
	defer cancel()
	subscribe, err := client.Subscribe(ctx)
	must(t, err)
	must(t, subscribe.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{
		Open: &sidebusv1.SubscribeOpen{Source: source, Credits: proto.Int32(int32(credits))},
	}}))
	var tokens []string
	for left := messages; left > 0; {
		event, err := subscribe.Recv()
		must(t, err)
		for _, d := range event.GetDeliveries().GetDeliveries() {
			for _, m := range d.GetMessages() {
				tokens = append(tokens, m.GetLockToken())
			}
		}
		if len(tokens) < min(credits, left) {
			continue
		}
		left -= len(tokens)
		must(t, subscribe.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{
			LockTokens: tokens, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
		}}}))
		tokens = nil
	}
	must(t, subscribe.CloseSend())
	for err == nil { // a stream that is cut here may release the last messages, and the next measurement would pay for them
		_, err = subscribe.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}
