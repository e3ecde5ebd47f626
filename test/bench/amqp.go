package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/Azure/go-amqp"

	"github.com/sidebus/sidebus/test/figures"
)

// amqpClient is what the client of AMQP does, in words: the same as streamed.
const amqpClient = "AMQP, at most 1000 unanswered transfers; a receiver with 1000 credits; one message a transfer"

// amqp is a sidecar with a client of AMQP 1.0, that of the SDK for Go.
func (b build) amqp(ctx context.Context, dir string) (*opened, error) {
	addr := "127.0.0.1:" + freePort()
	redis, s, err := b.overAMQP(ctx, dir, addr)
	if err != nil {
		return nil, err
	}
	client, err := amqp.Dial(ctx, "amqp://"+addr, nil)
	if err != nil {
		s.stop()
		redis.stop()
		return nil, err
	}
	return &opened{
		round: carrying(
			processes{"client": figures.OwnCPU, "sidecar": figures.CPUOf(s.pid), "redis": redis.cpu},
			func(ctx context.Context, messages int) error { return throughAMQP(ctx, s, client, messages) },
		),
		versions: b.versions(ctx),
		settings: map[string]string{"client": amqpClient, "sidecar": "AMQP on TCP", "redis": redisSettings},
		stop:     func() { _ = client.Close(); s.stop(); redis.stop() },
	}, nil
}

// overAMQP runs a sidecar that serves AMQP over a Redis of its own, with a queue.
func (b build) overAMQP(ctx context.Context, dir, addr string) (*redisServer, *sidecar, error) {
	redis, err := startRedis(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Mkdir(dir+"/0", 0o700); err != nil {
		redis.stop()
		return nil, nil, err
	}
	s, err := b.start(ctx, redis.url(), dir+"/0", "--amqp-addr", addr)
	if err != nil {
		redis.stop()
		return nil, nil, err
	}
	if err := s.call(ctx, http.MethodPut, "/v1/queues/"+queueOf(0), `{"maxSizeInMegabytes":"81920"}`); err != nil {
		s.stop()
		redis.stop()
		return nil, nil, err
	}
	return redis, s, nil
}

// throughAMQP carries messages through a queue. As over gRPC, no answer to a settlement is awaited; at the end the
// queue must be empty.
func throughAMQP(ctx context.Context, s *sidecar, client *amqp.Conn, messages int) error {
	session, err := client.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	defer session.Close(ctx) //nolint:errcheck // of what is over
	first := amqp.ReceiverSettleModeFirst
	receiver, err := session.NewReceiver(
		ctx, queueOf(0), &amqp.ReceiverOptions{Credit: window, SettlementMode: &first},
	)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- sendAMQP(ctx, session, messages) }()
	for range messages {
		m, err := receiver.Receive(ctx, nil)
		if err == nil {
			err = receiver.AcceptMessage(ctx, m)
		}
		if err != nil {
			return err
		}
	}
	if err := <-sent; err != nil {
		return err
	}
	return until(ctx, func() bool { return s.isEmpty(ctx, queueOf(0)) })
}

// sendAMQP sends with at most window unanswered messages.
func sendAMQP(ctx context.Context, session *amqp.Session, messages int) error {
	sender, err := session.NewSender(ctx, queueOf(0), nil)
	if err != nil {
		return err
	}
	unanswered, ended := make(chan amqp.SendReceipt, window), make(chan error, 1)
	go func() {
		var failed error
		for receipt := range unanswered {
			state, err := receipt.Wait(ctx)
			if _, ok := state.(*amqp.StateAccepted); err == nil && !ok {
				err = fmt.Errorf("refused: %v", state)
			}
			failed = cmp.Or(failed, err)
		}
		ended <- failed
	}()
	body := make([]byte, bodySize)
	for range messages {
		receipt, err := sender.SendWithReceipt(ctx, amqp.NewMessage(body), nil)
		if err != nil {
			close(unanswered)
			return cmp.Or(<-ended, err)
		}
		unanswered <- receipt
	}
	close(unanswered)
	return <-ended
}

const idleConnections, idleLinksEach = 100, 10

// idleAMQP is a sidecar with 1,000 receivers over AMQP, on 100 connections, that wait on one empty queue. A round looks
// at it for a while.
func (b build) idleAMQP(ctx context.Context, dir string) (*opened, error) {
	addr := "127.0.0.1:" + freePort()
	redis, s, err := b.overAMQP(ctx, dir, addr)
	if err != nil {
		return nil, err
	}
	before, _ := figures.ResidentMiB(s.pid)
	stops := []func(){redis.stop, s.stop}
	stop := func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
	for range idleConnections {
		client, err := amqp.Dial(ctx, "amqp://"+addr, nil)
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, func() { _ = client.Close() })
		session, err := client.NewSession(ctx, nil)
		for range idleLinksEach {
			if err == nil {
				_, err = session.NewReceiver(ctx, queueOf(0), &amqp.ReceiverOptions{Credit: window})
			}
		}
		if err != nil {
			stop()
			return nil, err
		}
	}
	return &opened{
		round: func(ctx context.Context, _ int) (figures.Round, error) {
			round, err := watchIdle(ctx, redis, s)
			if err == nil {
				round.Values["RSS MiB without links"] = before
			}
			return round, err
		},
		settings: map[string]string{
			"receivers": fmt.Sprintf("%d links on %d connections", idleConnections*idleLinksEach, idleConnections),
			"span":      idleSpan.String(), "redis": redisSettings,
		},
		versions: b.versions(ctx), stop: stop,
	}, nil
}
