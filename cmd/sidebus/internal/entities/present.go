package entities

import (
	"context"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// present is what a sidecar has.
type present struct {
	api  sidebusv1.AdminClient
	tell func(done, of int)

	byKey map[string]found
	order []string // of the keys: queues, then each topic with its subscriptions, by name
	looks int
	of    int // answers that are expected as far as is known
}

// found is an entity with all its options.
type found struct {
	resource    string
	description client.Description
}

func newPresent(api sidebusv1.AdminClient, tell func(done, of int)) *present {
	return &present{api: api, tell: tell, byKey: map[string]found{}}
}

func (p *present) add(resource string, d client.Description) {
	key := keyOf(resource)
	p.byKey[key] = found{resource, d}
	p.order = append(p.order, key)
}

// looked counts an answer, for who wants to know how far it is.
func (p *present) looked() {
	p.looks++
	p.tell(p.looks, p.of)
}

func (p *present) readQueues(ctx context.Context, prefix string) error {
	queues, err := client.Queues(ctx, p.api, prefix)
	for _, q := range queues {
		p.add("queues/"+q.GetName(), q)
	}
	p.looked()
	return err
}

// readTopics reads topics, and of those that are wanted the subscriptions.
func (p *present) readTopics(ctx context.Context, prefix string, isWanted func(resource string) bool) error {
	topics, err := client.Topics(ctx, p.api, prefix)
	if err != nil {
		return err
	}
	p.of = p.looks + 1 + len(topics)
	p.looked()
	for _, t := range topics {
		resource := "topics/" + t.GetName()
		p.add(resource, t)
		if !isWanted(resource) {
			continue
		}
		subscriptions, err := client.Subscriptions(ctx, p.api, resource, "")
		if err != nil && !isGone(err) { // a topic that was deleted just now has none
			return err
		}
		for _, s := range subscriptions {
			p.add(client.Subscription(resource, s.GetName()), s)
		}
		p.looked()
	}
	return nil
}

func (p *present) rules(ctx context.Context, subscription string) ([]*sidebusv1.Rule, error) {
	rules, err := client.Rules(ctx, p.api, subscription)
	p.looked()
	return rules, err
}

func isGone(err error) bool { return reasonOf(err) == semantics.EntityNotFound }
