package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	consumers = 4
	victim    = 0 // the consumer that is killed, with the sidecar it uses
	feeder    = 1 // the consumer whose sidecar the feeder uses too
	bound     = 5 * time.Minute
	leastFile = 100_000 // lines
)

// run is the whole experiment: Redis, four sidecars, a feeder, four consumers, a kill, a count.
func run(ctx context.Context, file string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not done within %s", bound))
	defer cancel()
	lines, err := readLines(file)
	if err != nil {
		return err
	}
	if len(lines) < leastFile {
		fmt.Printf("note: %s has %d lines; the experiment means something from %d on\n", file, len(lines), leastFile)
	}
	dir, err := os.MkdirTemp("", "log-crunch-")
	if err != nil {
		return err
	}
	crew := &crew{dir: dir}
	defer func() {
		crew.killAll()
		if err != nil {
			err = fmt.Errorf("%w\nlogs and outputs are in %s", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	outputs, err := crew.experiment(ctx, file, len(lines))
	if err != nil {
		return err
	}
	return count(lines, outputs)
}

// experiment runs all processes until no message is left, and returns the outputs of the consumers.
func (c *crew) experiment(ctx context.Context, file string, lines int) ([]string, error) {
	addresses, err := c.startSidecars(ctx)
	if err != nil {
		return nil, err
	}
	sidebus, err := client.New(addresses[feeder], nil)
	if err != nil {
		return nil, err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	_, err = sidebus.Admin().EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{
		Name: "queues/" + queue, Queue: &sidebusv1.Queue{LockDuration: durationpb.New(lockDuration)},
	})
	if err != nil {
		return nil, fmt.Errorf("ensure the queue: %w", err)
	}

	began := time.Now()
	outputs := make([]string, consumers)
	for i, address := range addresses {
		outputs[i] = filepath.Join(c.dir, fmt.Sprintf("output-%d", i))
		if err := c.start(fmt.Sprintf("consumer-%d", i), c.self, "consume", address, outputs[i]); err != nil {
			return nil, err
		}
	}
	if err := c.start("feeder", c.self, "feed", addresses[feeder], file); err != nil {
		return nil, err
	}
	if err := c.killInTheMiddle(ctx, file, outputs[victim]); err != nil {
		return nil, err
	}
	if err := c.awaitExit(ctx, "feeder"); err != nil {
		return nil, err
	}
	if err := awaitEmpty(ctx, sidebus.Admin()); err != nil {
		return nil, err
	}
	took := time.Since(began)
	fmt.Printf(
		"%d lines sent, processed and completed in %.1f s (%.0f lines/s), including the wait for the locks of the killed consumer\n",
		lines, took.Seconds(), float64(lines)/took.Seconds(),
	)
	return outputs, c.stopRest(ctx)
}

// killInTheMiddle kills a consumer and its sidecar with SIGKILL once the consumer has done an eighth of the file, which
// is half of its fair share, and at the worst moment: it has just written lines down and not yet completed them.
func (c *crew) killInTheMiddle(ctx context.Context, file, output string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	enough := 2 * info.Size() / (2 * consumers) // the output is in hex, two characters a byte
	err = until(ctx, func() (bool, error) {
		written, err := sizeOf(output)
		return written >= enough, err
	})
	if err != nil {
		return fmt.Errorf("the consumer to be killed: %w", err)
	}
	before, err := sizeOf(output)
	for now := before; now == before && err == nil && ctx.Err() == nil; {
		now, err = sizeOf(output)
	}
	c.kill(fmt.Sprintf("consumer-%d", victim))
	c.kill(fmt.Sprintf("sidecar-%d", victim))
	fmt.Printf("killed consumer %d and its sidecar in the middle\n", victim)
	return err
}

// sizeOf returns the size of a file, 0 when it does not exist yet.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// awaitEmpty waits until the queue holds nothing at all: not ready, not locked, not dead-lettered.
func awaitEmpty(ctx context.Context, admin sidebusv1.AdminClient) error {
	return until(ctx, func() (bool, error) {
		runtime, err := admin.GetQueueRuntime(ctx, &sidebusv1.GetQueueRuntimeRequest{Name: "queues/" + queue})
		if err != nil {
			return false, err
		}
		if dead := runtime.GetDeadLetterMessageCount(); dead > 0 {
			return false, fmt.Errorf("%d lines were dead-lettered", dead)
		}
		return runtime.GetTotalMessageCount() == 0, nil
	})
}

// until asks in short intervals until the answer is yes.
func until(ctx context.Context, yes func() (bool, error)) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		if ok, err := yes(); ok || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
