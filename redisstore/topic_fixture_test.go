package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// allOrNone is a rule for every message or for none, and all that these tests need of rules.
type allOrNone struct{ semantics.Rule }

func (r allOrNone) Matches(*semantics.Message, *semantics.Budget) (bool, error) {
	return r.Filter.All, nil
}
func (r allOrNone) HasAction() bool                                      { return false }
func (r allOrNone) Act(m *semantics.Message) (*semantics.Message, error) { return m, nil }
func (r allOrNone) Warnings() []string                                   { return nil }
func compileAllOrNone(rule semantics.Rule) (semantics.CompiledRule, error) {
	return allOrNone{rule}, nil
}

func brokerOver(s semantics.Store) *broker.Broker {
	return broker.New(s, broker.WithRules(compileAllOrNone))
}

var everything = semantics.Rule{Name: semantics.DefaultRule, Filter: semantics.RuleFilter{All: true}}

// topics is a store with the topic news, on a clock that the test moves.
type topics struct {
	*swept
	t     *testing.T
	clock *storetest.Clock
}

func openTopics(t *testing.T, changes ...func(*semantics.Options)) *topics {
	t.Helper()
	clock := storetest.NewClock()
	s := &topics{t: t, clock: clock, swept: openSwept(t, redisstore.Options{Now: clock.Now})}
	s.fails("create", createTopic(t, s.Store, changes...))
	return s
}

func createTopic(t testing.TB, s semantics.Store, changes ...func(*semantics.Options)) error {
	t.Helper()
	options := semantics.DefaultOptions()
	for _, change := range changes {
		change(&options)
	}
	_, _, err := s.CreateEntity(t.Context(), semantics.TopicKind, "news", options)
	return err
}

func subscribe(t testing.TB, s semantics.Store, name string, changes ...func(*semantics.Options)) error {
	t.Helper()
	options := semantics.DefaultOptions()
	for _, change := range changes {
		change(&options)
	}
	_, _, err := s.CreateSubscription(t.Context(), of(name).Path, options, []semantics.Rule{everything})
	return err
}

// of is a subscription of news.
func of(name string) semantics.Source {
	return semantics.Source{Path: semantics.SubscriptionPath("news", name)}
}

// fails ends the test when a call failed that must not.
func (s *topics) fails(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

func (s *topics) subscribe(name string, changes ...func(*semantics.Options)) {
	s.t.Helper()
	s.fails("subscribe", subscribe(s.t, s.Store, name, changes...))
}

// publish sends a message whose copies are decided already.
func (s *topics) publish(m *semantics.Message, copies ...semantics.Copy) semantics.SendOutcome {
	s.t.Helper()
	return publish(s.t, s.Store, semantics.Publication{Message: m, Copies: copies})
}

func publish(t testing.TB, s semantics.Store, publications ...semantics.Publication) semantics.SendOutcome {
	t.Helper()
	routes, err := s.Routes(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	return s.Publish(t.Context(), "news", routes.Version, [][]semantics.Publication{publications})[0]
}

// copiesOf are copies of a message for some subscriptions.
func copiesOf(m *semantics.Message, names ...string) []semantics.Copy {
	copies := make([]semantics.Copy, len(names))
	for i, name := range names {
		copies[i] = semantics.Copy{Subscription: name, Message: m}
	}
	return copies
}

// audit checks that all that is kept of the topic and its subscriptions fits together.
func (s *topics) audit() {
	s.t.Helper()
	s.fails("audit", audit.New(s.raw, s.namespace).Audit(s.t.Context(), "news"))
}
