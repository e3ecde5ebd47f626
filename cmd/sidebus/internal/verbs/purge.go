package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type purgeCommand struct {
	Queue string `arg:"" help:"Queue, such as orders or queues/orders, or subscription, such as topics/news/subscriptions/eu."`

	Before  string   `name:"before" placeholder:"INSTANT|AGE" help:"Only messages enqueued before this instant in RFC 3339, or more than this time ago, such as 24h. Default: now."`
	Include []string `name:"include" enum:"available,deferred,scheduled,dead-letter" placeholder:"GROUP,GROUP" help:"Also delete deferred, scheduled or dead-letter messages."`
	Session *string  `name:"session" placeholder:"ID" help:"Only messages of this session."`

	subQueueFlags
	confirmation
	progressFlag
	clientSettings
}

// purgeStep is how many messages one call removes, so that progress is seen and little is in doubt after a failure.
const purgeStep = 4000

// Run removes messages until there are no more to remove.
func (p *purgeCommand) Run(ctx context.Context, to terminal.Streams) error {
	switch {
	case p.Session != nil && p.isSet():
		return cli.Misuse("%s", noSessionsThere)
	case p.Session != nil && slices.Contains(p.Include, "dead-letter"):
		return cli.Misuse("--session and --include dead-letter exclude each other: dead letters belong to no session")
	}
	before, err := instantOrAge("--before", p.Before, time.Now())
	if err != nil {
		return err
	}
	return (&purging{
		source: client.Resource(p.Queue), session: p.Session, subQueue: p.kind(), before: before, include: p.Include,
		confirmation: p.confirmation, progressFlag: p.progressFlag,
	}).run(ctx, to, &p.clientSettings)
}

// instantOrAge reads an instant, or a time that it lies back from now. flag is the name it was given under.
func instantOrAge(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none was given
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return timestamppb.New(at), nil
	}
	age, err := duration.Wire(text)
	if err != nil || age.AsDuration() < 0 {
		return nil, cli.Misuse(
			"%s is %q, must be an instant such as 2026-01-02T03:04:05Z or an age such as 24h", flag, text,
		)
	}
	return timestamppb.New(now.Add(-age.AsDuration())), nil
}

// purging is one purge under way.
type purging struct {
	confirmation
	progressFlag

	source   string
	session  *string // nil: all messages
	subQueue sidebusv1.SubQueue_Kind
	before   *timestamppb.Timestamp
	include  []string
	total    int64 // how many there may be, 0 if that is not known
}

func (p *purging) run(ctx context.Context, to terminal.Streams, settings *clientSettings) error {
	if err := p.check(to); err != nil {
		return err
	}
	return settings.operate(ctx, to, func(ctx context.Context, o *operator) error {
		if !p.Yes || p.isShown(o) {
			text, err := p.stake(ctx, o)
			switch {
			case err != nil:
				return err
			case p.total == 0 && !p.Yes && !o.asJSON:
				o.note("there are no messages to remove in %s", p.where())
				return nil
			}
			if err := o.confirm(ctx, &p.confirmation, p.source, text); err != nil {
				return err
			}
		}
		return p.purge(ctx, o)
	})
}

// stake counts how many messages are at stake, and returns what to confirm. Those that are younger than --before are
// among them, so it is "up to".
func (p *purging) stake(ctx context.Context, o *operator) (string, error) {
	counts, err := p.count(ctx, o)
	if err != nil {
		return "", err
	}
	isMain := p.subQueue == sidebusv1.SubQueue_NONE
	groups := []struct {
		name  string
		n     int64
		isOut bool
	}{
		{"available", counts.GetAvailableCount(), !isMain},
		{"deferred", counts.GetDeferredCount(), !isMain || !slices.Contains(p.include, "deferred")},
		{"scheduled", counts.GetScheduledMessageCount(), !isMain || !slices.Contains(p.include, "scheduled")},
		{
			"dead-lettered", counts.GetDeadLetterMessageCount(),
			p.subQueue != sidebusv1.SubQueue_DEAD_LETTER && (!isMain || !slices.Contains(p.include, "dead-letter")),
		},
		{
			"not forwarded",
			counts.GetTransferDeadLetterMessageCount(),
			p.subQueue != sidebusv1.SubQueue_TRANSFER_DEAD_LETTER,
		},
	}
	total, parts := int64(0), []string(nil)
	for _, g := range groups {
		if !g.isOut {
			total += g.n
			parts = append(parts, fmt.Sprintf("%d %s", g.n, g.name))
		}
	}
	p.total = total
	return fmt.Sprintf(
		"This removes up to %s of %s permanently: %s.", client.Count(total, "message"), p.where(),
		strings.Join(parts, ", "),
	), nil
}

// count returns the counts of the source, or of the one session.
func (p *purging) count(ctx context.Context, o *operator) (*sidebusv1.QueueRuntime, error) {
	if p.session == nil {
		return o.count(ctx, p.source)
	}
	row, err := o.session(ctx, p.source, *p.session)
	return &sidebusv1.QueueRuntime{
		AvailableCount: row.GetAvailableCount(), DeferredCount: row.GetDeferredCount(),
		ScheduledMessageCount: row.GetScheduledCount(),
	}, err
}

func (p *purging) where() string {
	if p.session != nil {
		return ofSession(*p.session, p.source)
	}
	return place(p.source, p.subQueue)
}

// purge goes on with the same instant for as long as the sidecar says that there is more.
func (p *purging) purge(ctx context.Context, o *operator) error {
	request := &sidebusv1.PurgeRequest{
		Source: p.source, SubQueue: p.subQueue, Before: p.before, MaxMessages: proto.Int32(purgeStep),
		SessionId: p.session,
	}
	for _, group := range p.include {
		word := strings.ToUpper(strings.ReplaceAll(group, "-", "_"))
		request.Include = append(
			request.Include, sidebusv1.PurgeRequest_Include(sidebusv1.PurgeRequest_Include_value[word]),
		)
	}
	sum := &sidebusv1.PurgeResponse{More: true, Before: p.before}
	progress := o.progress(p.progressFlag, "removed", "message", p.total)
	var failed error
	for failed == nil && sum.GetMore() {
		var answer *sidebusv1.PurgeResponse
		if answer, failed = o.Purge(ctx, request); failed != nil {
			break
		}
		sum.Deleted += answer.GetDeleted()
		sum.More, sum.Before, request.Before = answer.GetMore(), answer.GetBefore(), answer.GetBefore()
		progress.tell(sum.GetDeleted())
		if sum.GetMore() {
			failed = done(ctx)
		}
	}
	progress.end()
	text := fmt.Sprintf("removed %s from %s", client.Count(sum.GetDeleted(), "message"), p.where())
	if sum.GetBefore() != nil {
		text += ", enqueued before " + client.Instant(sum.GetBefore())
	}
	switch {
	case failed == nil && !o.asJSON:
		return o.say("%s", text)
	case failed == nil:
		return o.document(sum)
	case o.asJSON && sum.GetDeleted() > 0:
		return errors.Join(failed, o.document(sum))
	case sum.GetDeleted() > 0:
		o.note("%s; the call that failed may have removed more", text)
	}
	return failed
}
