package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/resubmit"
)

type dlqCommand struct {
	List     dlqListCommand     `cmd:"" aliases:"ls" help:"List dead letters with the reason."`
	Count    dlqCountCommand    `cmd:"" help:"Count dead letters."`
	Resubmit dlqResubmitCommand `cmd:"" help:"Send dead letters again."`
	Edit     dlqEditCommand     `cmd:"" help:"Edit a dead letter in $$EDITOR and send it again."`
	Delete   dlqDeleteCommand   `cmd:"" aliases:"rm" help:"Delete dead letters."`
}

// dlqQueue is the queue or subscription whose dead letters are meant.
type dlqQueue struct {
	Queue    string `arg:"" help:"Queue, such as orders or queues/orders, or subscription, such as topics/news/subscriptions/eu."`
	Transfer bool   `name:"transfer-dlq" aliases:"transfer" help:"Use the transfer dead-letter queue: messages that could not be forwarded."`
}

// Rewrite accepts "dlq QUEUE VERB" as well, which was the order before it was the same for all verbs.
func (Grammar) Rewrite(args []string) []string {
	isVerb := func(word string) bool {
		return slices.Contains([]string{"list", "ls", "count", "resubmit", "edit", "delete", "rm"}, word)
	}
	if len(args) < 3 || args[0] != "dlq" || isVerb(args[1]) || strings.HasPrefix(args[1], "-") {
		return args
	}
	for i := 2; i < len(args) && (isVerb(args[i]) || args[i] == "--transfer-dlq" || args[i] == "--transfer"); i++ {
		if isVerb(args[i]) {
			return slices.Concat([]string{"dlq", args[i]}, args[1:i], args[i+1:])
		}
	}
	return args
}

func (q *dlqQueue) resource() string { return client.Resource(q.Queue) }

func (q *dlqQueue) subQueue() sidebusv1.SubQueue_Kind {
	if q.Transfer {
		return sidebusv1.SubQueue_TRANSFER_DEAD_LETTER
	}
	return sidebusv1.SubQueue_DEAD_LETTER
}

type dlqListCommand struct {
	dlqQueue

	window
	clientSettings
}

// Run prints dead letters without touching them.
func (d *dlqListCommand) Run(ctx context.Context, to terminal.Streams) error {
	of := &d.dlqQueue
	return d.show(ctx, to, &d.clientSettings, &sidebusv1.PeekRequest{
		Source: of.resource(), SubQueue: of.subQueue(), FromSequenceNumber: d.From,
	})
}

type dlqCountCommand struct {
	dlqQueue
	clientSettings
}

// Run prints the number of dead letters and nothing else, or the field of the API.
func (d *dlqCountCommand) Run(ctx context.Context, to terminal.Streams) error {
	of := &d.dlqQueue
	return d.operate(ctx, to, func(ctx context.Context, o *operator) error {
		n, err := o.deadLetters(ctx, of.resource(), of.subQueue())
		if err != nil {
			return err
		}
		if o.asJSON {
			name := "deadLetterMessageCount"
			if of.Transfer {
				name = "transferDeadLetterMessageCount"
			}
			return o.line(fmt.Appendf(nil, `{"%s":"%d"}`, name, n))
		}
		return o.say("%d", n)
	})
}

type dlqResubmitCommand struct {
	dlqQueue

	Number []int64 `name:"number" xor:"which" placeholder:"N,N" help:"Sequence numbers of dead letters."`
	Filter string  `name:"filter" xor:"which" placeholder:"SQL" help:"Dead letters that an SQL filter selects, such as \"DeadLetterReason = 'Late'\"."`
	All    bool    `name:"all" xor:"which" help:"All dead letters that exist now."`

	To               string `name:"to" placeholder:"TARGET" help:"Send them to this queue, or topics/TOPIC, instead of where they were."`
	NewIDs           bool   `name:"new-ids" help:"Create a new message id for each."`
	BypassDuplicates bool   `name:"bypass-duplicates" help:"Send even if the target has seen the message ids; otherwise it drops duplicates."`
	KeepExpiry       bool   `name:"keep-expiry" help:"Keep the time at which each message expires; otherwise its time to live starts again."`

	confirmation
	progressFlag
	clientSettings
}

// Steps of dead-letter verbs.
const (
	resubmitStep = 1000
	deleteStep   = 250
)

// Run sends dead letters again, in steps, at most as many as there are when it begins: what is dead-lettered again
// meanwhile stays.
func (d *dlqResubmitCommand) Run(ctx context.Context, to terminal.Streams) error {
	of := &d.dlqQueue
	switch {
	case len(d.Number) == 0 && d.Filter == "" && !d.All:
		return cli.Misuse("specify --number, --filter or --all")
	case d.All:
		if err := d.check(to); err != nil {
			return err
		}
	}
	return d.operate(ctx, to, func(ctx context.Context, o *operator) error {
		r := &resubmitting{o: o, target: of.resource(), request: &sidebusv1.ResubmitRequest{
			Source: of.resource(), SubQueue: of.subQueue().Enum(), NewMessageIds: d.NewIDs,
			BypassDuplicateDetection: d.BypassDuplicates, KeepExpiry: d.KeepExpiry,
		}}
		if d.To != "" {
			r.target = client.Resource(d.To)
			r.request.Target = r.target
		}
		if len(d.Number) > 0 {
			progress := o.progress(d.progressFlag, "resubmitted", "message", int64(len(d.Number)))
			return r.report(progress, r.run(ctx, resubmit.ByNumber(d.Number), progress))
		}
		if d.Filter != "" {
			r.request.Filter = proto.String(d.Filter)
		}
		present, err := o.deadLetters(ctx, of.resource(), of.subQueue())
		if err != nil {
			return err
		}
		if d.All && present > 0 {
			from := of.resource()
			if of.Transfer {
				from = place(from, of.subQueue())
			}
			text := fmt.Sprintf("This sends %s of %s to %s.", client.Count(present, "dead letter"), from, r.target)
			if err := o.agree(ctx, &d.confirmation, text); err != nil {
				return err
			}
		}
		if !d.All {
			present = max(present, 1) // so that the sidecar reads the filter
		}
		total := present
		if !d.All {
			total = 0 // a filter may select fewer
		}
		progress := o.progress(d.progressFlag, "resubmitted", "message", total)
		return r.report(progress, r.run(ctx, resubmit.All(present), progress))
	})
}

