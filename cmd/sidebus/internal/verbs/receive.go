package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Bounds of receives.
const (
	mostWait     = 5 * time.Minute
	receiveStep  = 100  // messages of one call
	mostLocked   = 1000 // messages that stay locked until all are printed, so that none comes twice
	mostByNumber = 250  // numbers of one call
)

type receiveCommand struct {
	Queue string `arg:"" help:"Queue, such as orders or queues/orders, or subscription, such as topics/news/subscriptions/eu."`

	Max  int           `name:"max" short:"n" default:"1" placeholder:"N" help:"Most messages to receive."`
	Wait time.Duration `name:"wait" short:"w" default:"0s" placeholder:"TIME" help:"How long to wait for the first message or for a session, 0s to 5m."`

	subQueueFlags

	Session     *string `name:"session" xor:"session" placeholder:"ID" help:"Accept this session, receive from it and close it."`
	NextSession bool    `name:"next-session" xor:"session" help:"Accept the session that has been ready longest."`

	Deferred []int64 `name:"deferred" xor:"which" placeholder:"N,N" help:"Sequence numbers of deferred messages to receive. All are received, or none."`
	Number   []int64 `name:"number" xor:"which" placeholder:"N,N" help:"Sequence numbers of available messages to receive. All are received, or none."`

	Release  bool `name:"release" xor:"after" help:"Release the messages at once without counting a delivery. This is the default."`
	Complete bool `name:"complete" xor:"after" help:"Complete the messages after they are printed."`
	Abandon  bool `name:"abandon" xor:"after" help:"Abandon the messages after they are printed: the delivery counts as failed."`
	Delete   bool `name:"delete" xor:"after" help:"Delete the messages on delivery. A message that does not arrive is lost."`

	clientSettings
}

// Run receives and prints messages, and then does with them what the flags say. Without a word they are released.
func (r *receiveCommand) Run(ctx context.Context, to terminal.Streams) error {
	isBulk := r.Complete || r.Delete
	switch {
	case r.Max < 1 && isBulk:
		return cli.Misuse("--max is %d, must be 1 or more", r.Max)
	case (r.Max < 1 || r.Max > mostLocked) && !isBulk:
		return cli.Misuse(
			"--max is %d, must be 1 to %d; with --complete or --delete more are permitted", r.Max, mostLocked,
		)
	case len(r.Deferred)+len(r.Number) > mostByNumber:
		return cli.Misuse(
			"there are %d sequence numbers, at most %d are allowed", len(r.Deferred)+len(r.Number), mostByNumber,
		)
	case r.Wait < 0 || r.Wait > mostWait:
		return cli.Misuse("--wait is %s, must be 0s to %s", duration.Text(r.Wait), duration.Text(mostWait))
	case r.isSet() && r.hasSession():
		return cli.Misuse("%s", noSessionsThere)
	case len(r.Number) > 0 && r.hasSession():
		return cli.Misuse(
			"--number is not for sessions, whose messages are received in order; --deferred receives deferred messages",
		)
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of the pipe that ends must not end this before messages are released
	defer signal.Reset(syscall.SIGPIPE)
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		return (&receiving{flags: r, o: o, source: client.Resource(r.Queue)}).run(ctx)
	})
}

func (r *receiveCommand) hasSession() bool { return r.Session != nil || r.NextSession }

// receiving is one receive under way.
type receiving struct {
	flags   *receiveCommand
	o       *operator
	source  string
	session *heldSession // nil: none
	columns []column
	printed int64
	locked  []*sidebusv1.ReceivedMessage // printed and not settled
}

// mostForNamed is the longest that a sidecar waits until a session is free.
const mostForNamed = time.Minute

func (r *receiving) run(ctx context.Context) error {
	if !r.flags.hasSession() {
		return r.receive(ctx, r.flags.Wait)
	}
	wait := r.flags.Wait
	if r.flags.Session != nil {
		wait = min(wait, mostForNamed)
	}
	began := time.Now()
	var err error
	if r.session, err = r.o.accept(ctx, r.source, r.flags.Session, wait); err != nil {
		return err
	}
	if r.session == nil {
		r.o.note(`no session of %s is ready; "sidebus session list" shows which are locked or blocked`, r.source)
		return nil
	}
	if err = r.session.keep(ctx); err == nil {
		err = r.receive(ctx, max(r.flags.Wait-time.Since(began), 0))
	}
	return errors.Join(err, r.session.close(ctx))
}

// lock is the token of the session's lock, nil for none.
func (r *receiving) lock() *string {
	if r.session == nil {
		return nil
	}
	return &r.session.LockToken
}

func (r *receiving) receive(ctx context.Context, wait time.Duration) error {
	failed := r.rounds(ctx, wait)
	settled := len(r.locked) > 0 && !r.flags.Complete && !r.flags.Delete
	failed = errors.Join(failed, r.settle(ctx, r.flags.Abandon))
	switch {
	case failed != nil:
	case r.printed == 0:
		r.o.note("no messages in %s", r.where())
	case settled && !r.flags.Abandon && !r.flags.Release:
		r.o.note(
			"released %s without counting a delivery; --complete removes messages, --abandon counts a failed delivery",
			client.Count(r.printed, "message"),
		)
	}
	return failed
}

