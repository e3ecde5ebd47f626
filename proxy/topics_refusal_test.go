package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// fromMessages are all verbs of Messages that take messages out of a source, but Peek.
func fromMessages(source, reason string) []refusal {
	now, tokens, one := &durationpb.Duration{}, []string{nobodysToken}, []int64{1}
	return []refusal{
		refuse("receive", reason, "", sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: source, MaxWait: now}),
		refuse("receive deferred", reason, "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: source, SequenceNumbers: one}),
		refuse("receive by sequence", reason, "", receivingByNumber, &sidebusv1.ReceiveBySequenceRequest{Source: source, SequenceNumbers: one}),
		refuse("complete", reason, "", sidebusv1.MessagesClient.Complete, &sidebusv1.CompleteRequest{Source: source, LockTokens: tokens}),
		refuse("abandon", reason, "", abandoning, &sidebusv1.AbandonRequest{Source: source, LockTokens: tokens}),
		refuse("defer", reason, "", deferring, &sidebusv1.DeferRequest{Source: source, LockTokens: tokens}),
		refuse("release", reason, "", sidebusv1.MessagesClient.Release, &sidebusv1.ReleaseRequest{Source: source, LockTokens: tokens}),
		refuse("dead-letter", reason, "", deadLettering, &sidebusv1.DeadLetterRequest{Source: source, LockTokens: tokens}),
		refuse("renew", reason, "", sidebusv1.MessagesClient.RenewLocks, &sidebusv1.RenewLocksRequest{Source: source, LockTokens: tokens}),
		refuse("reactivate", reason, "", reactivating, &sidebusv1.ReactivateRequest{Source: source, SequenceNumbers: one}),
		refuse("delete", reason, "", sidebusv1.MessagesClient.DeleteBySequence, &sidebusv1.DeleteBySequenceRequest{Source: source, SequenceNumbers: one}),
		refuse("purge", reason, "", purging, &sidebusv1.PurgeRequest{Source: source}),
		refuse("resubmit", reason, "", resubmitting, &sidebusv1.ResubmitRequest{Source: source}),
	}
}

// toTarget are all verbs that put messages somewhere.
func toTarget(target, reason string) []refusal {
	ask := asking(text("x"))
	ask.Target = target
	return []refusal{
		refuse("send", reason, "", sending, &sidebusv1.SendRequest{Target: target, Messages: []*sidebusv1.Message{text("x")}}),
		refuse("cancel", reason, "", cancelling, &sidebusv1.CancelScheduledRequest{Target: target, SequenceNumbers: []int64{1}}),
		refuse("cancel by id", reason, "", cancelling, &sidebusv1.CancelScheduledRequest{Target: target, MessageIds: []string{"x"}}),
		refuse("request", reason, "", requesting, ask),
	}
}

// Nothing is received from a topic and nothing sent to a subscription. One that does not exist is not found before that
// (ERR-5), and a queue is not found under the name of a topic.
func TestTOPIC_8_WrongEnd(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.openTales(t, "")
		w.put(t, text("stays"))
		wrong, none := "INVALID_OPERATION", "ENTITY_NOT_FOUND"
		for source, reason := range map[string]string{
			news: wrong, "topics/NEWS": wrong, "queues/news": wrong, "topics/none": none, "topics/orders": none, "topics/tales": none,
			"topics/none/subscriptions/eu": none, "topics/news/subscriptions/none": none, "topics/orders/subscriptions/eu": none,
		} {
			for _, r := range fromMessages(source, reason) {
				t.Run(r.name+" from "+source, func(t *testing.T) { r.check(t, w.messages) })
			}
			for _, r := range sessionCalls(source, nobodysToken, reason) {
				t.Run(r.name+" of "+source, func(t *testing.T) { r.check(t, w.sessions) })
			}
		}
		for _, source := range []string{"topics/none", "topics/orders", "topics/none/subscriptions/eu", "topics/news/subscriptions/none"} {
			refuse("peek", none, "", peeking, &sidebusv1.PeekRequest{Source: source}).check(t, w.messages)
		}
		for target, reason := range map[string]string{
			eu: wrong, "topics/none/subscriptions/eu": wrong, "topics/none": none, "topics/orders": none,
		} {
			for _, r := range toTarget(target, reason) {
				t.Run(r.name+" to "+target, func(t *testing.T) { r.check(t, w.messages) })
			}
		}
		refuse("send", none, "", sending, &sidebusv1.SendRequest{Target: "queues/news", Messages: []*sidebusv1.Message{text("x")}}).check(t, w.messages)
		w.wantIn(t, eu, "")
		w.wantIn(t, orders, "stays")
		_, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: news, MaxWait: &durationpb.Duration{}})
		if err == nil || !strings.Contains(err.Error(), "topics/news/subscriptions/{subscription}") {
			t.Errorf("it does not say what to use: %v", err)
		}
	})
}

