package storetest

import (
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Most tests of topics need one topic and two subscriptions, and these are they.
const news = "news"

var (
	eu, us         = subscription("eu"), subscription("us")
	deadEU, deadUS = deadOf(eu), deadOf(us)
)

// subscription names one of the topic news.
func subscription(name string) semantics.Source {
	return semantics.Source{Path: semantics.SubscriptionPath(news, name)}
}

func deadOf(source semantics.Source) semantics.Source {
	source.SubQueue = semantics.DeadLetterQueue
	return source
}

func failsUnmatched(o *semantics.Options) { o.FailIfUnmatched = true }

func dropsFailures(o *semantics.Options) { o.DeadLetteringOnFilterEvaluationExceptions = false }

// overflows lets a subscription have n messages, and says what happens to one more.
func overflows(n int64, to semantics.Overflow) change {
	return func(o *semantics.Options) { o.MaxMessageCount, o.Overflow = n, to }
}

// createTopic creates the topic news in the store itself, so that options may lie outside the Broker's bounds.
func (h *fixture) createTopic(changes ...change) semantics.Entity {
	h.t.Helper()
	return h.createTopicNamed(news, changes...)
}

func (h *fixture) createTopicNamed(name string, changes ...change) semantics.Entity {
	h.t.Helper()
	topic, created, err := h.Store.CreateEntity(h.t.Context(), semantics.TopicKind, name, optionsOf(changes))
	if err != nil || !created {
		h.t.Fatalf("creating the topic %q: created %v, %v", name, created, err)
	}
	return topic
}

func optionsOf(changes []change) semantics.Options {
	options := semantics.DefaultOptions()
	for _, c := range changes {
		c(&options)
	}
	return options
}

// createSubscription creates a subscription that gets every message, in the store itself as createTopic.
func (h *fixture) createSubscription(source semantics.Source, changes ...change) semantics.Entity {
	h.t.Helper()
	return h.createSubscriptionWith(source, []semantics.Rule{everything}, changes...)
}

func (h *fixture) createSubscriptionWith(source semantics.Source, rules []semantics.Rule, changes ...change) semantics.Entity {
	h.t.Helper()
	sub, created, err := h.Store.CreateSubscription(h.t.Context(), source.Path, optionsOf(changes), rules)
	if err != nil || !created {
		h.t.Fatalf("creating %s: created %v, %v", source, created, err)
	}
	return sub
}

// createNews creates the topic with both subscriptions, which get every message.
func (h *fixture) createNews(changes ...change) {
	h.t.Helper()
	h.createTopic(changes...)
	h.createSubscription(eu)
	h.createSubscription(us)
}

// onSubject is a rule for messages with a subject.
func onSubject(name, subject string) semantics.Rule {
	return semantics.Rule{Name: name, Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{Subject: &subject}}}
}

// onSQL is a rule with an SQL filter.
func onSQL(name, expression string) semantics.Rule {
	return semantics.Rule{Name: name, Filter: semantics.RuleFilter{SQL: &semantics.SQLText{Expression: expression}}}
}

// failsOnZero is a rule that selects messages with n = 1 and has no result for those with n = 0.
func failsOnZero(name string) semantics.Rule { return onSQL(name, "1 / n > 0") }

// doing adds an action to a rule.
func doing(rule semantics.Rule, action string) semantics.Rule {
	rule.Action = &semantics.SQLText{Expression: action}
	return rule
}

// always is a rule for every message.
func always(name string) semantics.Rule {
	return semantics.Rule{Name: name, Filter: semantics.RuleFilter{All: true}}
}

// never is a rule for no message.
func never(name string) semantics.Rule {
	return semantics.Rule{Name: name, Filter: semantics.RuleFilter{None: true}}
}

// about sets the subject of a message.
func about(subject string, m *semantics.Message) *semantics.Message {
	m.Subject = subject
	return m
}

// counting sets the property n of a message.
func counting(n int64, m *semantics.Message) *semantics.Message {
	m.Properties = properties{"n": semantics.Int64(n)}
	return m
}