// rounds receives until there is no more, or enough.
func (r *receiving) rounds(ctx context.Context, wait time.Duration) error {
	if len(r.flags.Deferred)+len(r.flags.Number) > 0 {
		batch, err := r.byNumber(ctx)
		if err != nil {
			return err
		}
		return r.take(ctx, batch)
	}
	for ; r.printed < int64(r.flags.Max); wait = 0 {
		answer, err := r.o.Receive(ctx, &sidebusv1.ReceiveRequest{
			Source: r.source, SubQueue: r.flags.kind(), Mode: r.mode(), MaxWait: durationpb.New(wait),
			SessionLockToken: r.lock(),
			MaxMessages:      proto.Int32(int32(min(int64(r.flags.Max)-r.printed, receiveStep))),
		})
		if err != nil {
			return err
		}
		if len(answer.GetMessages()) == 0 {
			return nil
		}
		if err := r.take(ctx, answer.GetMessages()); err != nil {
			return err
		}
	}
	return nil
}

func (r *receiving) byNumber(ctx context.Context) ([]*sidebusv1.ReceivedMessage, error) {
	if len(r.flags.Deferred) > 0 {
		answer, err := r.o.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{
			Source: r.source, SubQueue: r.flags.kind(), Mode: r.mode(), SequenceNumbers: r.flags.Deferred,
			SessionLockToken: r.lock(),
		})
		return answer.GetMessages(), err
	}
	answer, err := r.o.ReceiveBySequence(ctx, &sidebusv1.ReceiveBySequenceRequest{
		Source: r.source, SubQueue: r.flags.kind(), Mode: r.mode(), SequenceNumbers: r.flags.Number,
	})
	return answer.GetMessages(), err
}

// take prints a batch, which is then unsettled. To complete it needs nothing else.
func (r *receiving) take(ctx context.Context, batch []*sidebusv1.ReceivedMessage) error {
	if !r.flags.Delete {
		r.locked = append(r.locked, batch...)
	}
	if r.printed == 0 {
		r.columns = columnsOf(batch, r.flags.kind(), false)
	}
	err := r.o.messages(batch, r.columns, r.printed == 0)
	if err == nil {
		err = r.o.flush()
	}
	r.printed += int64(len(batch))
	if err == nil && r.flags.Complete {
		err = r.settleWith(ctx, "completed", r.complete)
	}
	return err
}

// settle releases what is unsettled, even after a failure or a signal.
func (r *receiving) settle(ctx context.Context, isFailed bool) error {
	if isFailed {
		return r.settleWith(ctx, "abandoned", r.abandon)
	}
	return r.settleWith(ctx, "released", r.release)
}

type settlement func(ctx context.Context, tokens []string) (*sidebusv1.SettleResponse, error)

func (r *receiving) settleWith(ctx context.Context, what string, settle settlement) error {
	if len(r.locked) == 0 {
		return nil
	}
	messages := r.locked
	r.locked = nil
	tokens := make([]string, len(messages))
	for i, m := range messages {
		tokens[i] = m.GetLockToken()
	}
	answer, err := settle(context.WithoutCancel(ctx), tokens)
	if err != nil {
		return fmt.Errorf(
			"%s could not be %s and return when their locks expire: %w", client.Count(len(messages), "message"), what,
			err,
		)
	}
	var left refused
	for i, result := range answer.GetResults() {
		left.add(messages[i].GetSequenceNumber(), result.GetReason())
	}
	return left.error("not " + what)
}

func (r *receiving) complete(ctx context.Context, tokens []string) (*sidebusv1.SettleResponse, error) {
	return r.o.Client.Complete(ctx, &sidebusv1.CompleteRequest{
		Source: r.source, LockTokens: tokens, SubQueue: r.flags.kind(), SessionLockToken: r.lock(),
	})
}

func (r *receiving) abandon(ctx context.Context, tokens []string) (*sidebusv1.SettleResponse, error) {
	return r.o.Client.Abandon(ctx, &sidebusv1.AbandonRequest{
		Source: r.source, LockTokens: tokens, SubQueue: r.flags.kind(), SessionLockToken: r.lock(),
	})
}

func (r *receiving) release(ctx context.Context, tokens []string) (*sidebusv1.SettleResponse, error) {
	return r.o.Client.Release(ctx, &sidebusv1.ReleaseRequest{
		Source: r.source, LockTokens: tokens, SubQueue: r.flags.kind(), SessionLockToken: r.lock(),
	})
}

func (r *receiving) mode() sidebusv1.ReceiveRequest_Mode {
	if r.flags.Delete {
		return sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
	}
	return sidebusv1.ReceiveRequest_PEEK_LOCK
}

func (r *receiving) where() string {
	if r.session != nil {
		return ofSession(r.session.GetSessionId(), r.source)
	}
	return place(r.source, r.flags.kind())
}

// refused collects sequence numbers by the reason why nothing was done with them.
type refused struct {
	numbers map[string][]int64
	total   int
}

func (r *refused) add(number int64, reason string) {
	if reason == "" {
		return
	}
	if r.numbers == nil {
		r.numbers = map[string][]int64{}
	}
	r.numbers[reason] = append(r.numbers[reason], number)
	r.total++
}

// mostListed is how many numbers an error lists of each reason.
const mostListed = 20

// error is nil when nothing was refused.
func (r *refused) error(what string) error {
	if r.total == 0 {
		return nil
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(r.numbers)) {
		numbers := r.numbers[reason]
		var texts []string
		for _, n := range numbers[:min(len(numbers), mostListed)] {
			texts = append(texts, strconv.FormatInt(n, 10))
		}
		list := strings.Join(texts, ", ")
		if len(numbers) > mostListed {
			list += fmt.Sprintf(" and %d more", len(numbers)-mostListed)
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", reason, list))
	}
	return fmt.Errorf("%s %s: %s", client.Count(r.total, "message"), what, strings.Join(reasons, "; "))
}
