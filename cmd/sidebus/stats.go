package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type statsCommand struct {
	Entity []string `arg:"" optional:"" help:"Queues, topics and subscriptions: orders, queues/orders, topics/news, topics/news/subscriptions/eu. None: all."`

	Watch time.Duration `name:"watch" short:"w" placeholder:"TIME" help:"Count again and again, with this pause, until Ctrl-C."`

	clientSettings
}

// leastPause is the shortest pause of --watch.
const leastPause = 100 * time.Millisecond

// Run prints counts.
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

// counted are the counts of entities.
type counted struct {
	queues, subscriptions []entityCounts[*sidebusv1.QueueRuntime]
	topics                []entityCounts[*sidebusv1.TopicRuntime]
}

// entityCounts are the counts of one entity under its name.
type entityCounts[M proto.Message] struct {
	name   string
	counts M
}

func (s *statsCommand) once(ctx context.Context, o *operator) error {
	all, err := s.count(ctx, o)
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return o.line(all.document())
	case len(all.queues)+len(all.subscriptions)+len(all.topics) == 0:
		o.note(`there are no queues; "sidebus entity create NAME" makes one`)
		return nil
	}
	sources := slices.Concat(all.queues, all.subscriptions)
	if len(sources) > 0 {
		if err := o.sourceCounts(sources); err != nil {
			return err
		}
	}
	if len(all.topics) == 0 {
		return nil
	}
	if len(sources) > 0 {
		if err := o.say(""); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, t := range all.topics {
		rows = append(rows, []string{
			client.OneLine(t.name), strconv.FormatInt(t.counts.GetSubscriptionCount(), 10), strconv.FormatInt(t.counts.GetScheduledMessageCount(), 10),
			client.Bytes(t.counts.GetSizeInBytes()),
		})
	}
	return o.table([]string{"TOPIC", "SUBSCRIPTIONS", "SCHEDULED", "SIZE"}, rows)
}

func (o *operator) sourceCounts(sources []entityCounts[*sidebusv1.QueueRuntime]) error {
	var rows [][]string
	for _, q := range sources {
		row := []string{client.OneLine(q.name)}
		for _, n := range []int64{
			q.counts.GetActiveMessageCount(), q.counts.GetAvailableCount(), q.counts.GetLockedCount(), q.counts.GetDeferredCount(),
			q.counts.GetScheduledMessageCount(), q.counts.GetDeadLetterMessageCount(), q.counts.GetTransferMessageCount(),
			q.counts.GetTransferDeadLetterMessageCount(),
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		row = append(row, client.Bytes(q.counts.GetSizeInBytes()), client.Instant(q.counts.GetOldestEnqueuedTime()))
		for _, n := range []int64{q.counts.GetSessionCount(), q.counts.GetReadySessionCount(), q.counts.GetLockedSessionCount()} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, row)
	}
	return o.table([]string{
		"QUEUE", "ACTIVE", "AVAILABLE", "LOCKED", "DEFERRED", "SCHEDULED", "DEAD", "TRANSFER", "TRANSFER DEAD", "SIZE", "OLDEST",
		"SESSIONS", "READY", "HELD",
	}, rows)
}

// document gives the counts as JSON, each with its name.
func (c *counted) document() []byte {
	var text bytes.Buffer
	text.WriteByte('{')
	writeCounts(&text, "queues", c.queues)
	if len(c.subscriptions) > 0 {
		text.WriteByte(',')
		writeCounts(&text, "subscriptions", c.subscriptions)
	}
	if len(c.topics) > 0 {
		text.WriteByte(',')
		writeCounts(&text, "topics", c.topics)
	}
	text.WriteByte('}')
	return text.Bytes()
}

func writeCounts[M proto.Message](to *bytes.Buffer, key string, all []entityCounts[M]) {
	fmt.Fprintf(to, `"%s":[`, key)
	for i, e := range all {
		if i > 0 {
			to.WriteByte(',')
		}
		name, err := json.Marshal(e.name)
		if err != nil {
			panic(err) // a text can always be written
		}
		fmt.Fprintf(to, `{"name":%s,%s`, name, client.JSON(e.counts)[1:])
	}
	to.WriteByte(']')
}

// count counts the entities that were named, or all; one that is deleted meanwhile is left out.
func (s *statsCommand) count(ctx context.Context, o *operator) (*counted, error) {
	var resources []string
	for _, name := range s.Entity {
		resources = append(resources, client.Resource(name))
	}
	isNamed := len(resources) > 0
	if !isNamed {
		var err error
		if resources, err = o.resources(ctx); err != nil {
			return nil, err
		}
	}
	all := &counted{}
	for _, resource := range resources {
		if err := all.add(ctx, o, resource); err != nil && (isNamed || !isGone(err)) {
			return nil, err
		}
	}
	return all, nil
}

func (c *counted) add(ctx context.Context, o *operator, resource string) error {
	kind, name := client.Kind(resource), client.Name(resource)
	if kind == semantics.TopicKind {
		counts, err := o.countTopic(ctx, resource)
		if err == nil {
			c.topics = append(c.topics, entityCounts[*sidebusv1.TopicRuntime]{name, counts})
		}
		return err
	}
	counts, err := o.count(ctx, resource)
	switch {
	case err != nil:
	case kind == semantics.QueueKind:
		c.queues = append(c.queues, entityCounts[*sidebusv1.QueueRuntime]{name, counts})
	default:
		c.subscriptions = append(c.subscriptions, entityCounts[*sidebusv1.QueueRuntime]{name, counts})
	}
	return err
}

// resources gives the resource names of all queues, topics and subscriptions.
func (o *operator) resources(ctx context.Context) ([]string, error) {
	var all []string
	queues, err := client.Queues(ctx, o, "")
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		all = append(all, "queues/"+q.GetName())
	}
	topics, err := client.Topics(ctx, o, "")
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		topic := "topics/" + t.GetName()
		all = append(all, topic)
		subscriptions, err := client.Subscriptions(ctx, o, topic, "")
		if err != nil && !isGone(err) {
			return nil, err
		}
		for _, sub := range subscriptions {
			all = append(all, client.Subscription(topic, sub.GetName()))
		}
	}
	return all, nil
}

func isGone(err error) bool {
	var failure *client.Failure
	return errors.As(err, &failure) && failure.Reason == semantics.EntityNotFound
}
