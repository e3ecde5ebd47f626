package entities

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Made is what came of ensuring an entity: it was made, or was there and maybe differs.
type Made struct {
	Entity      *Entity
	IsNew       bool
	Differences []Difference
}

// Failed is a failure that is about one entity.
type Failed struct {
	Entity *Entity
	Err    error
}

// Error names the entity.
func (f *Failed) Error() string { return f.Entity.Resource + ": " + f.Err.Error() }

// Located is the failure with the place in the file.
func (f *Failed) Located() error { return f.Entity.located(f.Err) }

// Unwrap returns the failure.
func (f *Failed) Unwrap() error { return f.Err }

// Make ensures all entities (ENT-6), in an order in which an entity exists before another names it, and reports each.
// It ends at the first failure, which is a *Failed; a repeated call continues from there.
func (s *Set) Make(ctx context.Context, api sidebusv1.AdminClient, tell func(Made)) error {
	steps := s.steps()
	isNew := map[*Entity]bool{}
	for _, step := range steps {
		made, err := ensure(ctx, api, step.entity, step.later)
		if err != nil {
			return &Failed{step.entity, err}
		}
		if isNew[step.entity] = made.IsNew; len(step.later) == 0 {
			tell(made)
		}
	}
	for _, step := range steps {
		if len(step.later) == 0 {
			continue
		}
		made, err := complete(ctx, api, step, isNew[step.entity])
		if err != nil {
			return &Failed{step.entity, err}
		}
		tell(made)
	}
	return nil
}

// ensure creates an entity without some of its options, if there is none.
func ensure(ctx context.Context, api sidebusv1.AdminClient, e *Entity, without []string) (Made, error) {
	made := Made{Entity: e}
	d := proto.CloneOf(e.Description)
	client.Unset(d, without...)
	hasNone := e.HasRules && len(e.Rules()) == 0
	if hasNone {
		d.(*sidebusv1.Subscription).Rules = []*sidebusv1.Rule{nothing()}
	}
	answer, err := client.Ensure(ctx, api, e.Resource, d)
	if err != nil {
		return made, err
	}
	made.IsNew = answer.GetCreated()
	for _, d := range answer.GetDifferences() {
		made.Differences = append(made.Differences, differenceOf(e, resource(answer), d))
	}
	made.Differences = slices.DeleteFunc(
		made.Differences,
		func(d Difference) bool { return isForced(e.Description, resource(answer), d.Option) },
	)
	switch {
	case !hasNone:
	case made.IsNew:
		_, err = api.DeleteRule(ctx, &sidebusv1.DeleteRuleRequest{Name: rulePath(e.Resource, semantics.DefaultRule)})
	default:
		made.Differences = withoutNothing(made.Differences)
	}
	return made, err
}

// differenceOf returns a difference with the values of an option as a file has them.
func differenceOf(e *Entity, is client.Description, d *sidebusv1.Difference) Difference {
	if isOption, _ := client.HasOption(is)(d.GetOption()); !isOption {
		return Difference{d.GetOption(), d.GetPresent(), d.GetAsked()}
	}
	return Difference{
		d.GetOption(), client.OptionValue(is, d.GetOption()), client.OptionValue(e.Description, d.GetOption()),
	}
}

// isForced reports whether the option has another value than the one asked for as a consequence of what else is asked
// for (ENT-14).
func isForced(asked, is client.Description, option string) bool {
	forwardTo := client.Text(is, "forwardTo")
	if isOption, _ := client.HasOption(asked)("forwardTo"); isOption && client.IsGiven(asked, "forwardTo") {
		forwardTo = client.Text(asked, "forwardTo")
	}
	return option == "autoDeleteOnIdle" && forwardTo != ""
}

// nothing is the rule that a subscription is created with which is to have none, and which is removed then: no call
// makes one without rules, and with this one too it gets nothing.
func nothing() *sidebusv1.Rule {
	return &sidebusv1.Rule{
		Name:   semantics.DefaultRule,
		Filter: &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_None{None: &sidebusv1.Rule_None{}}},
	}
}

// withoutNothing turns differences from that rule into differences from no rules.
func withoutNothing(differences []Difference) []Difference {
	var all []Difference
	for _, d := range differences {
		if strings.HasPrefix(d.Option, "rules[") {
			if d.Asked = ""; d.Present == "" {
				continue
			}
		}
		all = append(all, d)
	}
	return all
}

// complete sets the options of a new entity that had to wait, and looks at all options of one that was there.
func complete(ctx context.Context, api sidebusv1.AdminClient, s step, isNew bool) (Made, error) {
	if !isNew {
		return ensure(ctx, api, s.entity, nil)
	}
	d := proto.CloneOf(s.entity.Description)
	if subscription, ok := d.(*sidebusv1.Subscription); ok {
		subscription.Rules = nil
	}
	_, err := client.Update(ctx, api, s.entity.Resource, d, s.later)
	return Made{Entity: s.entity, IsNew: true}, err
}

func rulePath(subscription, rule string) string { return subscription + "/rules/" + rule }

// resource returns the entity in the answer to an ensure.
func resource(answer client.Ensured) client.Description {
	switch a := answer.(type) {
	case *sidebusv1.EnsureQueueResponse:
		return a.GetResource()
	case *sidebusv1.EnsureTopicResponse:
		return a.GetResource()
	case *sidebusv1.EnsureSubscriptionResponse:
		return a.GetResource()
	default:
		return nil
	}
}