// resubmitting is one resubmit under way.
type resubmitting struct {
	o                *operator
	request          *sidebusv1.ResubmitRequest
	target           string
	sent, duplicates int64
	left             refused
}

// run makes the steps of a resubmission.
func (r *resubmitting) run(ctx context.Context, p resubmit.Progress, told *progress) error {
	for !p.Done {
		if err := done(ctx); err != nil {
			return err
		}
		p.Next(r.request, resubmitStep)
		answer, err := r.o.Resubmit(ctx, r.request)
		if err != nil {
			return err
		}
		if len(answer.GetResults()) == 0 && p.Named {
			return errors.New("the sidecar answered for none of the numbers; list the dead letters and repeat the command with those that are left")
		}
		if err := r.print(p.Take(answer), p.Named); err != nil {
			return err
		}
		told.tell(r.sent)
	}
	return nil
}

// print prints what became of each: all that were named, of others those that stay.
func (r *resubmitting) print(results []*sidebusv1.ResubmitResponse_Result, isNamed bool) (err error) {
	var rows [][]string
	for _, result := range results {
		number := result.GetSequenceNumber()
		text := "sent"
		switch {
		case result.GetReason() != "":
			r.left.add(number, result.GetReason())
			text = "not resubmitted: " + result.GetReason()
		case result.GetDeduplicated():
			r.duplicates++
			text = "duplicate, dropped"
		default:
			r.sent++
		}
		if r.o.asJSON {
			if err := r.o.document(result); err != nil {
				return err
			}
		} else if isNamed {
			fresh := ""
			if result.NewSequenceNumber != nil {
				fresh = strconv.FormatInt(result.GetNewSequenceNumber(), 10)
			}
			rows = append(rows, []string{strconv.FormatInt(number, 10), fresh, text})
		}
	}
	if len(rows) > 0 {
		err = r.o.table([]string{"SEQUENCE", "NEW", "RESULT"}, rows)
	}
	return errors.Join(err, r.o.flush())
}

// report says what was done, and fails when something stayed.
func (r *resubmitting) report(progress *progress, failed error) error {
	progress.end()
	text := fmt.Sprintf("resubmitted %s to %s", client.Count(r.sent, "message"), r.target)
	if r.duplicates > 0 {
		text += fmt.Sprintf(", %s dropped", client.Count(r.duplicates, "duplicate"))
	}
	if r.left.total > 0 {
		text += fmt.Sprintf(", %d not resubmitted", r.left.total)
	}
	if failed != nil && r.sent+r.duplicates == 0 && r.left.total == 0 {
		return failed
	}
	if r.o.asJSON || failed != nil {
		r.o.note("%s", text)
	} else if err := r.o.say("%s", text); err != nil {
		return err
	}
	return errors.Join(failed, r.left.error("not resubmitted"))
}

type dlqDeleteCommand struct {
	dlqQueue

	Number []int64 `name:"number" xor:"which" placeholder:"N,N" help:"Sequence numbers of dead letters."`
	All    bool    `name:"all" xor:"which" help:"All dead letters that exist now."`

	confirmation
	progressFlag
	clientSettings
}

// Run removes dead letters.
func (d *dlqDeleteCommand) Run(ctx context.Context, to terminal.Streams) error {
	of := &d.dlqQueue
	switch {
	case d.All:
		p := &purging{
			source:       of.resource(),
			subQueue:     of.subQueue(),
			confirmation: d.confirmation,
			progressFlag: d.progressFlag,
		}
		return p.run(ctx, to, &d.clientSettings)
	case len(d.Number) == 0:
		return cli.Misuse("specify --number or --all")
	}
	return d.operate(ctx, to, func(ctx context.Context, o *operator) error {
		var left refused
		deleted := 0
		for numbers := d.Number; len(numbers) > 0; {
			step := min(len(numbers), deleteStep)
			answer, err := o.DeleteBySequence(ctx, &sidebusv1.DeleteBySequenceRequest{
				Source: of.resource(), SubQueue: of.subQueue(), SequenceNumbers: numbers[:step],
			})
			if err != nil {
				o.note("removed %s from %s", client.Count(deleted, "message"), place(of.resource(), of.subQueue()))
				return err
			}
			numbers = numbers[step:]
			var rows [][]string
			for _, result := range answer.GetResults() {
				text := "removed"
				if result.Reason != nil {
					text = "not removed: " + result.GetReason()
				} else {
					deleted++
				}
				left.add(result.GetSequenceNumber(), result.GetReason())
				rows = append(rows, []string{strconv.FormatInt(result.GetSequenceNumber(), 10), text})
				if o.asJSON {
					if err := o.document(result); err != nil {
						return err
					}
				}
			}
			if !o.asJSON {
				if err := o.table([]string{"SEQUENCE", "RESULT"}, rows); err != nil {
					return err
				}
			}
		}
		return left.error("not removed")
	})
}