// publish sends messages to news in one call and returns what became of each.
func (h *fixture) publish(messages ...*semantics.Message) []semantics.Stored {
	h.t.Helper()
	return h.publishBy(h.broker, messages...)
}

func (h *fixture) publishBy(broker *broker.Broker, messages ...*semantics.Message) []semantics.Stored {
	h.t.Helper()
	results, err := broker.Send(h.t.Context(), semantics.ToTopic(news), messages)
	h.ok(err)
	stored := make([]semantics.Stored, len(results))
	for i, r := range results {
		stored[i] = r.Stored
	}
	return stored
}

// publishTexts sends one text after the other to news.
func (h *fixture) publishTexts(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.publish(text(id))
	}
}

func (h *fixture) createRule(source semantics.Source, rule semantics.Rule) semantics.Rule {
	h.t.Helper()
	rule, _, err := h.broker.CreateRule(h.t.Context(), source.Path, rule)
	h.ok(err)
	return rule
}

func (h *fixture) deleteRule(source semantics.Source, name string) {
	h.t.Helper()
	h.ok(h.broker.DeleteRule(h.t.Context(), source.Path, name))
}

// rules returns all rules of a subscription.
func (h *fixture) rules(source semantics.Source) []semantics.Rule {
	h.t.Helper()
	rules, next, err := h.broker.ListRules(h.t.Context(), source.Path, 0, "")
	h.ok(err)
	h.same(next, "")
	return rules
}

func ruleNames(rules []semantics.Rule) (names []string) {
	for _, rule := range rules {
		names = append(names, rule.Name)
	}
	return names
}

// wantIDs checks the message ids of all messages of a source, in order of number.
func (h *fixture) wantIDs(source semantics.Source, want ...string) {
	h.t.Helper()
	h.same(messageIDs(h.peek(source)), want)
}

func messageIDs(messages []*semantics.Received) (ids []string) {
	for _, m := range messages {
		ids = append(ids, m.MessageID)
	}
	return ids
}

// runtimeOf counts a subscription.
func (h *fixture) runtimeOf(source semantics.Source) semantics.Runtime {
	h.t.Helper()
	r, err := h.broker.Runtime(h.t.Context(), semantics.SubscriptionKind, source.Path)
	h.ok(err)
	checkSum(h.t, r)
	r.Partitions, r.LastSequence = nil, 0
	return r
}

// topicRuntime counts news.
func (h *fixture) topicRuntime() semantics.Runtime {
	h.t.Helper()
	r, err := h.broker.Runtime(h.t.Context(), semantics.TopicKind, news)
	h.ok(err)
	r.Partitions, r.LastSequence = nil, 0
	return r
}

func (h *fixture) topic() semantics.Entity {
	h.t.Helper()
	topic, err := h.broker.GetEntity(h.t.Context(), semantics.TopicKind, news)
	h.ok(err)
	return topic
}

func (h *fixture) entityOf(source semantics.Source) semantics.Entity {
	h.t.Helper()
	sub, err := h.broker.GetEntity(h.t.Context(), semantics.SubscriptionKind, source.Path)
	h.ok(err)
	return sub
}

// updateTopic sets options of news.
func (h *fixture) updateTopic(c change, names ...string) {
	h.t.Helper()
	var options semantics.Options
	c(&options)
	h.ok(second(h.Store.UpdateEntity(h.t.Context(), semantics.TopicKind, news, options, names)))
}

func (h *fixture) updateSubscription(source semantics.Source, c change, names ...string) {
	h.t.Helper()
	var options semantics.Options
	c(&options)
	h.ok(second(h.Store.UpdateEntity(h.t.Context(), semantics.SubscriptionKind, source.Path, options, names)))
}

// hasStatus sets a status.
func hasStatus(status semantics.Status) change {
	return func(o *semantics.Options) { o.Status = status }
}

func (h *fixture) deleteTopic() {
	h.t.Helper()
	h.ok(h.broker.DeleteEntity(h.t.Context(), semantics.TopicKind, news))
}

func (h *fixture) deleteSubscription(source semantics.Source) {
	h.t.Helper()
	h.ok(h.broker.DeleteEntity(h.t.Context(), semantics.SubscriptionKind, source.Path))
}

