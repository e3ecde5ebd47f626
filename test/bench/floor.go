package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sidebus "github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/figures"
)

// floor is a server with the API of Sidebus that keeps nothing and asks no Redis: what gRPC alone costs, and so what no
// sidecar that is called in this way can be faster than.
func floor(client string, carry work, separate bool) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, _ string) (*opened, error) {
		server, err := startServer(ctx, separate, "-serve-floor")
		if err != nil {
			return nil, err
		}
		return &opened{
			round: carrying(
				processes{"client": figures.OwnCPU, "server": figures.CPUOf(server.pid)},
				func(ctx context.Context, n int) error { return carry(ctx, server.messages, queueOf(0), n) },
			),
			versions: map[string]string{"grpc-go": moduleVersion("google.golang.org/grpc")},
			settings: map[string]string{"client": client, "server": "answers at once and keeps nothing; gRPC on TCP"},
			stop:     server.stop,
		}, nil
	}
}

// floorProcess is this program as a server with the API of Sidebus.
type floorProcess struct {
	pid      int
	messages sidebusv1.MessagesClient
	stop     func()
}

// startServer runs this program with arguments that let it serve and print its address. separate: each call is an RPC
// of its own.
func startServer(ctx context.Context, separate bool, args ...string) (*floorProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() { _ = command.Process.Kill(); _ = command.Wait() }
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	connection, err := sidebus.New(strings.TrimSpace(address), &sidebus.Options{SeparateCalls: separate})
	if err != nil {
		stop()
		return nil, err
	}
	return &floorProcess{
		pid: command.Process.Pid, messages: sidebusv1.NewMessagesClient(connection.Conn()),
		stop: func() { _ = connection.Close(); stop() },
	}, nil
}

// serve prints the address of a server with the API of Sidebus and serves until it is killed.
func serve(api sidebusv1.MessagesServer, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	sidebusv1.RegisterMessagesServer(server, api)
	if calls, ok := api.(sidebusv1.CallsServer); ok {
		sidebusv1.RegisterCallsServer(server, calls)
	}
	fmt.Fprintln(out, listener.Addr())
	return server.Serve(listener)
}

// floorServer delivers to the subscriber as many messages as were published.
type floorServer struct {
	sidebusv1.UnimplementedMessagesServer
	sidebusv1.UnimplementedCallsServer
	sent chan struct{}
}

func floorMessage() *sidebusv1.ReceivedMessage {
	return &sidebusv1.ReceivedMessage{
		LockToken: proto.String("a token of the length that a token has"),
		Content:   &sidebusv1.ReceivedMessage_Body{Body: make([]byte, bodySize)},
	}
}

// Send forgets the message.
func (*floorServer) Send(context.Context, *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
	return &sidebusv1.SendResponse{}, nil
}

// Receive returns a message at once.
func (*floorServer) Receive(context.Context, *sidebusv1.ReceiveRequest) (*sidebusv1.ReceiveResponse, error) {
	return &sidebusv1.ReceiveResponse{Messages: []*sidebusv1.ReceivedMessage{floorMessage()}}, nil
}

// Complete does nothing.
func (*floorServer) Complete(context.Context, *sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error) {
	return &sidebusv1.SettleResponse{}, nil
}

// CompleteAndReceive returns a message at once.
func (*floorServer) CompleteAndReceive(context.Context, *sidebusv1.CompleteAndReceiveRequest) (
	*sidebusv1.CompleteAndReceiveResponse, error,
) {
	return &sidebusv1.CompleteAndReceiveResponse{Messages: []*sidebusv1.ReceivedMessage{floorMessage()}}, nil
}

// Publish confirms each message.
func (s *floorServer) Publish(stream sidebusv1.Messages_PublishServer) error {
	for {
		_, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.sent <- struct{}{}
		sent := &sidebusv1.PublishResponse_Sent{Sent: &sidebusv1.SendResponse{}}
		if err := stream.Send(&sidebusv1.PublishResponse{Outcome: sent}); err != nil {
			return err
		}
	}
}

// Subscribe delivers what was published, all there is at a time, and answers the request that wants an answer.
func (s *floorServer) Subscribe(stream sidebusv1.Messages_SubscribeServer) error {
	ended := make(chan error, 1)
	go func() {
		for {
			request, err := stream.Recv()
			if err != nil || request.GetRequestId() != "" {
				ended <- err
				return
			}
		}
	}()
	for {
		select {
		case <-s.sent:
			if err := stream.Send(s.deliveries()); err != nil {
				return err
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			return stream.Send(&sidebusv1.SubscribeResponse{RequestId: lastRequest})
		}
	}
}

// deliveries has one message and those that wait too.
func (s *floorServer) deliveries() *sidebusv1.SubscribeResponse {
	d := &sidebusv1.SubscribeDelivery{Messages: []*sidebusv1.ReceivedMessage{floorMessage()}}
	for {
		select {
		case <-s.sent:
			d.Messages = append(d.Messages, floorMessage())
		default:
			return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Deliveries{
				Deliveries: &sidebusv1.SubscribeDeliveries{Deliveries: []*sidebusv1.SubscribeDelivery{d}},
			}}
		}
	}
}
