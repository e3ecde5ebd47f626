package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// routeReader is the part of a Store that has the rules of topics.
type routeReader interface {
	Routes(ctx context.Context, topic string) (semantics.Routes, error)
}

// fanout decides which subscriptions get a copy of what is sent to a topic. It keeps the routes of topics as they were
// when they were last read; the store says when they hold no more, also after it came back older than it was: a version
// never comes again.
type fanout struct {
	store   routeReader
	compile semantics.CompileRule

	mu    sync.Mutex
	known map[string]*router // by folded path of the topic
}

// mostRouters bounds the topics whose routes are kept.
const mostRouters = 1000

// router is the routes of a topic, ready for use. It is immutable.
type router struct {
	version        int64
	routes         []compiledRoute
	keepsUnmatched bool
}

type compiledRoute struct {
	semantics.Route
	rules []semantics.CompiledRule
}

// routes returns the router of a topic: the one that is known, unless it is stale.
func (f *fanout) routes(ctx context.Context, topic string, stale *router) (*router, error) {
	name := semantics.Fold(topic)
	f.mu.Lock()
	known := f.known[name]
	f.mu.Unlock()
	if known != nil && known != stale {
		return known, nil
	}
	routes, err := f.store.Routes(ctx, topic)
	if err != nil {
		return nil, err
	}
	read, err := f.compileRoutes(routes)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= mostRouters {
		clear(f.known) // they are read again when they are needed
	}
	f.known[name] = read
	return read, nil
}

func (f *fanout) forget(topic string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, semantics.Fold(topic))
}

func (f *fanout) compileRoutes(routes semantics.Routes) (*router, error) {
	r := &router{
		version: routes.Version, routes: make([]compiledRoute, len(routes.Subscriptions)),
		keepsUnmatched: routes.KeepsUnmatched,
	}
	for i, route := range routes.Subscriptions {
		r.routes[i].Route = route
		for _, rule := range route.Rules {
			compiled, err := f.compile(rule)
			if err != nil { // it was valid when it was made
				return nil, &semantics.Error{Code: semantics.Internal, Message: "a stored rule is not valid", Err: err}
			}
			r.routes[i].rules = append(r.routes[i].rules, compiled)
		}
	}
	return r, nil
}

// try lets do work with the routes of a topic, again for as long as they change meanwhile.
func (f *fanout) try(ctx context.Context, topic string, do func(*router) error) error {
	var stale *router
	for {
		r, err := f.routes(ctx, topic, stale)
		if err != nil {
			return err
		}
		if err = do(r); !errors.Is(err, semantics.ErrRoutesChanged) {
			if semantics.CodeOf(err) == semantics.EntityNotFound {
				f.forget(topic)
			}
			return err
		}
		if ctx.Err() != nil {
			return semantics.CancelledBy(ctx)
		}
		stale = r
	}
}

// publications decides about the copies of messages. Beyond MaxCopies it leaves the rest without any, so that memory
// does not fill with them: the store refuses such a call, if these routes still hold.
func (r *router) publications(messages []*semantics.Message) []semantics.Publication {
	publications, atOnce := make([]semantics.Publication, len(messages)), 0
	for i, m := range messages {
		publications[i].Message = m
		if atOnce > semantics.MaxCopies {
			continue
		}
		publications[i].Copies = r.copies(m) // by the store's clock it may be due, whatever its ScheduledAt
		if m.ScheduledAt.IsZero() {
			atOnce += len(publications[i].Copies)
		}
	}
	return publications
}

// mostCopies is about the most copies that one message can make: one for each subscription and each action.
func (r *router) mostCopies() int {
	n := 1 // UnmatchedSubscription
	for _, route := range r.routes {
		n++
		for _, rule := range route.rules {
			if rule.HasAction() {
				n++
			}
		}
	}
	return n
}

func (r *router) copies(m *semantics.Message) []semantics.Copy {
	var copies []semantics.Copy
	budget := semantics.NewBudget()
	for i := range r.routes {
		copies = r.routes[i].appendCopies(copies, m, budget)
	}
	if len(copies) == 0 && r.keepsUnmatched {
		return []semantics.Copy{{Subscription: semantics.UnmatchedSubscription, Message: m}}
	}
	return slices.Clip(copies)
}

// appendCopies adds what one subscription gets: one copy for all rules without action that match, and one for each rule
// with an action that matches (TOPIC-5). A failure makes one dead letter, however many rules fail (RULE-8).
func (c *compiledRoute) appendCopies(
	copies []semantics.Copy, m *semantics.Message, budget *semantics.Budget,
) []semantics.Copy {
	var failed error
	isPlain := false
	for _, rule := range c.rules {
		if isPlain && !rule.HasAction() && !c.DeadLettersFailures {
			continue // its copy is stored, and failures are not reported
		}
		matches, err := rule.Matches(m, budget)
		switch {
		case err != nil:
			failed = cmp.Or(failed, err) // one dead letter has one failure
		case !matches, isPlain && !rule.HasAction(): // its copy is there
		case !rule.HasAction():
			isPlain = true
			copies = append(copies, c.copyOf(m))
		default:
			changed, err := rule.Act(m)
			if err != nil {
				failed = cmp.Or(failed, err)
				continue
			}
			copies = append(copies, c.changedCopy(changed))
		}
	}
	if failed != nil && c.DeadLettersFailures {
		copies = append(copies, c.deadLetter(m, semantics.ReasonFilterFailed, failed.Error()))
	}
	return copies
}

// copyOf is a copy, or a dead letter when the subscription cannot have it as it is.
func (c *compiledRoute) copyOf(m *semantics.Message) semantics.Copy {
	if c.RequiresSession && m.SessionID == "" {
		return c.deadLetter(m, semantics.ReasonNoSession, "the subscription requires a session id")
	}
	return semantics.Copy{Subscription: c.Subscription, Message: m}
}

// changedCopy is copyOf for what an action made, which may have grown too large (ACT-9).
func (c *compiledRoute) changedCopy(m *semantics.Message) semantics.Copy {
	keepTexts(m)
	if err := m.CheckHeaders(); err != nil {
		return c.deadLetter(
			m, semantics.ReasonHeaderSize, "an action made too much of it: "+semantics.AsError(err).Message,
		)
	}
	return c.copyOf(m)
}

// keepTexts removes from Forwarded each dead-letter text that an action has changed.
func keepTexts(m *semantics.Message) {
	if m.Forwarded == nil {
		return
	}
	kept := *m.Forwarded
	for property, text := range map[string]**string{
		semantics.PropertyDeadLetterReason:      &kept.Reason,
		semantics.PropertyDeadLetterDescription: &kept.Description,
	} {
		if *text != nil && m.Properties[property] != semantics.String(**text) {
			*text = nil
		}
	}
	m.Forwarded = &kept
}

func (c *compiledRoute) deadLetter(m *semantics.Message, reason, description string) semantics.Copy {
	return semantics.Copy{
		Subscription: c.Subscription,
		Message:      m,
		DeadLetter:   &semantics.DeadLetterTexts{Reason: &reason, Description: &description},
	}
}
