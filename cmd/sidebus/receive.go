package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Bounds of receives.
const (
	receiveStep  = 100  // messages of one call
	mostInHand   = 1000 // messages that are held until all are printed, so that none comes twice
	mostByNumber = 250  // numbers of one call
)

type receiveCommand struct {
	Queue string `arg:"" help:"The queue: orders or queues/orders."`

	Max  int           `name:"max" short:"n" default:"1" placeholder:"N" help:"Most messages to receive."`
	Wait time.Duration `name:"wait" short:"w" default:"0s" placeholder:"TIME" help:"How long to wait for the first one, up to 300s."`
	DLQ  bool          `name:"dlq" aliases:"dead-letter" help:"From the dead-letter queue."`

	Deferred []int64 `name:"deferred" xor:"which" placeholder:"N,N" help:"Receive these deferred messages, by sequence number, all or none."`
	Number   []int64 `name:"number" xor:"which" placeholder:"N,N" help:"Receive these available messages, by sequence number, all or none."`

	Release  bool `name:"release" xor:"after" help:"Give them back at once and count nothing. This is the default."`
	Complete bool `name:"complete" xor:"after" help:"Remove them, after they are printed."`
	Abandon  bool `name:"abandon" xor:"after" help:"Give them back as failed deliveries, after they are printed."`
	Delete   bool `name:"delete" xor:"after" help:"Remove them on delivery; what is lost on the way is lost."`

	clientSettings
}

// Run receives and prints messages, and then does with them what the flags say. Without a word they are released.
func (r *receiveCommand) Run(ctx context.Context, to terminal) error {
	isBulk := r.Complete || r.Delete
	switch {
	case r.Max < 1:
		return misuse("--max is %d, must be at least 1", r.Max)
	case r.Max > mostInHand && !isBulk:
		return misuse("--max is %d, must be at most %d without --complete or --delete", r.Max, mostInHand)
	case len(r.Deferred)+len(r.Number) > mostByNumber:
		return misuse("there are %d sequence numbers, at most %d are allowed", len(r.Deferred)+len(r.Number), mostByNumber)
	case r.Wait < 0:
		return misuse("--wait is %s, must be 0s to 300s", r.Wait)
	}
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		return (&receiving{receiveCommand: r, o: o, source: client.Resource(r.Queue)}).run(ctx)
	})
}

// receiving is one receive under way.
type receiving struct {
	*receiveCommand

	o       *operator
	source  string
	printed int64
	inHand  []*sidebusv1.ReceivedMessage // printed and not settled
}

func (r *receiving) run(ctx context.Context) error {
	failed := r.rounds(ctx)
	settled := len(r.inHand) > 0 && !r.Complete && !r.Delete
	failed = errors.Join(failed, r.settle(ctx, r.Abandon))
	switch {
	case failed != nil:
	case r.printed == 0:
		r.o.note("no messages in %s", r.where())
	case settled && !r.Abandon && !r.Release:
		r.o.note("gave back %s uncounted; --complete removes, --abandon counts a failed delivery", count(r.printed, "message"))
	}
	return failed
}