// What cannot be, of topics, subscriptions and rules; nothing changes.
func TestTopicRefusals(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.addRule(t, eu, &sidebusv1.Rule{Name: "Red", Filter: sqlFilter("color = 'red'")})
		bad, none, filter, action := "INVALID_ARGUMENT", "ENTITY_NOT_FOUND", "FILTER_INVALID", "ACTION_INVALID"
		rule := func(name, reason, field string, r *sidebusv1.Rule) refusalBy[sidebusv1.AdminClient] {
			if r.Name == "" {
				r.Name = "new"
			}
			return refuse("rule "+name, reason, field, sidebusv1.AdminClient.CreateRule, &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: r})
		}
		subscription := func(name, reason, field string, s *sidebusv1.Subscription) refusalBy[sidebusv1.AdminClient] {
			s.Name = "new"
			return refuse("subscription "+name, reason, field, sidebusv1.AdminClient.CreateSubscription,
				&sidebusv1.CreateSubscriptionRequest{Topic: news, Subscription: s})
		}
		topic := func(name, reason, field string, d *sidebusv1.Topic) refusalBy[sidebusv1.AdminClient] {
			return refuse("topic "+name, reason, field, sidebusv1.AdminClient.EnsureTopic, &sidebusv1.EnsureTopicRequest{Name: "topics/new", Topic: d})
		}
		mask := func(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }
		sessions := &sidebusv1.Subscription{RequiresSession: proto.Bool(true)}
		refusals := []refusalBy[sidebusv1.AdminClient]{
			refuse("ENT-2 topic of a queue's name", "ENTITY_ALREADY_EXISTS", "", sidebusv1.AdminClient.CreateTopic, &sidebusv1.CreateTopicRequest{Topic: &sidebusv1.Topic{Name: "Orders"}}),
			refuse("ENT-2 ensured topic of a queue's name", "ENTITY_ALREADY_EXISTS", "", sidebusv1.AdminClient.EnsureTopic, &sidebusv1.EnsureTopicRequest{Name: "topics/orders"}),
			refuse("ENT-2 queue of a topic's name", "ENTITY_ALREADY_EXISTS", "", sidebusv1.AdminClient.EnsureQueue, &sidebusv1.EnsureQueueRequest{Name: "queues/news"}),
			refuse("topic twice", "ENTITY_ALREADY_EXISTS", "", sidebusv1.AdminClient.CreateTopic, &sidebusv1.CreateTopicRequest{Topic: &sidebusv1.Topic{Name: "NEWS"}}),
			refuse("subscription twice", "ENTITY_ALREADY_EXISTS", "", sidebusv1.AdminClient.CreateSubscription, &sidebusv1.CreateSubscriptionRequest{Topic: news, Subscription: &sidebusv1.Subscription{Name: "EU"}}),
			refuse("no topic of it", none, "", sidebusv1.AdminClient.CreateSubscription, &sidebusv1.CreateSubscriptionRequest{Topic: "topics/none", Subscription: &sidebusv1.Subscription{Name: "eu"}}),
			refuse("a queue for its topic", none, "", sidebusv1.AdminClient.EnsureSubscription, &sidebusv1.EnsureSubscriptionRequest{Name: "topics/orders/subscriptions/eu"}),
			refuse("no such topic", none, "", sidebusv1.AdminClient.GetTopic, &sidebusv1.GetTopicRequest{Name: "topics/none"}),
			refuse("a queue as a topic", none, "", sidebusv1.AdminClient.GetTopic, &sidebusv1.GetTopicRequest{Name: "topics/orders"}),
			refuse("a topic as a queue", none, "", sidebusv1.AdminClient.GetQueue, &sidebusv1.GetQueueRequest{Name: "queues/news"}),
			refuse("count no topic", none, "", sidebusv1.AdminClient.GetTopicRuntime, &sidebusv1.GetTopicRuntimeRequest{Name: "topics/none"}),
			refuse("count no subscription", none, "", sidebusv1.AdminClient.GetSubscriptionRuntime, &sidebusv1.GetSubscriptionRuntimeRequest{Name: news + "/subscriptions/none"}),
			refuse("count a topic as a queue", none, "", sidebusv1.AdminClient.GetQueueRuntime, &sidebusv1.GetQueueRuntimeRequest{Name: "queues/news"}),
			refuse("delete no topic", none, "", sidebusv1.AdminClient.DeleteTopic, &sidebusv1.DeleteTopicRequest{Name: "topics/none"}),
			refuse("delete a queue as a topic", none, "", sidebusv1.AdminClient.DeleteTopic, &sidebusv1.DeleteTopicRequest{Name: "topics/orders"}),
			refuse("delete a topic as a queue", none, "", sidebusv1.AdminClient.DeleteQueue, &sidebusv1.DeleteQueueRequest{Name: "queues/news"}),
			refuse("delete no subscription", none, "", sidebusv1.AdminClient.DeleteSubscription, &sidebusv1.DeleteSubscriptionRequest{Name: news + "/subscriptions/none"}),
			refuse("list those of no topic", none, "", sidebusv1.AdminClient.ListSubscriptions, &sidebusv1.ListSubscriptionsRequest{Topic: "topics/none"}),
			refuse("list those of a queue", none, "", sidebusv1.AdminClient.ListSubscriptions, &sidebusv1.ListSubscriptionsRequest{Topic: "topics/orders"}),
			refuse("ENT-17 page", "ARGUMENT_OUT_OF_RANGE", "pageSize", sidebusv1.AdminClient.ListTopics, &sidebusv1.ListTopicsRequest{PageSize: 101}),
			refuse("page token", bad, "pageToken", sidebusv1.AdminClient.ListSubscriptions, &sidebusv1.ListSubscriptionsRequest{Topic: news, PageToken: "*"}),
			refuse("prefix", bad, "namePrefix", sidebusv1.AdminClient.ListTopics, &sidebusv1.ListTopicsRequest{NamePrefix: "a b"}),
			refuse("page of rules", "ARGUMENT_OUT_OF_RANGE", "pageSize", sidebusv1.AdminClient.ListRules, &sidebusv1.ListRulesRequest{Subscription: eu, PageSize: -1}),

			topic("ENT-11 of no size", "ARGUMENT_OUT_OF_RANGE", "maxSizeInMegabytes", &sidebusv1.Topic{MaxSizeInMegabytes: proto.Int32(0)}),
			topic("of two names", bad, "name", &sidebusv1.Topic{Name: "newer"}),
			refuse("topic of no name", bad, "name", sidebusv1.AdminClient.CreateTopic, &sidebusv1.CreateTopicRequest{Topic: &sidebusv1.Topic{}}),
			refuse("topic: nothing to update", bad, "updateMask", sidebusv1.AdminClient.UpdateTopic, &sidebusv1.UpdateTopicRequest{Name: news}),
			refuse("topic: option of a queue", bad, "lockDuration", sidebusv1.AdminClient.UpdateTopic, &sidebusv1.UpdateTopicRequest{Name: news, UpdateMask: mask("lockDuration")}),
			refuse("topic: immutable", "PROPERTY_IMMUTABLE", "enablePartitioning", sidebusv1.AdminClient.UpdateTopic, &sidebusv1.UpdateTopicRequest{Name: news, Topic: &sidebusv1.Topic{EnablePartitioning: proto.Bool(true)}}),
			refuse("update no topic", none, "", sidebusv1.AdminClient.UpdateTopic, &sidebusv1.UpdateTopicRequest{Name: "topics/none", Topic: &sidebusv1.Topic{UserMetadata: proto.String("x")}}),

			subscription("ENT-11 of short locks", "ARGUMENT_OUT_OF_RANGE", "lockDuration", &sidebusv1.Subscription{LockDuration: durationpb.New(1)}),
			subscription("with a bad rule", filter, "filter", &sidebusv1.Subscription{Rules: []*sidebusv1.Rule{{Name: "r", Filter: sqlFilter("a =")}}}),
			subscription("with two rules of one name", bad, "rules", &sidebusv1.Subscription{Rules: []*sidebusv1.Rule{{Name: "r", Filter: allFilter()}, {Name: "R", Filter: allFilter()}}}),
			subscription("with a rule of no name", bad, "rule", &sidebusv1.Subscription{Rules: []*sidebusv1.Rule{{Filter: allFilter()}}}),
			refuse("subscription of two names", bad, "name", sidebusv1.AdminClient.EnsureSubscription, &sidebusv1.EnsureSubscriptionRequest{Name: eu, Subscription: &sidebusv1.Subscription{Name: "us"}}),
			refuse("subscription: nothing to update", bad, "updateMask", sidebusv1.AdminClient.UpdateSubscription, &sidebusv1.UpdateSubscriptionRequest{Name: eu}),
			refuse("subscription: option of a topic", bad, "supportOrdering", sidebusv1.AdminClient.UpdateSubscription, &sidebusv1.UpdateSubscriptionRequest{Name: eu, UpdateMask: mask("supportOrdering")}),
			refuse("subscription: immutable", "PROPERTY_IMMUTABLE", "requiresSession", sidebusv1.AdminClient.UpdateSubscription, &sidebusv1.UpdateSubscriptionRequest{Name: eu, Subscription: sessions}),
			refuse("subscription: rules", bad, "rules", sidebusv1.AdminClient.UpdateSubscription, &sidebusv1.UpdateSubscriptionRequest{Name: eu, Subscription: &sidebusv1.Subscription{Rules: []*sidebusv1.Rule{{Name: "r", Filter: allFilter()}}}}),
			refuse("subscription: masked rules", bad, "rules", sidebusv1.AdminClient.UpdateSubscription, &sidebusv1.UpdateSubscriptionRequest{Name: eu, UpdateMask: mask("rules")}),

			rule("RULE-3 twice", "RULE_ALREADY_EXISTS", "", &sidebusv1.Rule{Name: "RED", Filter: allFilter()}),
			rule("of no filter", filter, "filter", &sidebusv1.Rule{}),
			rule("of an empty filter", filter, "filter", &sidebusv1.Rule{Filter: &sidebusv1.Rule_Filter{}}),
			rule("RULE-7 of bad SQL", filter, "filter", &sidebusv1.Rule{Filter: sqlFilter("color = ")}),
			rule("SQL-4 of no such property", filter, "filter", &sidebusv1.Rule{Filter: sqlFilter("sys.Nothing = 1")}),
			rule("SQL-16 of no such parameter", filter, "filter", &sidebusv1.Rule{Filter: sqlFilter("a = @b")}),
			rule("RULE-4 of long SQL", filter, "filter", &sidebusv1.Rule{Filter: sqlFilter("a = '" + strings.Repeat("x", 1024) + "'")}),
			rule("CORR-1 of an empty correlation", filter, "filter", &sidebusv1.Rule{Filter: correlationFilter(&sidebusv1.Rule_Correlation{})}),
			rule("of a bad property", bad, "filter.correlation.properties[p]", &sidebusv1.Rule{Filter: correlationFilter(&sidebusv1.Rule_Correlation{
				Properties: map[string]*sidebusv1.Value{"p": {Kind: &sidebusv1.Value_ByteValue{ByteValue: 256}}},
			})}),
			rule("RULE-7 of a bad action", action, "action", &sidebusv1.Rule{Filter: allFilter(), Action: sqlAction("SET")}),
			rule("ACT-3 of an action on what is the broker's", action, "action", &sidebusv1.Rule{Filter: allFilter(), Action: sqlAction("SET sys.SequenceNumber = 1")}),
			rule("of an empty action", action, "action", &sidebusv1.Rule{Filter: allFilter(), Action: &sidebusv1.Rule_Action{}}),
			refuse("rule of no subscription", none, "", sidebusv1.AdminClient.CreateRule, &sidebusv1.CreateRuleRequest{Subscription: news + "/subscriptions/none", Rule: &sidebusv1.Rule{Name: "r", Filter: allFilter()}}),
			refuse("rule of no topic", none, "", sidebusv1.AdminClient.EnsureRule, &sidebusv1.EnsureRuleRequest{Name: "topics/none/subscriptions/eu/rules/r", Rule: &sidebusv1.Rule{Filter: allFilter()}}),
			refuse("rule of two names", bad, "name", sidebusv1.AdminClient.EnsureRule, &sidebusv1.EnsureRuleRequest{Name: eu + "/rules/r", Rule: &sidebusv1.Rule{Name: "s", Filter: allFilter()}}),
			refuse("ensured rule of bad SQL", filter, "filter", sidebusv1.AdminClient.EnsureRule, &sidebusv1.EnsureRuleRequest{Name: eu + "/rules/red", Rule: &sidebusv1.Rule{Filter: sqlFilter("(")}}),
			refuse("no such rule", "RULE_NOT_FOUND", "", sidebusv1.AdminClient.GetRule, &sidebusv1.GetRuleRequest{Name: eu + "/rules/none"}),
			refuse("delete no rule", "RULE_NOT_FOUND", "", sidebusv1.AdminClient.DeleteRule, &sidebusv1.DeleteRuleRequest{Name: eu + "/rules/none"}),
			refuse("list those of no subscription", none, "", sidebusv1.AdminClient.ListRules, &sidebusv1.ListRulesRequest{Subscription: news + "/subscriptions/none"}),
		}
		before := w.topicPicture(t)
		for _, r := range refusals {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.admin) })
		}
		if after := w.topicPicture(t); after != before {
			t.Errorf("something changed: before\n%s\nafter\n%s", before, after)
		}
	})
}

