package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type entityCommand struct {
	List   entityListCommand   `cmd:"" aliases:"ls" help:"List queues, topics or the subscriptions of a topic with their main options."`
	Show   entityShowCommand   `cmd:"" aliases:"get" help:"Show a queue, topic or subscription with all options."`
	Create entityCreateCommand `cmd:"" aliases:"add" help:"Create a queue, topic or subscription that does not exist."`
	Ensure entityEnsureCommand `cmd:"" help:"Create a queue, topic or subscription if it does not exist; otherwise show what differs."`
	Update entityUpdateCommand `cmd:"" help:"Change some options of a queue, topic or subscription."`
	Delete entityDeleteCommand `cmd:"" aliases:"rm" help:"Delete a queue, topic or subscription with all its messages."`
	Apply  entityApplyCommand  `cmd:"" help:"Create the entities and rules in a file that are missing, and show what differs."`
	Export entityExportCommand `cmd:"" help:"Write queues, topics, subscriptions and rules as a file for apply."`
}

// entityName names one entity.
type entityName struct {
	Name string `arg:"" help:"Queue, such as orders or queues/orders, topic, such as topics/news, or subscription, such as topics/news/subscriptions/eu."`
}

func (e *entityName) resource() string { return client.Resource(e.Name) }

// entityOptions are options of an entity.
type entityOptions struct {
	Set []string `name:"set" short:"s" sep:"none" placeholder:"OPTION=VALUE" help:"Option by its name in the API, such as lockDuration=30s. Without a value: the default. Can be repeated."`
}

// read returns the description of an entity with the options, and their names.
func (e *entityOptions) read(resource string) (client.Description, []string, error) {
	d := client.Blank(resource)
	paths, err := client.Options(d, e.Set)
	if err != nil {
		return nil, nil, cli.Misuse("--set: %w", err)
	}
	return d, paths, nil
}

// describe returns the description of a new entity, with its first rule if it is a subscription.
func (e *entityOptions) describe(resource string, rule *firstRule) (client.Description, error) {
	d, _, err := e.read(resource)
	if err == nil {
		err = rule.putInto(d)
	}
	return d, err
}

type entityListCommand struct {
	Which string `arg:"" optional:"" default:"queues" help:"queues, topics, or a topic, such as topics/news, to list its subscriptions. Default: queues."`

	Prefix string `name:"prefix" placeholder:"TEXT" help:"Only entities whose names begin with this text."`

	clientSettings
}

// Run lists all entities of a kind. The JSON is one document with all of them.
func (e *entityListCommand) Run(ctx context.Context, to terminal.Streams) error {
	which := strings.TrimSuffix(strings.TrimSuffix(e.Which, "/"), "/subscriptions")
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		switch {
		case which == "queues":
			return e.listQueues(ctx, o)
		case which == "topics":
			return e.listTopics(ctx, o)
		case strings.HasPrefix(which, "topics/"):
			return e.listSubscriptions(ctx, o, client.Resource(which))
		default:
			return cli.Misuse(
				`cannot list %q; specify queues, topics or topics/NAME; "sidebus entity show" shows one entity`, e.Which,
			)
		}
	})
}

func (e *entityListCommand) listQueues(ctx context.Context, o *operator) error {
	queues, err := client.Queues(ctx, o, e.Prefix)
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return o.document(&sidebusv1.ListQueuesResponse{Queues: queues})
	case len(queues) == 0:
		o.note("%s", e.none("there are no queues", `"sidebus entity create NAME" creates one`))
		return nil
	}
	var rows [][]string
	for _, q := range queues {
		rows = append(rows, []string{
			q.GetName(), q.GetStatus().String(), client.Span(q.GetLockDuration()), fmt.Sprint(q.GetMaxDeliveryCount()),
			client.Lifetime(q.GetDefaultMessageTimeToLive()), fmt.Sprint(q.GetRequiresDuplicateDetection()),
			fmt.Sprint(q.GetRequiresSession()), client.Instant(q.GetCreatedAt()),
		})
	}
	columns := []string{
		"NAME", "STATUS", "LOCK", "MAX DELIVERIES", "TIME TO LIVE", "DUPLICATE DETECTION", "SESSIONS", "CREATED",
	}
	return o.table(columns, rows)
}

func (e *entityListCommand) listTopics(ctx context.Context, o *operator) error {
	topics, err := client.Topics(ctx, o, e.Prefix)
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return o.document(&sidebusv1.ListTopicsResponse{Topics: topics})
	case len(topics) == 0:
		o.note("%s", e.none("there are no topics", `"sidebus entity create topics/NAME" creates one`))
		return nil
	}
	var rows [][]string
	for _, t := range topics {
		rows = append(rows, []string{
			t.GetName(), t.GetStatus().String(), fmt.Sprint(t.GetMaxSizeInMegabytes(), " MiB"),
			client.Lifetime(t.GetDefaultMessageTimeToLive()),
			fmt.Sprint(t.GetRequiresDuplicateDetection()), client.Instant(t.GetCreatedAt()),
		})
	}
	return o.table([]string{"NAME", "STATUS", "MAX SIZE", "TIME TO LIVE", "DUPLICATE DETECTION", "CREATED"}, rows)
}

