package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

type ruleTestCommand struct {
	Subscription string `arg:"" optional:"" help:"Test the rules of this subscription, such as topics/news/subscriptions/eu, instead of a rule from flags."`
	Rule         string `arg:"" optional:"" help:"Test only this rule of the subscription."`

	ruleFlags

	Name string `name:"name" default:"test" placeholder:"NAME" help:"Name of the rule from flags. An action sets RuleName to it."`

	messageFlags

	Message     string `name:"message" short:"m" xor:"message" placeholder:"JSON" help:"The message as JSON, as the API and peek -o json write it."`
	MessageFile string `name:"message-file" xor:"message" placeholder:"FILE" help:"Read the message from a file. - reads stdin."`
	Peek        string `name:"peek" xor:"message" placeholder:"SOURCE" help:"Test with message --number of this queue, subscription or topic."`
	Number      int64  `name:"number" placeholder:"N" help:"Sequence number for --peek."`

	subQueueFlags
	clientSettings
}

// Run explains what rules do with a message. It evaluates them in this process and reads from the sidecar only what the
// flags name.
func (r *ruleTestCommand) Run(ctx context.Context, to terminal.Streams) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		message, err := r.message(ctx, o)
		if err != nil {
			return err
		}
		rules, err := r.rulesToTest(ctx, o)
		if err != nil {
			return err
		}
		trial := &ruleTrial{o: o, message: message}
		for _, rule := range rules {
			if err := trial.explain(rule); err != nil {
				return err
			}
		}
		if r.Subscription == "" || r.Rule != "" || o.asJSON {
			return nil
		}
		subscription, err := o.GetSubscription(
			ctx, &sidebusv1.GetSubscriptionRequest{Name: client.Resource(r.Subscription)},
		)
		if err != nil {
			return err
		}
		return o.say("%s would get %s", client.Resource(r.Subscription), trial.verdict(subscription))
	})
}

func (r *ruleTestCommand) checkFlags() error {
	switch {
	case r.Subscription != "" && !r.ruleFlags.isEmpty():
		return cli.Misuse("a subscription and a rule from flags exclude each other")
	case r.Subscription == "" && !r.isGiven():
		return cli.Misuse("specify a rule with --sql, --correlation, --all or --none, or name a subscription")
	case (r.Peek != "") != (r.Number > 0):
		return cli.Misuse("--peek and --number require each other")
	case r.isSet() && r.Peek == "":
		return cli.Misuse("--dlq and --transfer-dlq require --peek")
	default:
		return nil
	}
}

// message returns the message to test with.
func (r *ruleTestCommand) message(ctx context.Context, o *operator) (*semantics.Message, error) {
	given, err := r.template(time.Now())
	if err != nil {
		return nil, err
	}
	if r.Message != "" || r.MessageFile != "" || r.Peek != "" {
		if proto.Size(given) > 0 {
			return nil, cli.Misuse("a whole message and flags for single properties exclude each other")
		}
		if given, err = r.wholeMessage(ctx, o); err != nil {
			return nil, err
		}
	}
	m := &semantics.Message{}
	if err := wire.MessageOf(given, m); err != nil {
		return nil, err
	}
	return m, m.Validate()
}

