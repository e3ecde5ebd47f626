package entities

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// CarryOut makes what is missing, and with update changes what differs. It reports each entity when it is done; one
// that still differs has its differences, as has one that another client created meanwhile. It ends at the first
// failure, which is a *Failed; a new Plan continues from there.
func (p *Plan) CarryOut(ctx context.Context, api sidebusv1.AdminClient, update bool, tell func(Change)) error {
	missing := &Set{}
	for _, change := range p.Changes {
		if !change.IsNew {
			continue
		}
		if err := missing.add(change.Entity); err != nil {
			return err
		}
	}
	err := missing.Make(
		ctx, api,
		func(made Made) { tell(Change{Entity: made.Entity, IsNew: made.IsNew, Options: made.Differences}) },
	)
	if err != nil {
		return err
	}
	for _, change := range p.Changes {
		if change.IsNew {
			continue
		}
		if !update {
			tell(*change)
			continue
		}
		if err := change.carryOut(ctx, api); err != nil {
			return &Failed{change.Entity, err}
		}
		tell(Change{Entity: change.Entity})
	}
	return nil
}

func (c *Change) carryOut(ctx context.Context, api sidebusv1.AdminClient) error {
	var options []string
	for _, d := range c.Options {
		options = append(options, d.Option)
	}
	if len(options) > 0 {
		d := proto.CloneOf(c.Entity.Description)
		client.Unset(d, "rules")
		if _, err := client.Update(ctx, api, c.Entity.Resource, d, options); err != nil {
			return err
		}
	}
	return c.carryOutRules(ctx, api)
}

// carryOutRules brings the rules of a subscription in order so that at no moment a message is missed that old and new
// rules select: first what is missing, last what is to go.
func (c *Change) carryOutRules(ctx context.Context, api sidebusv1.AdminClient) error {
	r := &ruleWork{api: api, subscription: c.Entity.Resource}
	for _, rule := range c.Rules {
		if rule.Present == nil {
			if err := r.create(ctx, rule.Asked); err != nil {
				return err
			}
		}
	}
	for _, rule := range c.Rules {
		if rule.Present != nil && rule.Asked != nil {
			if err := r.replace(ctx, rule, freeName(c)); err != nil {
				return err
			}
		}
	}
	for _, rule := range c.Rules {
		if rule.Asked == nil {
			if err := r.remove(ctx, rule.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ruleWork changes rules of one subscription.
type ruleWork struct {
	api          sidebusv1.AdminClient
	subscription string
}

// create creates a rule. One that is there already is what an earlier try has left.
func (r *ruleWork) create(ctx context.Context, rule *sidebusv1.Rule) error {
	answer, err := r.api.EnsureRule(
		ctx, &sidebusv1.EnsureRuleRequest{Name: rulePath(r.subscription, rule.GetName()), Rule: rule},
	)
	if err == nil && len(answer.GetDifferences()) > 0 {
		err = fmt.Errorf("another client created a different rule %s meanwhile", rule.GetName())
	}
	if err != nil {
		return fmt.Errorf("rule %s: %w", rule.GetName(), err)
	}
	return nil
}

func (r *ruleWork) remove(ctx context.Context, name string) error {
	_, err := r.api.DeleteRule(ctx, &sidebusv1.DeleteRuleRequest{Name: rulePath(r.subscription, name)})
	if err != nil && reasonOf(err) != semantics.RuleNotFound {
		return fmt.Errorf("rule %s: %w", name, err)
	}
	return nil
}

// replace changes a rule. No call does that, and two rules cannot have one name, so that the new one exists for a
// moment under another name: a message that comes then is selected by one of the two, and one that both select makes
// one copy unless they have actions (TOPIC-5).
func (r *ruleWork) replace(ctx context.Context, rule RuleChange, meanwhile string) error {
	placeholder := proto.CloneOf(rule.Asked)
	placeholder.Name = meanwhile
	if err := r.create(ctx, placeholder); err != nil {
		return err
	}
	if err := r.remove(ctx, rule.Name()); err != nil {
		return err
	}
	if err := r.create(ctx, rule.Asked); err != nil {
		return err
	}
	return r.remove(ctx, meanwhile)
}

// freeName returns a name that no rule of a subscription has, before or after.
func freeName(c *Change) string {
	taken := map[string]bool{}
	for _, rule := range c.Entity.Rules() {
		taken[semantics.Fold(rule.GetName())] = true
	}
	for _, rule := range c.Rules {
		taken[semantics.Fold(rule.Name())] = true
	}
	for i := 0; ; i++ {
		if name := fmt.Sprintf("sidebus-apply-%d", i); !taken[name] {
			return name
		}
	}
}
