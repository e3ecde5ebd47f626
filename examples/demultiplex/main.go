// Command demultiplex splits a log in which the events of many things are interleaved: each thing is a session, and
// four workers handle the sessions side by side, each session's events in their order and by one worker at a time. See
// README.md.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	source    = "events"
	workers   = 4
	atATime   = 16                   // sessions of one worker
	workTakes = 2 * time.Millisecond // for one event, as a call of another system would
	bound     = time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(
			os.Stderr,
			"usage: demultiplex EVENTS, with the sidecar's address in $GRPC; a line of EVENTS is time, thing and event, separated by tabs",
		)
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "demultiplex:", err)
		os.Exit(1)
	}
}

// event is one line of the log.
type event struct{ thing, what string }

func readEvents(file string) ([]event, error) {
	log, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // only read from
	var events []event
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 3)
		if len(fields) != 3 || fields[1] == "" {
			return nil, fmt.Errorf("%s: line %d is not time, thing and event", file, len(events)+1)
		}
		events = append(events, event{fields[1], fields[0] + " " + fields[2]})
	}
	return events, lines.Err()
}

// run sends the events in the order of the log and has workers handle them meanwhile.
func run(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not done within %s", bound))
	defer cancel()
	events, err := readEvents(file)
	if err != nil {
		return err
	}
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	requiresSession := true
	queue := &sidebusv1.Queue{RequiresSession: &requiresSession}
	if _, err := sidebus.Admin().EnsureQueue(ctx,
		&sidebusv1.EnsureQueueRequest{Name: "queues/" + source, Queue: queue}); err != nil {
		return fmt.Errorf("ensure the queue: %w", err)
	}

	began := time.Now()
	watch := newRecord(events)
	crew := startCrew(ctx, watch)
	err = send(ctx, sidebus, events)
	if err == nil {
		err = watch.awaitAll(ctx)
	}
	took := time.Since(began)
	if failed := crew.stop(); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return watch.report(took)
}

// send sends the events, in their order, some hundred at a time.
func send(ctx context.Context, sidebus *client.Client, events []event) error {
	sender, err := sidebus.NewSender(source, nil)
	if err != nil {
		return err
	}
	batch := sender.NewMessageBatch(nil)
	for i := 0; i < len(events); {
		e := events[i]
		m := &client.Message{SessionID: &e.thing, Body: []byte(e.what), BodyType: client.BodyText}
		if batch.NumMessages() < 500 && batch.AddMessage(m, nil) == nil {
			if i++; i < len(events) {
				continue
			}
		}
		if batch.NumMessages() == 0 {
			return fmt.Errorf("event %d is too large", i+1)
		}
		if _, err := sender.SendMessageBatch(ctx, batch, nil); err != nil {
			return fmt.Errorf("send before event %d: %w", i+1, err)
		}
		batch = sender.NewMessageBatch(nil)
	}
	return nil
}
