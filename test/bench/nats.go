package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/sidebus/sidebus/test/figures"
)

// natsJetStream is one node with a file store and its default sync, asynchronous publishing and a pull of 500.
func natsJetStream(ctx context.Context, dir string) (*opened, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, "-serve-nats", dir)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() { _ = command.Process.Kill(); _ = command.Wait() }
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	conn, err := nats.Connect(strings.TrimSpace(url))
	if err != nil {
		stop()
		return nil, err
	}
	carry, err := jetStreamOn(ctx, conn)
	if err != nil {
		conn.Close()
		stop()
		return nil, err
	}
	return &opened{
		round: carrying(processes{"client": figures.OwnCPU, "server": figures.CPUOf(command.Process.Pid)}, carry),
		versions: map[string]string{
			"nats-server": moduleVersion("github.com/nats-io/nats-server/v2"),
			"nats.go":     moduleVersion("github.com/nats-io/nats.go"),
		},
		settings: map[string]string{
			"client": "PublishAsync, at most 1000 unanswered; Consume with pull of 500, an ack for each message",
			"server": "one node, file store, default sync, work queue, MaxAckPending 1000; TCP",
		},
		stop: func() { conn.Close(); stop() },
	}, nil
}

func jetStreamOn(ctx context.Context, conn *nats.Conn) (func(context.Context, int) error, error) {
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(window))
	if err != nil {
		return nil, err
	}
	stream, err := js.CreateStream(
		ctx,
		jetstream.StreamConfig{Name: "bench", Subjects: []string{"bench"}, Retention: jetstream.WorkQueuePolicy},
	)
	if err != nil {
		return nil, err
	}
	consumer, err := stream.CreateConsumer(
		ctx,
		jetstream.ConsumerConfig{Durable: "bench", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: window},
	)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, messages int) error {
		done := make(chan error, messages)
		var got atomic.Int64
		consuming, err := consumer.Consume(func(m jetstream.Msg) {
			if got.Add(1) == int64(messages) {
				done <- m.DoubleAck(ctx) // all earlier ones are on the same connection
				return
			}
			if err := m.Ack(); err != nil {
				done <- err
			}
		}, jetstream.PullMaxMessages(500))
		if err != nil {
			return err
		}
		defer consuming.Stop()
		body := make([]byte, bodySize)
		for range messages {
			if _, err := js.PublishAsync("bench", body, jetstream.WithStallWait(time.Minute)); err != nil {
				return err
			}
		}
		<-js.PublishAsyncComplete()
		return <-done
	}, nil
}

// serveNATS runs the server in a process of its own, so that its processor time is known. It prints its URL and ends
// with its standard input or when it is killed.
func serveNATS(dir string, out io.Writer) error {
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("it does not start")
	}
	fmt.Fprintln(out, s.ClientURL())
	s.WaitForShutdown()
	return nil
}