// topicPicture is what can be seen of all topics, subscriptions and rules.
func (w *wire) topicPicture(t *testing.T) string {
	t.Helper()
	all := ""
	for _, path := range []string{"/v1/queues", "/v1/topics", "/v1/topics/news/subscriptions", "/v1/topics/news/subscriptions/eu/rules"} {
		all += w.call(t, http.MethodGet, path, "").body + "\n"
	}
	return all
}

// The error of a filter names the column.
func TestRULE_7_Column(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		for _, rule := range []*sidebusv1.Rule{
			{Name: "r", Filter: sqlFilter("color = ?")}, {Name: "r", Filter: allFilter(), Action: sqlAction("SET a = ?")},
		} {
			_, err := w.admin.CreateRule(t.Context(), &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: rule})
			if err == nil || !strings.Contains(err.Error(), "column 9") {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Only gRPC can carry a resource name of another kind and an unknown field.
func TestGRPCTopicRefusals(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		if w.admin != w.sidecar.admin {
			return
		}
		w.openNews(t)
		bad := "INVALID_ARGUMENT"
		unknown := unknownField(&sidebusv1.Rule{Name: "r", Filter: allFilter()})
		unknownFilter := &sidebusv1.Rule{Name: "r", Filter: unknownField(allFilter())}
		unknownAction := &sidebusv1.Rule{Name: "r", Filter: allFilter(), Action: &sidebusv1.Rule_Action{Sql: unknownField(&sidebusv1.Rule_Sql{Expression: "SET a = 1"})}}
		for _, r := range []refusalBy[sidebusv1.AdminClient]{
			refuse("a topic for a queue", bad, "name", sidebusv1.AdminClient.GetQueue, &sidebusv1.GetQueueRequest{Name: news}),
			refuse("a queue for a topic", bad, "name", sidebusv1.AdminClient.GetTopic, &sidebusv1.GetTopicRequest{Name: orders}),
			refuse("a subscription for a topic", bad, "name", sidebusv1.AdminClient.DeleteTopic, &sidebusv1.DeleteTopicRequest{Name: eu}),
			refuse("a topic for a subscription", bad, "name", sidebusv1.AdminClient.DeleteSubscription, &sidebusv1.DeleteSubscriptionRequest{Name: news}),
			refuse("a subscription for a rule", bad, "name", sidebusv1.AdminClient.DeleteRule, &sidebusv1.DeleteRuleRequest{Name: eu}),
			refuse("a rule of a topic", bad, "name", sidebusv1.AdminClient.GetRule, &sidebusv1.GetRuleRequest{Name: news + "/rules/r"}),
			refuse("a rule for a subscription", bad, "name", sidebusv1.AdminClient.GetSubscription, &sidebusv1.GetSubscriptionRequest{Name: eu + "/rules/r"}),
			refuse("bare names", bad, "name", sidebusv1.AdminClient.GetTopic, &sidebusv1.GetTopicRequest{Name: "news"}),
			refuse("rules of a topic", bad, "subscription", sidebusv1.AdminClient.ListRules, &sidebusv1.ListRulesRequest{Subscription: news}),
			refuse("rule of a topic", bad, "subscription", sidebusv1.AdminClient.CreateRule, &sidebusv1.CreateRuleRequest{Subscription: news, Rule: &sidebusv1.Rule{}}),
			refuse("subscription of a queue", bad, "topic", sidebusv1.AdminClient.CreateSubscription, &sidebusv1.CreateSubscriptionRequest{Topic: orders}),
			refuse("subscriptions of a queue", bad, "topic", sidebusv1.AdminClient.ListSubscriptions, &sidebusv1.ListSubscriptionsRequest{Topic: orders}),
			refuse("subscription of no name", bad, "subscription", sidebusv1.AdminClient.CreateSubscription, &sidebusv1.CreateSubscriptionRequest{Topic: news}),
			refuse("unknown request", bad, "request", sidebusv1.AdminClient.GetTopic, unknownField(&sidebusv1.GetTopicRequest{Name: news})),
			refuse("unknown list", bad, "request", sidebusv1.AdminClient.ListRules, unknownField(&sidebusv1.ListRulesRequest{Subscription: eu})),
			refuse("unknown option of a topic", bad, "topic", sidebusv1.AdminClient.EnsureTopic, &sidebusv1.EnsureTopicRequest{Name: news, Topic: unknownField(&sidebusv1.Topic{})}),
			refuse("unknown option of a subscription", bad, "subscription", sidebusv1.AdminClient.EnsureSubscription, &sidebusv1.EnsureSubscriptionRequest{Name: eu, Subscription: unknownField(&sidebusv1.Subscription{})}),
			refuse("unknown part of a rule", bad, "rule", sidebusv1.AdminClient.CreateRule, &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: unknown}),
			refuse("unknown filter", bad, "filter", sidebusv1.AdminClient.CreateRule, &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: unknownFilter}),
			refuse("unknown part of an action", bad, "action.sql", sidebusv1.AdminClient.CreateRule, &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: unknownAction}),
			refuse("a status of queues", bad, "status", sidebusv1.AdminClient.EnsureTopic, &sidebusv1.EnsureTopicRequest{Name: "topics/new", Topic: &sidebusv1.Topic{Status: sidebusv1.Topic_Status(3).Enum()}}),
			refuse("a status of topics", bad, "status", sidebusv1.AdminClient.EnsureSubscription, &sidebusv1.EnsureSubscriptionRequest{Name: eu, Subscription: &sidebusv1.Subscription{Status: sidebusv1.Subscription_Status(2).Enum()}}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.admin) })
		}
		path := refuse("a subscription for a queue", bad, "name", sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: "queues/news/Subscriptions/eu"})
		path.check(t, w.messages)
	})
}