// activate enqueues what is due in news, as a sweep does.
func (h *fixture) activate() {
	h.t.Helper()
	h.ok(h.broker.ActivateDue(h.t.Context(), news))
}

// cancelPublished cancels scheduled messages of news.
func (h *fixture) cancelPublished(numbers ...int64) error {
	return second(h.broker.CancelScheduled(h.t.Context(), semantics.ToTopic(news), numbers, nil))
}

// deadLetterFrom dead-letters messages of a subscription.
func (h *fixture) deadLetterFrom(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.DeadLetter(h.t.Context(), source, tokensOf(messages...), why("poison", "cannot be read"))
	h.settled(codes, err)
}

// acceptOf accepts a session of a subscription and returns the source of its messages.
func (h *fixture) acceptOf(source semantics.Source, id string) semantics.Source {
	h.t.Helper()
	a, err := h.broker.AcceptSession(h.t.Context(), source.Path, broker.AcceptOptions{SessionID: id})
	h.ok(err)
	return a.Source()
}

// topicSnapshot is all that can be seen of news and its subscriptions without a lock. Nothing of it may be disabled.
type topicSnapshot struct {
	Topic         semantics.Entity
	Runtime       semantics.Runtime
	Scheduled     []*semantics.Received
	Subscriptions []subscriptionSnapshot
}

type subscriptionSnapshot struct {
	Entity     semantics.Entity
	Runtime    semantics.Runtime
	Main, Dead []*semantics.Received
	Sessions   []semantics.SessionRow
	Rules      []semantics.Rule
}

func (h *fixture) topicSnapshot() topicSnapshot {
	h.t.Helper()
	s := topicSnapshot{Topic: h.topic(), Runtime: h.topicRuntime(), Scheduled: h.peek(semantics.Source{Path: news})}
	subs, _, err := h.broker.ListEntities(h.t.Context(), semantics.SubscriptionKind, news, 0, "")
	h.ok(err)
	for _, sub := range subs {
		source := semantics.Source{Path: sub.Name}
		one := subscriptionSnapshot{
			Entity: h.entityOf(source), Runtime: h.runtimeOf(source), Main: h.peek(source), Dead: h.peek(deadOf(source)), Rules: h.rules(source),
		}
		one.Entity.AccessedAt = sub.CreatedAt // the peek of an earlier snapshot has moved it
		if sub.Options.RequiresSession {
			one.Sessions, _, err = h.broker.ListSessions(h.t.Context(), sub.Name, 0, "", semantics.SessionFilter{})
			h.ok(err)
		}
		s.Subscriptions = append(s.Subscriptions, one)
	}
	s.Topic.AccessedAt = s.Topic.CreatedAt
	return s
}

// topicRefused runs a call that must fail with code and change nothing in news and its subscriptions.
func (h *fixture) topicRefused(code semantics.Code, call func() error) *semantics.Error {
	h.t.Helper()
	before := h.topicSnapshot()
	err := h.wantCode(call(), code)
	if diff := cmp.Diff(before, h.topicSnapshot(), comparing); diff != "" {
		h.t.Fatalf("a refused call changed something (-before +after):\n%s", diff)
	}
	return err
}

// refusedPublish is topicRefused for a send to news.
func (h *fixture) refusedPublish(code semantics.Code, messages ...*semantics.Message) *semantics.Error {
	h.t.Helper()
	return h.topicRefused(code, func() error {
		return second(h.broker.Send(h.t.Context(), semantics.ToTopic(news), messages))
	})
}

// madeBy returns the rules whose actions made the copies of a source, in alphabetical order; "" stands for a copy
// without.
func (h *fixture) madeBy(source semantics.Source) []string {
	h.t.Helper()
	var names []string
	for _, m := range h.peek(source) {
		name, has := m.Properties["RuleName"]
		if has && name.Type() != semantics.TypeString {
			h.t.Fatalf("the property RuleName of message %d is not a text", m.SequenceNumber)
		}
		names = append(names, name.Text())
	}
	slices.Sort(names)
	return names
}