func (r *ruleTestCommand) wholeMessage(ctx context.Context, o *operator) (*sidebusv1.Message, error) {
	if r.Peek != "" {
		return o.peekAt(ctx, client.Resource(r.Peek), r.Number, r.kind())
	}
	text, err := []byte(r.Message), error(nil)
	switch r.MessageFile {
	case "":
	case "-":
		text, err = await(ctx, func() ([]byte, error) { return io.ReadAll(o.Stdin) })
	default:
		text, err = os.ReadFile(r.MessageFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the message: %w", err)
	}
	message, err := client.ReadMessage(text)
	if err != nil {
		return nil, fmt.Errorf("the message to test with: %w", err)
	}
	return message, nil
}

// peekAt returns the message with a sequence number as its sender may have handed it over.
func (o *operator) peekAt(
	ctx context.Context, source string, number int64, subQueue sidebusv1.SubQueue_Kind,
) (*sidebusv1.Message, error) {
	answer, err := o.MessagesClient.Peek(
		ctx, &sidebusv1.PeekRequest{Source: source, SubQueue: subQueue, FromSequenceNumber: &number},
	)
	if err != nil {
		return nil, err
	}
	if found := answer.GetMessages(); len(found) == 1 && found[0].GetSequenceNumber() == number {
		return client.Sent(found[0])
	}
	return nil, fmt.Errorf("there is no message %d in %s; \"sidebus peek\" lists what is there", number, place(source, subQueue))
}

// rulesToTest returns the rule of the flags, or those of the subscription.
func (r *ruleTestCommand) rulesToTest(ctx context.Context, o *operator) ([]*sidebusv1.Rule, error) {
	subscription := client.Resource(r.Subscription)
	switch {
	case r.Subscription == "":
		rule, err := r.rule(r.Name)
		return []*sidebusv1.Rule{rule}, err
	case r.Rule != "":
		rule, err := o.GetRule(ctx, &sidebusv1.GetRuleRequest{Name: subscription + "/rules/" + r.Rule})
		return []*sidebusv1.Rule{rule}, err
	default:
		return client.Rules(ctx, o, subscription)
	}
}

// ruleTrial is what rules do with one message.
type ruleTrial struct {
	o       *operator
	message *semantics.Message

	plain   []string // rules without action that match
	changed []string // rules with an action that match
	failed  []string // rules without a result
	inNone  int      // copies without a session
	tooLong []string // rules whose action makes the headers too large
}

// explain prints what one rule does with the message.
func (t *ruleTrial) explain(rule *sidebusv1.Rule) error {
	given, err := wire.RuleOf(rule)
	if err != nil {
		return err
	}
	e, err := filter.Explain(given, t.message)
	switch semantics.CodeOf(err) {
	case "":
	case semantics.FilterInvalid:
		return fmt.Errorf("%w%s", err, client.Caret(rule.GetFilter().GetSql().GetExpression(), err.Error()))
	case semantics.ActionInvalid:
		return fmt.Errorf("%w%s", err, client.Caret(rule.GetAction().GetSql().GetExpression(), err.Error()))
	default:
		return err
	}
	t.note(given, e)
	if t.o.asJSON {
		return t.document(e)
	}
	for line := range strings.Lines(e.String()) {
		if err := t.o.say("%s", client.OneLine(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func (t *ruleTrial) note(rule semantics.Rule, e *filter.Explanation) {
	isTooLong := e.Matches && e.Failure != nil && semantics.CodeOf(e.Failure) == semantics.MessageSizeExceeded
	switch {
	case isTooLong:
		t.tooLong = append(t.tooLong, rule.Name)
	case e.Failure != nil:
		t.failed = append(t.failed, rule.Name)
	case !e.Matches:
	case rule.Action == nil:
		t.plain = append(t.plain, rule.Name)
	default:
		t.changed = append(t.changed, rule.Name)
		if e.Copy.SessionID == "" {
			t.inNone++
		}
	}
}

// verdict returns what a subscription with these rules gets (TOPIC-5, RULE-8, SESS-7).
func (t *ruleTrial) verdict(s *sidebusv1.Subscription) string {
	copies, dead := len(t.changed), len(t.tooLong)
	if len(t.plain) > 0 {
		copies++
		if t.message.SessionID == "" {
			t.inNone++
		}
	}
	if s.GetRequiresSession() {
		copies, dead = copies-t.inNone, dead+t.inNone
	}
	if len(t.failed) > 0 && s.GetDeadLetteringOnFilterEvaluationExceptions() {
		dead++
	}
	var parts []string
	if copies > 0 {
		parts = append(parts, copiesText(copies))
	}
	if dead > 0 {
		parts = append(parts, client.Count(dead, "dead letter"))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " and ")
}

func copiesText(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}

// explained is the JSON form of an explanation.
type explained struct {
	Rule string `json:"rule"`
	filter.Report
	Copy json.RawMessage `json:"copy,omitempty"` // what the subscription gets
}

// document prints an explanation as one line of JSON.
func (t *ruleTrial) document(e *filter.Explanation) error {
	all := explained{Rule: e.Rule, Report: e.Report()}
	if e.Copy != nil {
		made, err := wire.MessageFrom(e.Copy)
		if err != nil {
			return err
		}
		all.Copy = client.JSON(made)
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all); err != nil {
		return err
	}
	return t.o.line(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
}
