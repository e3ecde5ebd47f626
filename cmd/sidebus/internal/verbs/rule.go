package verbs

import (
	"context"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type ruleCommand struct {
	List   ruleListCommand   `cmd:"" aliases:"ls" help:"List the rules of a subscription."`
	Show   ruleShowCommand   `cmd:"" aliases:"get" help:"Show a rule."`
	Add    ruleAddCommand    `cmd:"" aliases:"create" help:"Add a rule to a subscription."`
	Delete ruleDeleteCommand `cmd:"" aliases:"rm" help:"Delete a rule of a subscription."`
	Test   ruleTestCommand   `cmd:"" help:"Show what a rule does with a message, and why. Nothing is sent."`
}

// subscriptionName names one subscription.
type subscriptionName struct {
	Subscription string `arg:"" help:"Subscription, such as topics/news/subscriptions/eu."`
}

func (s *subscriptionName) resource() string { return client.Resource(s.Subscription) }

// ruleName names one rule.
type ruleName struct {
	subscriptionName

	Rule string `arg:"" help:"Name of the rule."`
}

func (r *ruleName) path() string { return r.resource() + "/rules/" + r.Rule }

type ruleListCommand struct {
	subscriptionName
	clientSettings
}

// Run lists all rules of a subscription. The JSON is one document with all of them.
func (r *ruleListCommand) Run(ctx context.Context, to terminal.Streams) error {
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		rules, err := client.Rules(ctx, o, r.resource())
		switch {
		case err != nil:
			return err
		case o.asJSON:
			return o.document(&sidebusv1.ListRulesResponse{Rules: rules})
		case len(rules) == 0:
			o.note("%s has no rules and receives nothing", r.resource())
			return nil
		}
		var rows [][]string
		for _, rule := range rules {
			rows = append(rows, []string{
				client.OneLine(rule.GetName()), client.Brief(client.FilterText(rule)),
				client.Brief(rule.GetAction().GetSql().GetExpression()), client.Instant(rule.GetCreatedAt()),
			})
		}
		return o.table([]string{"NAME", "FILTER", "ACTION", "CREATED"}, rows)
	})
}

type ruleShowCommand struct {
	ruleName
	clientSettings
}

// Run prints a rule.
func (r *ruleShowCommand) Run(ctx context.Context, to terminal.Streams) error {
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		rule, err := o.GetRule(ctx, &sidebusv1.GetRuleRequest{Name: r.path()})
		if err != nil {
			return err
		}
		if o.asJSON {
			return o.document(rule)
		}
		rows := [][]string{
			{"name", client.OneLine(rule.GetName())},
			{"filter", client.OneLine(client.FilterText(rule))},
		}
		rows = append(rows, parameterRows("filter", rule.GetFilter().GetSql())...)
		rows = append(rows, []string{"action", client.OneLine(rule.GetAction().GetSql().GetExpression())})
		rows = append(rows, parameterRows("action", rule.GetAction().GetSql())...)
		return o.table(
			[]string{"PART", "VALUE"}, append(rows, []string{"createdAt", client.Instant(rule.GetCreatedAt())}),
		)
	})
}

// parameterRows has the parameters of an SQL text, if there are any.
func parameterRows(of string, sql *sidebusv1.Rule_Sql) [][]string {
	if len(sql.GetParameters()) == 0 {
		return nil
	}
	return [][]string{{of + " parameters", client.OneLine(string(client.Values(sql.GetParameters())))}}
}

type ruleAddCommand struct {
	ruleName
	ruleFlags
	clientSettings
}

// Run adds a rule, and warns of what is valid but probably not intended.
func (r *ruleAddCommand) Run(ctx context.Context, to terminal.Streams) error {
	rule, err := r.ruleFlags.rule(r.Rule)
	if err != nil {
		return err
	}
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		made, err := o.CreateRule(ctx, &sidebusv1.CreateRuleRequest{Subscription: r.resource(), Rule: rule})
		if err != nil {
			return err
		}
		for _, warning := range made.GetWarnings() {
			o.note("warning: %s", client.OneLine(warning))
		}
		if made.GetName() != semantics.DefaultRule {
			defer o.tellOfDefault(ctx, r.resource())
		}
		return o.answer(made, "added rule %s to %s", made.GetName(), r.resource())
	})
}

// tellOfDefault says that a subscription gets everything through the rule it was made with, which who adds another one
// easily forgets (RULE-2).
func (o *operator) tellOfDefault(ctx context.Context, subscription string) {
	rule, err := o.GetRule(ctx, &sidebusv1.GetRuleRequest{Name: subscription + "/rules/" + semantics.DefaultRule})
	if err == nil && rule.GetFilter().GetAll() != nil {
		o.note(`the rule %s still selects every message; "sidebus rule delete %s '%s'" removes it`,
			semantics.DefaultRule, subscription, semantics.DefaultRule)
	}
}

type ruleDeleteCommand struct {
	ruleName
	clientSettings
}

// Run removes a rule. Messages that it has selected stay.
func (r *ruleDeleteCommand) Run(ctx context.Context, to terminal.Streams) error {
	return r.operate(ctx, to, func(ctx context.Context, o *operator) error {
		answer, err := o.DeleteRule(ctx, &sidebusv1.DeleteRuleRequest{Name: r.path()})
		if err != nil {
			return err
		}
		return o.answer(answer, "deleted rule %s of %s", r.Rule, r.resource())
	})
}
