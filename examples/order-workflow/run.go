package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	workers      = 4
	lockDuration = 5 * time.Second // the shortest there is: an order waits this long when its worker crashes
	bound        = time.Minute
)

func orderID(n int) string { return fmt.Sprintf("order-%02d", n+1) }

// run is the whole experiment: it sends the steps of all orders, has workers do them, and looks at what came of it.
func run(ctx context.Context, sidebus *client.Client, w world) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not done within %s", bound))
	defer cancel()
	options := &sidebusv1.Queue{
		RequiresSession: new(true), LockDuration: durationpb.New(lockDuration),
		SessionStateTtl: durationpb.New(24 * time.Hour), // of an order whose worker crashed before the last call
	}
	_, err := sidebus.Admin().EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: "queues/" + queue, Queue: options})
	if err != nil {
		return fmt.Errorf("ensure the queue: %w", err)
	}
	began := time.Now()
	if err := send(ctx, sidebus); err != nil {
		return fmt.Errorf("send: %w", err)
	}

	staffed, dismiss := context.WithCancel(ctx)
	var staff sync.WaitGroup
	var killed atomic.Int32
	failures := make(chan error, workers)
	for range workers {
		staff.Go(func() { failures <- employ(staffed, w, &killed) })
	}
	err = awaitEmpty(ctx, sidebus.Admin(), failures)
	dismiss()
	staff.Wait()
	for range workers {
		err = errors.Join(err, <-failures)
	}
	if err != nil {
		return err
	}
	fmt.Printf(
		"%d orders of %d steps by %d workers in %.1f s; %d workers were killed\n", orders, len(steps), workers,
		time.Since(began).Seconds(), killed.Load(),
	)
	sessions := sidebusv1.NewSessionsClient(sidebus.Conn())
	listed, err := sessions.List(ctx, &sidebusv1.SessionsListRequest{Source: "queues/" + queue})
	if err != nil {
		return err
	}
	return check(w, int(killed.Load()), len(listed.GetSessions()))
}

// send sends the steps of all orders: a step is a message, an order is a session.
func send(ctx context.Context, sidebus *client.Client) error {
	sender, err := sidebus.NewSender(queue, nil)
	if err != nil {
		return err
	}
	var messages []*client.Message
	for _, step := range steps { // all orders at the same time
		for i := range orders {
			messages = append(messages, &client.Message{SessionID: new(orderID(i)), Body: []byte(step)})
		}
	}
	_, err = sender.SendMessages(ctx, messages, nil)
	return err
}

// employ runs a worker, and another one whenever it is killed, until ctx ends.
func employ(ctx context.Context, w world, killed *atomic.Int32) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for {
		command := exec.CommandContext(ctx, self, "work", string(w))
		command.Stderr = os.Stderr
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
		err := command.Run()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			killed.Add(1)
		case err == nil, ctx.Err() != nil && errors.Is(err, ctx.Err()): // it ended in order when told to
			return nil
		default:
			return fmt.Errorf("a worker failed: %w", err)
		}
	}
}

// awaitEmpty waits until the queue holds no message at all.
func awaitEmpty(ctx context.Context, admin sidebusv1.AdminClient, failures chan error) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		runtime, err := admin.GetQueueRuntime(ctx, &sidebusv1.GetQueueRuntimeRequest{Name: "queues/" + queue})
		if err != nil || runtime.GetTotalMessageCount() == 0 && runtime.GetSessionCount() == 0 {
			return err
		}
		select {
		case <-look.C:
		case err := <-failures:
			failures <- nil
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
