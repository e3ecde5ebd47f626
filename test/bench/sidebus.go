package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// sidecar is how a sidecar is run.
type sidecar struct {
	binary string
	socket bool // the gRPC API listens on a unix socket
}

// carriers are the ways to carry messages through a sidecar.
func (s sidecar) carriers() []carrier {
	const plain, sessions = `{"maxSizeInMegabytes":"81920"}`, `{"maxSizeInMegabytes":"81920","requiresSession":true}`
	return []carrier{
		{name: "sidebus-stream", open: s.opens(plain, stream(0))},
		{name: "sidebus-sessions", share: 2, open: s.opens(sessions, stream(1000))},
		{name: "sidebus-unary", share: 5, open: s.opens(plain, fromCallers(steps))},
		{name: "sidebus-unary-2", share: 5, open: s.opens(plain, fromCallers(turns))},
	}
}

type work = func(ctx context.Context, client sidebusv1.MessagesClient, messages int) error

// opens returns a function that runs the sidecar over a Redis of its own with one queue.
func (s sidecar) opens(options string, carry work) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) {
		redisSocket, redisPID, stopRedis, err := startRedis(ctx, dir)
		if err != nil {
			return nil, err
		}
		grpcAddr, httpAddr := freeAddress(), freeAddress()
		if s.socket {
			grpcAddr = "unix://" + dir + "/grpc"
		}
		command := exec.CommandContext(
			ctx, s.binary, "serve", "--store", "unix://"+redisSocket, "--grpc-addr", grpcAddr, "--http-addr", httpAddr,
			"--admin-addr", freeAddress(), "--log-level", "error",
		)
		command.Stderr = os.Stderr
		if err := command.Start(); err != nil {
			stopRedis()
			return nil, fmt.Errorf("%w; run make build first", err)
		}
		stop := func() { _ = command.Process.Kill(); _ = command.Wait(); stopRedis() }
		if err := createQueue(ctx, "http://"+httpAddr+"/v1/queues/bench", options); err != nil {
			stop()
			return nil, err
		}
		conn, err := grpc.NewClient(grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			stop()
			return nil, err
		}
		client := sidebusv1.NewMessagesClient(conn)
		return &opened{
			carry: func(ctx context.Context, messages int) error { return carry(ctx, client, messages) },
			processes: map[string]func() time.Duration{
				"client":  ownCPU,
				"sidecar": func() time.Duration { return cpuOf(command.Process.Pid) },
				"redis":   func() time.Duration { return cpuOf(redisPID) },
			},
			stop: func() { _ = conn.Close(); stop() },
		}, nil
	}
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer listener.Close() //nolint:errcheck // only its address is wanted
	return listener.Addr().String()
}

// createQueue waits until the sidecar serves and creates the queue.
func createQueue(ctx context.Context, url, options string) error {
	for range 1000 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(options))
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the sidecar does not serve")
}

// stream carries messages through Publish and Subscribe, one message a request, those of number i in session i modulo
// sessions, if there are any.
func stream(sessions int) work {
	return func(ctx context.Context, client sidebusv1.MessagesClient, messages int) error {
		return through(ctx, client, messages, sessions)
	}
}

func through(ctx context.Context, client sidebusv1.MessagesClient, messages, sessions int) error {
	subscription, err := client.Subscribe(ctx)
	if err != nil {
		return err
	}
	err = subscription.Send(
		&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{
			Source: "queues/bench", Credits: proto.Int32(window), MaxConcurrentSessions: proto.Int32(window),
		}}},
	)
	if err != nil {
		return err
	}
	published := make(chan error, 1)
	go func() { published <- publish(ctx, client, messages, sessions) }()
	for left := messages; ; {
		answer, err := subscription.Recv()
		if err != nil {
			return err
		}
		if answer.GetRequestId() == "last" {
			break
		}
		var tokens []string
		for _, d := range answer.GetDeliveries().GetDeliveries() {
			for _, m := range d.GetMessages() {
				tokens = append(tokens, m.GetLockToken())
			}
		}
		if len(tokens) == 0 {
			continue
		}
		settle := &sidebusv1.SubscribeRequest{
			Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{
				LockTokens: tokens, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
			}},
		}
		if left -= len(tokens); left == 0 {
			settle.RequestId = "last"
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

// publish sends with at most window unanswered messages.
func publish(ctx context.Context, client sidebusv1.MessagesClient, messages, sessions int) error {
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
			Target:   "queues/bench",
			Messages: []*sidebusv1.Message{m},
		}); err != nil {
			return err
		}
	}
	return errors.Join(stream.CloseSend(), <-ended)
}

// fromCallers carries messages from as many callers as asynq has workers. Each calls carry, which asks for one more
// message until there is none.
func fromCallers(carry func(ctx context.Context, client sidebusv1.MessagesClient, more func() bool) error) work {
	return func(ctx context.Context, client sidebusv1.MessagesClient, messages int) error {
		var left atomic.Int64
		left.Store(int64(messages))
		more := func() bool { return left.Add(-1) >= 0 }
		failures := make(chan error, callers)
		for range callers {
			go func() { failures <- carry(ctx, client, more) }()
		}
		var failed error
		for range callers {
			failed = errors.Join(failed, <-failures)
		}
		return failed
	}
}

// steps makes three calls a message, one for each step.
func steps(ctx context.Context, client sidebusv1.MessagesClient, more func() bool) error {
	for more() {
		if err := send(ctx, client); err != nil {
			return err
		}
		taken, err := client.Receive(ctx, &sidebusv1.ReceiveRequest{Source: "queues/bench"})
		if err != nil {
			return err
		}
		if len(taken.GetMessages()) != 1 {
			return errors.New("nothing came")
		}
		if err := complete(ctx, client, taken.GetMessages()[0].GetLockToken()); err != nil {
			return err
		}
	}
	return nil
}

// turns makes two calls a message: one that sends, and one that completes the last message and receives the next.
func turns(ctx context.Context, client sidebusv1.MessagesClient, more func() bool) error {
	var done []string
	for more() {
		if err := send(ctx, client); err != nil {
			return err
		}
		next, err := client.CompleteAndReceive(
			ctx, &sidebusv1.CompleteAndReceiveRequest{Source: "queues/bench", LockTokens: done},
		)
		if err != nil {
			return err
		}
		if len(next.GetMessages()) != 1 {
			return fmt.Errorf("nothing came: %v", next.GetFailure())
		}
		done = []string{next.GetMessages()[0].GetLockToken()}
	}
	return complete(ctx, client, done...)
}

func send(ctx context.Context, client sidebusv1.MessagesClient) error {
	m := &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: make([]byte, bodySize)}}
	_, err := client.Send(ctx, &sidebusv1.SendRequest{Target: "queues/bench", Messages: []*sidebusv1.Message{m}})
	return err
}

func complete(ctx context.Context, client sidebusv1.MessagesClient, tokens ...string) error {
	if len(tokens) == 0 {
		return nil
	}
	_, err := client.Complete(ctx, &sidebusv1.CompleteRequest{Source: "queues/bench", LockTokens: tokens})
	return err
}