// rounds receives until there is no more, or enough.
func (r *receiving) rounds(ctx context.Context) error {
	if len(r.Deferred)+len(r.Number) > 0 {
		batch, err := r.byNumber(ctx)
		if err != nil {
			return err
		}
		return r.take(ctx, batch)
	}
	for wait := r.Wait; r.printed < int64(r.Max); wait = 0 {
		answer, err := r.o.Receive(ctx, &sidebusv1.ReceiveRequest{
			Source: r.source, SubQueue: subQueue(r.DLQ), Mode: r.mode(), MaxWait: durationpb.New(wait),
			MaxMessages: proto.Int32(int32(min(int64(r.Max)-r.printed, receiveStep))),
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
	if len(r.Deferred) > 0 {
		answer, err := r.o.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{
			Source: r.source, SubQueue: subQueue(r.DLQ), Mode: r.mode(), SequenceNumbers: r.Deferred,
		})
		return answer.GetMessages(), err
	}
	answer, err := r.o.ReceiveBySequence(ctx, &sidebusv1.ReceiveBySequenceRequest{
		Source: r.source, SubQueue: subQueue(r.DLQ), Mode: r.mode(), SequenceNumbers: r.Number,
	})
	return answer.GetMessages(), err
}

// take prints a batch, which is in hand then. To complete it waits for nothing else.
func (r *receiving) take(ctx context.Context, batch []*sidebusv1.ReceivedMessage) error {
	if !r.Delete {
		r.inHand = append(r.inHand, batch...)
	}
	err := errors.Join(r.o.messages(batch, columnsOf(r.DLQ, false), r.printed == 0), r.o.flush())
	r.printed += int64(len(batch))
	if err == nil && r.Complete {
		err = r.settleWith(ctx, "completed", r.o.complete(r.DLQ))
	}
	return err
}

// settle gives back what is in hand, even after a failure or a signal.
func (r *receiving) settle(ctx context.Context, isFailed bool) error {
	if isFailed {
		return r.settleWith(ctx, "abandoned", r.o.abandon(r.DLQ))
	}
	return r.settleWith(ctx, "released", r.o.release(r.DLQ))
}

type settlement func(ctx context.Context, source string, tokens []string) (*sidebusv1.SettleResponse, error)

func (r *receiving) settleWith(ctx context.Context, what string, settle settlement) error {
	if len(r.inHand) == 0 {
		return nil
	}
	messages := r.inHand
	r.inHand = nil
	tokens := make([]string, len(messages))
	for i, m := range messages {
		tokens[i] = m.GetLockToken()
	}
	answer, err := settle(context.WithoutCancel(ctx), r.source, tokens)
	if err != nil {
		return fmt.Errorf("%s could not be %s and will come again when their locks end: %w", count(len(messages), "message"), what, err)
	}
	var left refused
	for i, result := range answer.GetResults() {
		left.add(messages[i].GetSequenceNumber(), result.GetReason())
	}
	return left.error("not " + what)
}

func (o *operator) complete(isDLQ bool) settlement {
	return func(ctx context.Context, source string, tokens []string) (*sidebusv1.SettleResponse, error) {
		return o.Client.Complete(ctx, &sidebusv1.CompleteRequest{Source: source, LockTokens: tokens, SubQueue: subQueue(isDLQ)})
	}
}

func (o *operator) abandon(isDLQ bool) settlement {
	return func(ctx context.Context, source string, tokens []string) (*sidebusv1.SettleResponse, error) {
		return o.Client.Abandon(ctx, &sidebusv1.AbandonRequest{Source: source, LockTokens: tokens, SubQueue: subQueue(isDLQ)})
	}
}

func (o *operator) release(isDLQ bool) settlement {
	return func(ctx context.Context, source string, tokens []string) (*sidebusv1.SettleResponse, error) {
		return o.Client.Release(ctx, &sidebusv1.ReleaseRequest{Source: source, LockTokens: tokens, SubQueue: subQueue(isDLQ)})
	}
}

func (r *receiving) mode() sidebusv1.ReceiveRequest_Mode {
	if r.Delete {
		return sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
	}
	return sidebusv1.ReceiveRequest_PEEK_LOCK
}

func (r *receiving) where() string { return place(r.source, r.DLQ) }

func subQueue(isDLQ bool) sidebusv1.SubQueue_Kind {
	if isDLQ {
		return sidebusv1.SubQueue_DEAD_LETTER
	}
	return sidebusv1.SubQueue_NONE
}

// place names a queue or its dead-letter queue for people.
func place(source string, isDLQ bool) string {
	if isDLQ {
		return "the dead-letter queue of " + source
	}
	return source
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
	return fmt.Errorf("%s %s: %s", count(r.total, "message"), what, strings.Join(reasons, "; "))
}
