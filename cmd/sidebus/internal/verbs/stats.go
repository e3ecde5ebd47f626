package verbs

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
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type statsCommand struct {
	Entity []string `arg:"" optional:"" help:"Queues, topics and subscriptions, such as orders, topics/news or topics/news/subscriptions/eu. Default: all."`

	Watch time.Duration `name:"watch" short:"w" placeholder:"TIME" help:"Repeat with this pause until Ctrl-C, at least 100ms."`

	Wide bool `name:"wide" help:"Show all columns, more than 80 characters wide."`

	clientSettings
}

// leastPause is the shortest pause of --watch.
const leastPause = 100 * time.Millisecond

// Run prints counts.
func (s *statsCommand) Run(ctx context.Context, to terminal.Streams) error {
	if s.Watch != 0 && s.Watch < leastPause {
		return cli.Misuse("--watch is %s, must be at least %s", duration.Text(s.Watch), duration.Text(leastPause))
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
		if o.IsScreen && !o.asJSON {
			_, _ = o.out.WriteString("\x1b[H\x1b[2J") // a failure shows again at the flush
		} else if !isFirst && !o.asJSON {
			_ = o.say("")
		}
		if !o.asJSON {
			_ = o.say("%s, every %s", time.Now().Format(time.RFC3339), duration.Text(s.Watch))
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
		o.note(`there are no queues; "sidebus entity create NAME" creates one`)
		return nil
	}
	if !s.Wide {
		return s.narrow(o, all)
	}
	isFirst := true
	for _, t := range []wideTable{wideSources(slices.Concat(all.queues, all.subscriptions)), wideTopics(all.topics)} {
		if len(t.rows) == 0 {
			continue
		}
		if !isFirst {
			if err := o.say(""); err != nil {
				return err
			}
		}
		isFirst = false
		if err := o.table(t.header, t.rows); err != nil {
			return err
		}
	}
	return nil
}

// narrow prints what matters most in tables that fit a terminal.
func (s *statsCommand) narrow(o *operator, all *counted) error {
	now := time.Now()
	columns, _ := o.Size()
	var tables [][][]string
	for _, part := range []struct {
		title   string
		sources []entityCounts[*sidebusv1.QueueRuntime]
	}{{"QUEUE", all.queues}, {"SUBSCRIPTION", all.subscriptions}} {
		table := [][]string{append([]string{part.title}, narrow...)}
		for _, q := range part.sources {
			table = append(table, append([]string{client.OneLine(q.name)}, narrowRow(q.counts, now)...))
		}
		tables = append(tables, table)
	}
	topics := [][]string{{"TOPIC", "SUBSCRIPTIONS", "SCHED", "SIZE", "LAST USED"}}
	for _, t := range all.topics {
		topics = append(topics, []string{
			client.OneLine(t.name), short(t.counts.GetSubscriptionCount()), short(t.counts.GetScheduledMessageCount()),
			client.Bytes(t.counts.GetSizeInBytes()), age(t.counts.GetAccessedAt(), now),
		})
	}
	isFirst := true
	for _, table := range append(tables, topics) {
		if len(table) == 1 {
			continue
		}
		if !isFirst {
			if err := o.say(""); err != nil {
				return err
			}
		}
		isFirst = false
		fitNames(table[0], table[1:], columns)
		if err := o.table(table[0], table[1:]); err != nil {
			return err
		}
	}
	return nil
}

// wideTable is a table with all columns.
type wideTable = struct {
	header []string
	rows   [][]string
}

func wideTopics(topics []entityCounts[*sidebusv1.TopicRuntime]) wideTable {
	var rows [][]string
	for _, t := range topics {
		row := []string{
			client.OneLine(t.name), strconv.FormatInt(t.counts.GetSubscriptionCount(), 10),
			strconv.FormatInt(t.counts.GetScheduledMessageCount(), 10), client.Bytes(t.counts.GetSizeInBytes()),
		}
		rows = append(rows, append(row, timesOf(t.counts)...))
	}
	return wideTable{append([]string{"TOPIC", "SUBSCRIPTIONS", "SCHEDULED", "SIZE"}, times...), rows}
}

// times are the last columns of both tables.
var times = []string{"CREATED", "UPDATED", "ACCESSED"}

func timesOf(counts interface {
	GetCreatedAt() *timestamppb.Timestamp
	GetUpdatedAt() *timestamppb.Timestamp
	GetAccessedAt() *timestamppb.Timestamp
},
) []string {
	return []string{
		client.Instant(counts.GetCreatedAt()), client.Instant(counts.GetUpdatedAt()),
		client.Instant(counts.GetAccessedAt()),
	}
}

func wideSources(sources []entityCounts[*sidebusv1.QueueRuntime]) wideTable {
	var rows [][]string
	for _, q := range sources {
		row := []string{client.OneLine(q.name)}
		for _, n := range []int64{
			q.counts.GetActiveMessageCount(), q.counts.GetAvailableCount(), q.counts.GetLockedCount(),
			q.counts.GetDeferredCount(),
			q.counts.GetScheduledMessageCount(), q.counts.GetDeadLetterMessageCount(),
			q.counts.GetTransferMessageCount(),
			q.counts.GetTransferDeadLetterMessageCount(),
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		row = append(row, client.Bytes(q.counts.GetSizeInBytes()), client.Instant(q.counts.GetOldestEnqueuedTime()))
		for _, n := range []int64{
			q.counts.GetSessionCount(), q.counts.GetReadySessionCount(),
			q.counts.GetLockedSessionCount(),
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, append(row, timesOf(q.counts)...))
	}
	return wideTable{append([]string{
		"QUEUE", "ACTIVE", "AVAILABLE", "LOCKED", "DEFERRED", "SCHEDULED", "DEAD", "TRANSFER", "TRANSFER DEAD", "SIZE",
		"OLDEST",
		"SESSIONS", "READY", "HELD",
	}, times...), rows}
}

// document returns the counts as JSON, each with its name.
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

// resources returns the resource names of all queues, topics and subscriptions.
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