func (e *entityListCommand) listSubscriptions(ctx context.Context, o *operator, topic string) error {
	subscriptions, err := client.Subscriptions(ctx, o, topic, e.Prefix)
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return o.document(&sidebusv1.ListSubscriptionsResponse{Subscriptions: subscriptions})
	case len(subscriptions) == 0:
		next := fmt.Sprintf(`"sidebus entity create %s" creates one`, client.Subscription(topic, "NAME"))
		o.note("%s", e.none(topic+" has no subscriptions", next))
		return nil
	}
	var rows [][]string
	for _, s := range subscriptions {
		rows = append(rows, []string{
			s.GetName(), s.GetStatus().String(), client.Span(s.GetLockDuration()), fmt.Sprint(s.GetMaxDeliveryCount()),
			client.Lifetime(s.GetDefaultMessageTimeToLive()), fmt.Sprint(s.GetRequiresSession()),
			client.Instant(s.GetCreatedAt()),
		})
	}
	return o.table([]string{"NAME", "STATUS", "LOCK", "MAX DELIVERIES", "TIME TO LIVE", "SESSIONS", "CREATED"}, rows)
}

// none says that a list is empty, and what to do about it unless a prefix has made it so.
func (e *entityListCommand) none(what, next string) string {
	if e.Prefix != "" {
		return fmt.Sprintf("%s whose names begin with %q", what, e.Prefix)
	}
	return what + "; " + next
}

type entityShowCommand struct {
	entityName
	clientSettings
}

// Run prints all that is known about an entity but its counts and rules.
func (e *entityShowCommand) Run(ctx context.Context, to terminal.Streams) error {
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		d, err := o.describe(ctx, e.resource())
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(d)
		}
		return o.table([]string{"OPTION", "VALUE"}, client.OptionRows(d))
	})
}

type entityCreateCommand struct {
	entityName
	entityOptions
	firstRule
	clientSettings
}

// Run creates an entity and fails when there is one.
func (e *entityCreateCommand) Run(ctx context.Context, to terminal.Streams) error {
	d, err := e.describe(e.resource(), &e.firstRule)
	if err != nil {
		return err
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		made, err := o.create(ctx, e.resource(), d)
		if err != nil {
			return err
		}
		return o.answer(made, "created %s", e.resource())
	})
}

type entityEnsureCommand struct {
	entityName
	entityOptions
	firstRule
	clientSettings
}

// Run creates an entity if there is none. One that differs stays as it is, which is not a failure.
func (e *entityEnsureCommand) Run(ctx context.Context, to terminal.Streams) error {
	d, err := e.describe(e.resource(), &e.firstRule)
	if err != nil {
		return err
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		answer, err := client.Ensure(ctx, o, e.resource(), d)
		if err != nil {
			return err
		}
		if n := len(answer.GetDifferences()); n > 0 {
			next := fmt.Sprintf(`"sidebus entity update %s --set ..." changes options`, client.Name(e.resource()))
			if client.Kind(e.resource()) == semantics.SubscriptionKind {
				next += `, "sidebus rule" changes rules`
			}
			defer o.note("nothing was changed; %s", next)
		}
		return o.ensured(e.resource(), answer)
	})
}

// ensured prints the answer to an ensure.
func (o *operator) ensured(resource string, answer client.Ensured) error {
	switch {
	case o.asJSON:
		return o.document(answer)
	case answer.GetCreated():
		return o.say("created %s", resource)
	case len(answer.GetDifferences()) == 0:
		return o.say("%s exists with these options", resource)
	}
	if err := o.say("%s exists and differs", resource); err != nil {
		return err
	}
	var rows [][]string
	for _, d := range answer.GetDifferences() {
		rows = append(rows, []string{
			d.GetOption(), client.OneLine(client.OptionText(resource, d.GetOption(), d.GetPresent())),
			client.OneLine(client.OptionText(resource, d.GetOption(), d.GetAsked())),
		})
	}
	return o.table([]string{"OPTION", "CURRENT", "REQUESTED"}, rows)
}

type entityUpdateCommand struct {
	entityName
	entityOptions
	clientSettings
}

// Run changes the options that were set and no others.
func (e *entityUpdateCommand) Run(ctx context.Context, to terminal.Streams) error {
	d, paths, err := e.read(e.resource())
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return cli.Misuse("nothing to change; specify --set OPTION=VALUE")
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		changed, err := client.Update(ctx, o, e.resource(), d, paths)
		if err != nil {
			return err
		}
		return o.answer(changed, "updated %s", e.resource())
	})
}

type entityDeleteCommand struct {
	entityName
	confirmation
	clientSettings
}

// Run removes an entity after a look at what is in it.
func (e *entityDeleteCommand) Run(ctx context.Context, to terminal.Streams) error {
	if err := e.check(to); err != nil {
		return err
	}
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		held, dead, err := o.held(ctx, e.resource())
		if err != nil {
			return err
		}
		text := fmt.Sprintf("This deletes %s with %s.", e.resource(), held+dead)
		if err := o.confirm(ctx, &e.confirmation, e.resource(), text); err != nil {
			return err
		}
		answer, err := o.remove(ctx, e.resource())
		if err != nil {
			return err
		}
		return o.answer(answer, "deleted %s with %s", e.resource(), held)
	})
}

// held returns what is deleted with an entity, and what of it is dead-lettered.
func (o *operator) held(ctx context.Context, resource string) (what, dead string, err error) {
	if client.Kind(resource) == semantics.TopicKind {
		counts, err := o.countTopic(ctx, resource)
		what = client.Count(counts.GetSubscriptionCount(), "subscription")
		return fmt.Sprintf("%s, %s in all", what, client.Bytes(counts.GetSizeInBytes())), "", err
	}
	counts, err := o.count(ctx, resource)
	what = client.Count(counts.GetTotalMessageCount(), "message") + " in it"
	letters := counts.GetDeadLetterMessageCount() + counts.GetTransferDeadLetterMessageCount()
	return what, fmt.Sprintf(", %d of them dead-lettered", letters), err
}
