package main

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type entityCommand struct {
	List   entityListCommand   `cmd:"" help:"List the queues with their main options."`
	Show   entityShowCommand   `cmd:"" help:"Show a queue with all options."`
	Create entityCreateCommand `cmd:"" help:"Make a queue; it must not exist."`
	Ensure entityEnsureCommand `cmd:"" help:"Make a queue if it does not exist, and say what differs if it does."`
	Update entityUpdateCommand `cmd:"" help:"Change options of a queue and leave the others alone."`
	Delete entityDeleteCommand `cmd:"" help:"Remove a queue and all it holds."`
}

// entityName names one queue.
type entityName struct {
	Name string `arg:"" help:"The queue: orders or queues/orders."`

	clientSettings
}

func (e *entityName) resource() string { return client.Resource(e.Name) }

// entityOptions are options of a queue.
type entityOptions struct {
	Set []string `name:"set" short:"s" sep:"none" placeholder:"OPTION=VALUE" help:"An option by its name in the API, such as lockDuration=30s; no value: its default; may be repeated."`
}

func (e *entityOptions) read() (*sidebusv1.Queue, []string, error) {
	queue, paths, err := client.Options(e.Set)
	if err != nil {
		return nil, nil, misuse("--set: %w", err)
	}
	return queue, paths, nil
}

type entityListCommand struct{ clientSettings }

// Run lists all queues. The JSON is one document with all of them.
func (e *entityListCommand) Run(ctx context.Context, to terminal) error {
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		queues, err := o.queues(ctx)
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(&sidebusv1.ListQueuesResponse{Queues: queues})
		}
		if len(queues) == 0 {
			o.note(`there are no queues; "sidebus entity create NAME" makes one`)
			return nil
		}
		var rows [][]string
		for _, q := range queues {
			lifetime := "never"
			if d := q.GetDefaultMessageTimeToLive(); d != nil {
				lifetime = client.Span(d)
			}
			rows = append(rows, []string{
				q.GetName(), q.GetStatus().String(), client.Span(q.GetLockDuration()), fmt.Sprint(q.GetMaxDeliveryCount()),
				lifetime, fmt.Sprint(q.GetRequiresDuplicateDetection()), fmt.Sprint(q.GetRequiresSession()), client.Instant(q.GetCreatedAt()),
			})
		}
		return o.table([]string{"NAME", "STATUS", "LOCK", "MAX DELIVERIES", "TIME TO LIVE", "DUPLICATE DETECTION", "SESSIONS", "CREATED"}, rows)
	})
}

// queues gives all queues, page by page.
func (o *operator) queues(ctx context.Context) ([]*sidebusv1.Queue, error) {
	var queues []*sidebusv1.Queue
	for request := (&sidebusv1.ListQueuesRequest{}); ; {
		page, err := o.ListQueues(ctx, request)
		if err != nil {
			return nil, err
		}
		queues = append(queues, page.GetQueues()...)
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return queues, nil
		}
	}
}

type entityShowCommand struct{ entityName }

// Run prints all that is known about a queue but its counts.
func (e *entityShowCommand) Run(ctx context.Context, to terminal) error {
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		queue, err := o.GetQueue(ctx, &sidebusv1.GetQueueRequest{Name: e.resource()})
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(queue)
		}
		return o.table([]string{"OPTION", "VALUE"}, client.OptionRows(queue))
	})
}

type entityCreateCommand struct {
	entityName
	entityOptions
}

// Run makes a queue and fails when there is one.
func (e *entityCreateCommand) Run(ctx context.Context, to terminal) error {
	queue, _, err := e.read()
	if err != nil {
		return err
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		queue.Name = client.Name(e.resource())
		made, err := o.CreateQueue(ctx, &sidebusv1.CreateQueueRequest{Queue: queue})
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(made)
		}
		return o.say("created queues/%s", made.GetName())
	})
}

type entityEnsureCommand struct {
	entityName
	entityOptions
}

// Run makes a queue if there is none. One that differs stays as it is, which is no failure.
func (e *entityEnsureCommand) Run(ctx context.Context, to terminal) error {
	queue, _, err := e.read()
	if err != nil {
		return err
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		answer, err := o.EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: e.resource(), Queue: queue})
		if err != nil {
			return err
		}
		name := answer.GetResource().GetName()
		if n := len(answer.GetDifferences()); n > 0 {
			defer o.note(`nothing was changed; "sidebus entity update %s --set ..." changes options`, name)
		}
		switch {
		case o.asJSON:
			return o.document(answer)
		case answer.GetCreated():
			return o.say("created queues/%s", name)
		case len(answer.GetDifferences()) == 0:
			return o.say("queues/%s exists as asked for", name)
		}
		if err := o.say("queues/%s exists and differs", name); err != nil {
			return err
		}
		var rows [][]string
		for _, d := range answer.GetDifferences() {
			rows = append(rows, []string{d.GetOption(), client.OneLine(d.GetPresent()), client.OneLine(d.GetAsked())})
		}
		return o.table([]string{"OPTION", "PRESENT", "ASKED"}, rows)
	})
}

type entityUpdateCommand struct {
	entityName
	entityOptions
}

// Run changes the options that were set and no others.
func (e *entityUpdateCommand) Run(ctx context.Context, to terminal) error {
	queue, paths, err := e.read()
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return misuse("nothing to change; --set OPTION=VALUE names an option")
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		changed, err := o.UpdateQueue(ctx, &sidebusv1.UpdateQueueRequest{
			Name: e.resource(), Queue: queue, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
		})
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(changed)
		}
		return o.say("updated queues/%s", changed.GetName())
	})
}

type entityDeleteCommand struct {
	entityName
	confirmation
}

// Run removes a queue after a look at what is in it.
func (e *entityDeleteCommand) Run(ctx context.Context, to terminal) error {
	if err := e.check(to); err != nil {
		return err
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		counts, err := o.GetQueueRuntime(ctx, &sidebusv1.GetQueueRuntimeRequest{Name: e.resource()})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("This deletes %s with %s in it, %d of them dead-lettered.",
			e.resource(), count(counts.GetTotalMessageCount(), "message"), counts.GetDeadLetterMessageCount())
		if err := o.confirm(ctx, &e.confirmation, e.resource(), text); err != nil {
			return err
		}
		answer, err := o.DeleteQueue(ctx, &sidebusv1.DeleteQueueRequest{Name: e.resource()})
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(answer)
		}
		return o.say("deleted %s with %s in it", e.resource(), count(counts.GetTotalMessageCount(), "message"))
	})
}
