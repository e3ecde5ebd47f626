package entities

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/inprocess"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Plan is what has to be done so that a sidecar has what a Set says.
type Plan struct {
	Changes   []*Change // of the entities that are missing or differ, in the order of the Set
	Unchanged int       // entities that are as they are to be
	Others    int       // queues, topics, and subscriptions of the Set's topics, that the Set does not have
}

// Change is an entity that is missing or differs.
type Change struct {
	Entity  *Entity
	IsNew   bool
	Unusual []string // of a new one: the options that are not to have their default
	Options []Difference
	Rules   []RuleChange
}

// Difference is an option that is not as it is to be.
type Difference struct{ Option, Present, Asked string }

// RuleChange is a rule that is missing, is to go, or is another one.
type RuleChange struct{ Present, Asked *sidebusv1.Rule }

// Name is the rule's.
func (r RuleChange) Name() string {
	if r.Present != nil {
		return r.Present.GetName()
	}
	return r.Asked.GetName()
}

func reasonOf(err error) semantics.Code {
	var failure *client.Failure
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

// Plan compares the Set with what a sidecar has, and changes nothing. tell hears how many answers have come. It is an
// error when a name belongs to another kind of entity, or when an option names a queue or topic that is neither there
// nor in the Set.
func (s *Set) Plan(ctx context.Context, api sidebusv1.AdminClient, tell func(done, of int)) (*Plan, error) {
	is := newPresent(api, tell)
	if err := is.readQueues(ctx, ""); err != nil {
		return nil, err
	}
	if err := is.readTopics(ctx, "", func(topic string) bool { return s.find(keyOf(topic)) != nil }); err != nil {
		return nil, err
	}
	usual, err := defaults(ctx)
	if err != nil {
		return nil, err
	}
	plan, compared := &Plan{}, &comparison{api: inprocess.Empty(), usual: usual}
	for key := range is.byKey {
		if s.find(key) == nil {
			plan.Others++
		}
	}
	for _, e := range s.Entities {
		if err := s.checkDestinations(e, is); err != nil {
			return nil, err
		}
		change, err := compared.change(ctx, e, is)
		switch {
		case err != nil:
			return nil, err
		case change == nil:
			plan.Unchanged++
		default:
			plan.Changes = append(plan.Changes, change)
		}
	}
	return plan, nil
}

// checkDestinations refuses an option that names an entity that does not exist. An option that is set already stays:
// its destination was deleted since.
func (s *Set) checkDestinations(e *Entity, is *present) error {
	for _, d := range e.destinations() {
		there, exists := is.byKey[keyOf(e.Resource)]
		if exists && semantics.Fold(client.Text(there.description, d.option)) == semantics.Fold(d.name) {
			continue
		}
		_, isThere := is.byKey[destinationKey(d.name)]
		if !isThere && s.find(destinationKey(d.name)) == nil {
			return e.places[d.option].Errorf(
				"is %q, and there is no such queue or topic, and the file creates none; add it to the file", d.name,
			)
		}
	}
	return nil
}

// comparison finds the differences by trying: it creates the present entities in memory and ensures the wanted ones
// there.
type comparison struct {
	api   sidebusv1.AdminClient
	usual map[semantics.Kind]client.Description
}

// change compares one entity; nil means that nothing is to be done.
func (c *comparison) change(ctx context.Context, e *Entity, is *present) (*Change, error) {
	there, isThere := is.byKey[keyOf(e.Resource)]
	if !isThere {
		return &Change{Entity: e, IsNew: true, Unusual: c.unusual(e)}, nil
	}
	if kind := client.Kind(there.resource); kind != client.Kind(e.Resource) {
		return nil, e.located(fmt.Errorf("there is a %s of this name, and queues and topics share their names; choose another name", kind))
	}
	change := &Change{Entity: e}
	var err error
	if change.Options, err = c.options(ctx, e, there.description); err != nil {
		return nil, e.located(fmt.Errorf("comparing it: %w", err))
	}
	if e.HasRules {
		rules, err := is.rules(ctx, e.Resource)
		if err != nil {
			return nil, e.located(err)
		}
		if change.Rules, err = c.rules(ctx, e, rules); err != nil {
			return nil, e.located(fmt.Errorf("comparing its rules: %w", err))
		}
	}
	if len(change.Options)+len(change.Rules) == 0 {
		return nil, nil //nolint:nilnil // nothing to change is not a failure
	}
	return change, nil
}

// unusual returns the options of an entity that are not to have their default.
func (c *comparison) unusual(e *Entity) []string {
	var all []string
	usual := c.usual[client.Kind(e.Resource)]
	for _, option := range client.OptionNames(e.Description) {
		if client.IsGiven(e.Description, option) &&
			client.OptionValue(e.Description, option) != client.OptionValue(usual, option) {
			all = append(all, option)
		}
	}
	return all
}

// options compares options. What names other entities is compared by name, since those are not in memory.
func (c *comparison) options(ctx context.Context, e *Entity, is client.Description) ([]Difference, error) {
	if topic, _ := client.TopicOf(e.Resource); topic != "" {
		if _, err := client.Ensure(ctx, c.api, topic, &sidebusv1.Topic{}); err != nil {
			return nil, err
		}
	}
	if _, err := client.Ensure(ctx, c.api, e.Resource, alone(is)); err != nil {
		return nil, err
	}
	asked := alone(e.Description)
	answer, err := client.Ensure(ctx, c.api, e.Resource, asked)
	if err != nil {
		return nil, err
	}
	var all []Difference
	for _, d := range answer.GetDifferences() {
		if !isForced(e.Description, is, d.GetOption()) {
			all = append(all, differenceOf(e, is, d))
		}
	}
	for _, option := range semantics.DestinationOptions() {
		has, _ := client.HasOption(is)(option)
		if has && client.IsGiven(e.Description, option) &&
			semantics.Fold(client.Text(is, option)) != semantics.Fold(client.Text(e.Description, option)) {
			all = append(
				all, Difference{option, client.OptionValue(is, option), client.OptionValue(e.Description, option)},
			)
		}
	}
	return all, nil
}

// alone returns a description without what is about other entities.
func alone(d client.Description) client.Description {
	d = proto.CloneOf(d)
	client.Unset(d, append([]string{"name", "rules"}, semantics.DestinationOptions()...)...)
	d.ProtoReflect().SetUnknown(nil) // options of a sidecar that is newer
	return d
}

// rules compares all rules of a subscription.
func (c *comparison) rules(ctx context.Context, e *Entity, is []*sidebusv1.Rule) ([]RuleChange, error) {
	asked := map[string]*sidebusv1.Rule{}
	for _, rule := range e.Rules() {
		asked[semantics.Fold(rule.GetName())] = rule
	}
	var changes []RuleChange
	for _, rule := range is {
		wanted := asked[semantics.Fold(rule.GetName())]
		delete(asked, semantics.Fold(rule.GetName()))
		isSame, err := false, error(nil)
		if wanted != nil {
			isSame, err = c.isSame(ctx, e.Resource, rule, wanted)
		}
		if err != nil {
			return nil, err
		}
		if !isSame {
			changes = append(changes, RuleChange{Present: rule, Asked: wanted})
		}
	}
	for _, rule := range e.Rules() {
		if asked[semantics.Fold(rule.GetName())] != nil {
			changes = append(changes, RuleChange{Asked: rule})
		}
	}
	return changes, nil
}

// isSame reports whether two rules select and change the same, apart from their names.
func (c *comparison) isSame(ctx context.Context, subscription string, one, other *sidebusv1.Rule) (bool, error) {
	path := rulePath(subscription, "compared")
	for i, rule := range []*sidebusv1.Rule{one, other} {
		rule = proto.CloneOf(rule)
		rule.Name = ""
		answer, err := c.api.EnsureRule(ctx, &sidebusv1.EnsureRuleRequest{Name: path, Rule: rule})
		if err != nil {
			return false, err
		}
		if i == 1 && len(answer.GetDifferences()) > 0 {
			_, err = c.api.DeleteRule(ctx, &sidebusv1.DeleteRuleRequest{Name: path})
			return false, err
		}
	}
	_, err := c.api.DeleteRule(ctx, &sidebusv1.DeleteRuleRequest{Name: path})
	return err == nil, err
}

// Immutable are the options that differ and that can be set at creation only (ENT-16).
func (p *Plan) Immutable() []error {
	var all []error
	for _, change := range p.Changes {
		for _, d := range change.Options {
			if semantics.Immutable(d.Option) {
				node := change.Entity.places[d.Option]
				all = append(
					all,
					node.Errorf("is %s and %s has %s; it is set at creation only, so delete the entity and apply again",
						d.Asked, change.Entity.Resource, d.Present),
				)
			}
		}
	}
	return all
}