// What JSON can get wrong.
func TestHTTPTopicRefusals(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		if w.admin == w.sidecar.admin {
			return
		}
		w.openNews(t)
		const ofEU, bad = "/v1/topics/news/subscriptions/eu", "INVALID_ARGUMENT"
		for _, c := range []struct {
			method, path, body string
			status             int
			reason, field      string
		}{
			{"PUT", "/v1/topics/new", `{"lockDuration":"30s"}`, 400, bad, "lockDuration"},
			{"PUT", "/v1/topics/new", `{"status":"RECEIVE_DISABLED"}`, 400, bad, "status"},
			{"PUT", ofEU, `{"status":"SEND_DISABLED"}`, 400, bad, "status"},
			{"PUT", ofEU, `{"overflow":"drop_oldest"}`, 400, bad, "overflow"},
			{"PUT", ofEU, `{"rules":{}}`, 400, bad, "rules"},
			{"PUT", ofEU, `{"rules":[{"name":"r","filter":{"sql":"1=1"}}]}`, 400, bad, "rules[0].filter.sql"},
			{"PATCH", ofEU, `{"rules":[]}`, 400, bad, "rules"},
			{"PATCH", ofEU, `{"maxSizeInMegabytes":5}`, 400, bad, "maxSizeInMegabytes"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":{"all":{},"none":{}}}`, 400, bad, "filter.none"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":{"label":"x"}}`, 400, bad, "filter.label"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":{"correlation":{"label":"x"}}}`, 400, bad, "filter.correlation.label"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":{"correlation":{"properties":{"p":[1]}}}}`, 400, bad, "filter.correlation.properties[p]"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":{"sql":{"expression":"a = @p","parameters":{"p":{"type":"odd","value":1}}}}}`, 400, bad, "filter.sql.parameters[p]"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":{"all":{}},"action":"SET a = 1"}`, 400, bad, "action"},
			{"POST", ofEU + "/rules", `{"name":"r","filter":null}`, 400, "FILTER_INVALID", "filter"},
			{"POST", ofEU + "/rules", ``, 400, bad, "rule"},
			{"PATCH", ofEU + "/rules/$Default", `{"filter":{"all":{}}}`, 405, "ROUTE_NOT_FOUND", ""},
			{"POST", ofEU, `{}`, 405, "ROUTE_NOT_FOUND", ""},
			{"GET", "/v1/topics?prefix=x", ``, 400, bad, "prefix"},
			{"GET", "/v1/topics/news?pageSize=5", ``, 400, bad, "pageSize"},
			{"GET", ofEU + "/rules?namePrefix=x", ``, 400, bad, "namePrefix"},
			{"GET", "/v1/topics/news/subscriptions/sessions?updatedSince=2026-01-01T00:00:00Z", ``, 400, bad, "updatedSince"},
			{"GET", ofEU + "/sessions?updatedSince=today", ``, 400, bad, "updatedSince"},
			{"GET", ofEU + "/runtime?pageSize=5", ``, 400, bad, "pageSize"},
			{"GET", "/v1/topics/news/rules", ``, 404, "ROUTE_NOT_FOUND", ""},
			{"GET", "/v1/topics/news/subscriptions/eu/subscriptions", ``, 404, "ROUTE_NOT_FOUND", ""},
			{"GET", "/v1/topics/news%2Fsubscriptions%2Feu", ``, 400, bad, "name"},
		} {
			a := w.call(t, c.method, c.path, c.body)
			if reason, field := a.reason(t); a.status != c.status || reason != c.reason || field != c.field {
				t.Errorf("%s %s %s: got %d %s, want %d %s %q", c.method, c.path, c.body, a.status, a.body, c.status, c.reason, c.field)
			}
		}
	})
}
