package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type statsCommand struct {
	Queue []string `arg:"" optional:"" help:"The queues: orders or queues/orders. None: all."`

	Watch time.Duration `name:"watch" short:"w" placeholder:"TIME" help:"Count again and again, with this pause, until Ctrl-C."`

	clientSettings
}

// leastPause is the shortest pause of --watch.
const leastPause = 100 * time.Millisecond

// Run prints the counts of queues.
func (s *statsCommand) Run(ctx context.Context, to terminal) error {
	if s.Watch != 0 && s.Watch < leastPause {
		return misuse("--watch is %s, must be at least %s", s.Watch, leastPause)
	}
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error {
		if s.Watch == 0 {
			return s.once(ctx, o)
		}
		return s.watch(ctx, o)
	})
}

// watch counts until ctx ends. Only the first failure ends it, so that it outlives a restart of the sidecar.
func (s *statsCommand) watch(ctx context.Context, o *operator) error {
	pause := time.NewTicker(s.Watch)
	defer pause.Stop()
	for isFirst := true; ; isFirst = false {
		if o.isScreen && !o.asJSON {
			_, _ = o.out.WriteString("\x1b[H\x1b[2J") // a failure shows again at the flush
		} else if !isFirst && !o.asJSON {
			_ = o.say("")
		}
		if !o.asJSON {
			_ = o.say("%s, every %s", time.Now().Format(time.RFC3339), s.Watch)
		}
		err := s.once(ctx, o)
		switch ended := done(ctx); {
		case ended != nil:
			return ended
		case err != nil && isFirst:
			return err
		case err != nil:
			o.note("%v", err)
		}
		if err := o.flush(); err != nil {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// queueCounts are the counts of one queue under its name.
type queueCounts struct {
	name   string
	counts *sidebusv1.QueueRuntime
}

func (s *statsCommand) once(ctx context.Context, o *operator) error {
	all, err := s.count(ctx, o)
	if err != nil {
		return err
	}
	if o.asJSON {
		var text bytes.Buffer
		text.WriteString(`{"queues":[`)
		for i, q := range all {
			if i > 0 {
				text.WriteByte(',')
			}
			name, err := json.Marshal(q.name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, `{"name":%s,%s`, name, client.JSON(q.counts)[1:])
		}
		text.WriteString("]}")
		return o.line(text.Bytes())
	}
	if len(all) == 0 {
		o.note(`there are no queues; "sidebus entity create NAME" makes one`)
		return nil
	}
	var rows [][]string
	for _, q := range all {
		row := []string{client.OneLine(q.name)}
		for _, n := range []int64{
			q.counts.GetActiveMessageCount(), q.counts.GetAvailableCount(), q.counts.GetLockedCount(), q.counts.GetDeferredCount(),
			q.counts.GetScheduledMessageCount(), q.counts.GetDeadLetterMessageCount(),
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		row = append(row, client.Bytes(q.counts.GetSizeInBytes()), client.Instant(q.counts.GetOldestEnqueuedTime()))
		for _, n := range []int64{q.counts.GetSessionCount(), q.counts.GetReadySessionCount(), q.counts.GetLockedSessionCount()} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, row)
	}
	return o.table([]string{"QUEUE", "ACTIVE", "AVAILABLE", "LOCKED", "DEFERRED", "SCHEDULED", "DEAD", "SIZE", "OLDEST", "SESSIONS", "READY", "HELD"}, rows)
}

// count counts the queues that were named, or all; one that is deleted meanwhile is left out.
func (s *statsCommand) count(ctx context.Context, o *operator) ([]queueCounts, error) {
	var resources []string
	for _, name := range s.Queue {
		resources = append(resources, client.Resource(name))
	}
	isNamed := len(resources) > 0
	if !isNamed {
		queues, err := o.queues(ctx)
		if err != nil {
			return nil, err
		}
		for _, q := range queues {
			resources = append(resources, "queues/"+q.GetName())
		}
	}
	var all []queueCounts
	for _, resource := range resources {
		counts, err := o.GetQueueRuntime(ctx, &sidebusv1.GetQueueRuntimeRequest{Name: resource})
		var failure *client.Failure
		switch {
		case err == nil:
			all = append(all, queueCounts{client.Name(resource), counts})
		case isNamed || !errors.As(err, &failure) || failure.Reason != semantics.EntityNotFound:
			return nil, err
		}
	}
	return all, nil
}
