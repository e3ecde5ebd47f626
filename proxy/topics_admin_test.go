package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// made takes the times out of what describes an entity.
func made[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	for _, name := range []string{"created_at", "updated_at", "accessed_at"} {
		if field := m.ProtoReflect().Descriptor().Fields().ByTextName(name); field != nil {
			if !m.ProtoReflect().Has(field) {
				t.Errorf("there is no %s in %v", name, m)
			}
			m.ProtoReflect().Clear(field)
		}
	}
	return m
}

func wantProto(t *testing.T, what string, want, got proto.Message) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// defaultTopic is a topic as it is without any option.
func defaultTopic(name string) *sidebusv1.Topic {
	return &sidebusv1.Topic{
		Name: name, MaxSizeInMegabytes: proto.Int32(1024), MaxMessageSizeInKilobytes: proto.Int32(256), Status: sidebusv1.Topic_ACTIVE.Enum(),
		UserMetadata: proto.String(""), EnableBatchedOperations: proto.Bool(true), RequiresDuplicateDetection: proto.Bool(false),
		DuplicateDetectionHistoryTimeWindow: durationpb.New(10 * time.Minute), DuplicateHistoryMaxEntries: proto.Int64(1_000_000),
		ForgetOnCancel: proto.Bool(false), EnablePartitioning: proto.Bool(false), SupportOrdering: proto.Bool(true),
		FailIfUnmatched: proto.Bool(false), AutoDeleteKeepsDeadLetters: proto.Bool(false), Partitions: proto.Int32(1),
		Durability: sidebusv1.Queue_SIDECAR.Enum(),
	}
}

// defaultSubscription is a subscription as it is without any option.
func defaultSubscription(name string) *sidebusv1.Subscription {
	return &sidebusv1.Subscription{
		Name: name, LockDuration: durationpb.New(time.Minute), DeadLetteringOnMessageExpiration: proto.Bool(false),
		DeadLetteringOnFilterEvaluationExceptions: proto.Bool(true), MaxDeliveryCount: proto.Int32(10),
		Overflow: sidebusv1.Subscription_REJECT.Enum(), Status: sidebusv1.Subscription_ACTIVE.Enum(), UserMetadata: proto.String(""),
		EnableBatchedOperations: proto.Bool(true), RedeliveryDelay: durationpb.New(0), ExpireDeferred: proto.Bool(false),
		RequiresSession: proto.Bool(false), SessionInFlight: proto.Int32(100), OnDisconnect: sidebusv1.Queue_EXPIRE.Enum(),
		SessionExpiryMode: sidebusv1.Queue_MESSAGE.Enum(), SessionOnDeadLetter: sidebusv1.Queue_CONTINUE.Enum(),
		AcceptNext: sidebusv1.Queue_ALLOWED.Enum(), AutoDeleteKeepsDeadLetters: proto.Bool(false),
		Durability: sidebusv1.Queue_SIDECAR.Enum(),
	}
}

func TestENT_6_Topics(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		first, err := w.admin.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{Name: "topics/News"})
		if err != nil || !first.GetCreated() || len(first.GetDifferences()) > 0 {
			t.Fatalf("got %v, %v", first, err)
		}
		wantProto(t, "made", defaultTopic("News"), made(t, first.GetResource()))
		again, err := w.admin.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{Name: news, Topic: &sidebusv1.Topic{
			Name: "news", Status: sidebusv1.Topic_SEND_DISABLED.Enum(), FailIfUnmatched: proto.Bool(true), MaxSizeInMegabytes: proto.Int32(1024),
		}})
		if err != nil || again.GetCreated() || len(again.GetDifferences()) != 2 {
			t.Fatalf("got %v, %v", again, err)
		}
		wantProto(t, "status", &sidebusv1.Difference{Option: "status", Present: "ACTIVE", Asked: "SEND_DISABLED"}, again.GetDifferences()[0])
		wantProto(t, "unmatched", &sidebusv1.Difference{Option: "failIfUnmatched", Present: "false", Asked: "true"}, again.GetDifferences()[1])

		full := defaultTopic("full")
		full.DefaultMessageTimeToLive, full.Status, full.MaxSizeInMegabytes = durationpb.New(time.Hour), sidebusv1.Topic_DISABLED.Enum(), proto.Int32(5)
		full.RequiresDuplicateDetection, full.SupportOrdering, full.UserMetadata = proto.Bool(true), proto.Bool(false), proto.String("é")
		created, err := w.admin.CreateTopic(ctx, &sidebusv1.CreateTopicRequest{Topic: full})
		if err != nil {
			t.Fatal(err)
		}
		wantProto(t, "created", full, made(t, created))
		updated, err := w.admin.UpdateTopic(ctx, &sidebusv1.UpdateTopicRequest{
			Name: "topics/full", Topic: &sidebusv1.Topic{Status: sidebusv1.Topic_ACTIVE.Enum()},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"status", "user_metadata", "defaultMessageTimeToLive"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		full.Status, full.UserMetadata, full.DefaultMessageTimeToLive = sidebusv1.Topic_ACTIVE.Enum(), proto.String(""), nil
		wantProto(t, "updated", full, made(t, updated))
		got, err := w.admin.GetTopic(ctx, &sidebusv1.GetTopicRequest{Name: "topics/FULL"})
		if err != nil {
			t.Fatal(err)
		}
		wantProto(t, "read", full, made(t, got))
		if _, err := w.admin.DeleteTopic(ctx, &sidebusv1.DeleteTopicRequest{Name: "topics/full"}); err != nil {
			t.Error(err)
		}
		if _, err := w.admin.GetTopic(ctx, &sidebusv1.GetTopicRequest{Name: "topics/full"}); reasonOf(t, err) != "ENTITY_NOT_FOUND" {
			t.Errorf("got %v", err)
		}
	})
}

func TestENT_6_Subscriptions(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		mustPut(t, w.sidecar, "/v1/topics/news", `{}`)
		first, err := w.admin.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: "topics/news/subscriptions/Eu"})
		if err != nil || !first.GetCreated() {
			t.Fatalf("got %v, %v", first, err)
		}
		wantProto(t, "made", defaultSubscription("Eu"), made(t, first.GetResource()))
		again, err := w.admin.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: eu, Subscription: &sidebusv1.Subscription{
			Name: "eu", Overflow: sidebusv1.Subscription_DROP_OLDEST.Enum(),
		}})
		if err != nil || again.GetCreated() || len(again.GetDifferences()) != 1 || again.GetDifferences()[0].GetAsked() != "DROP_OLDEST" {
			t.Fatalf("got %v, %v", again, err)
		}

		full := defaultSubscription("full")
		full.DefaultMessageTimeToLive, full.DeadLetterTtl, full.SessionStateTtl = durationpb.New(time.Hour), durationpb.New(time.Minute), durationpb.New(time.Second)
		full.MaxMessageCount, full.Overflow = proto.Int64(1<<40), sidebusv1.Subscription_DEAD_LETTER.Enum()
		full.RequiresSession, full.SessionInFlight, full.Status = proto.Bool(true), proto.Int32(3), sidebusv1.Subscription_RECEIVE_DISABLED.Enum()
		full.OnDisconnect, full.SessionExpiryMode = sidebusv1.Queue_RELEASE.Enum(), sidebusv1.Queue_SESSION.Enum()
		full.SessionOnDeadLetter, full.AcceptNext = sidebusv1.Queue_BLOCK.Enum(), sidebusv1.Queue_FORBIDDEN.Enum()
		full.DeadLetteringOnFilterEvaluationExceptions, full.LockDuration = proto.Bool(false), durationpb.New(5*time.Second)
		created, err := w.admin.CreateSubscription(ctx, &sidebusv1.CreateSubscriptionRequest{Topic: news, Subscription: full})
		if err != nil {
			t.Fatal(err)
		}
		wantProto(t, "created", full, made(t, created))
		updated, err := w.admin.UpdateSubscription(ctx, &sidebusv1.UpdateSubscriptionRequest{
			Name: "topics/news/subscriptions/FULL", Subscription: &sidebusv1.Subscription{Status: sidebusv1.Subscription_DISABLED.Enum(), MaxMessageCount: proto.Int64(0)},
		})
		if err != nil {
			t.Fatal(err)
		}
		full.Status, full.MaxMessageCount = sidebusv1.Subscription_DISABLED.Enum(), nil
		wantProto(t, "updated", full, made(t, updated))
		got, err := w.admin.GetSubscription(ctx, &sidebusv1.GetSubscriptionRequest{Name: "topics/NEWS/subscriptions/full"})
		if err != nil {
			t.Fatal(err)
		}
		wantProto(t, "read", full, made(t, got))
		if _, err := w.admin.DeleteSubscription(ctx, &sidebusv1.DeleteSubscriptionRequest{Name: "topics/news/subscriptions/full"}); err != nil {
			t.Error(err)
		}
		if _, err := w.admin.GetSubscription(ctx, &sidebusv1.GetSubscriptionRequest{Name: "topics/news/subscriptions/full"}); reasonOf(t, err) != "ENTITY_NOT_FOUND" {
			t.Errorf("got %v", err)
		}
	})
}

// A subscription may be created with rules of its own, and an ensure reports whether an existing one has others.
func TestRULE_1_FirstRules(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		mustPut(t, w.sidecar, "/v1/topics/news", `{}`)
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/plain", `{}`)
		red, blue := &sidebusv1.Rule{Name: "red", Filter: sqlFilter("color = 'red'")}, &sidebusv1.Rule{Name: "blue", Filter: sqlFilter("color = 'blue'")}
		if _, err := w.admin.CreateSubscription(ctx, &sidebusv1.CreateSubscriptionRequest{
			Topic: news, Subscription: &sidebusv1.Subscription{Name: "eu", Rules: []*sidebusv1.Rule{red, blue}},
		}); err != nil {
			t.Fatal(err)
		}
		for subscription, want := range map[string]string{"plain": "$Default", "eu": "blue red"} {
			listed, err := w.admin.ListRules(ctx, &sidebusv1.ListRulesRequest{Subscription: news + "/subscriptions/" + subscription})
			var names []string
			for _, r := range listed.GetRules() {
				names = append(names, r.GetName())
			}
			if got := strings.Join(names, " "); err != nil || got != want {
				t.Errorf("%s: got %q, %v, want %q", subscription, got, err, want)
			}
		}
		ensured := func(rules ...*sidebusv1.Rule) string {
			t.Helper()
			answer, err := w.admin.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: eu, Subscription: &sidebusv1.Subscription{Rules: rules}})
			if err != nil || answer.GetCreated() {
				t.Fatalf("got %v, %v", answer, err)
			}
			var all []string
			for _, d := range answer.GetDifferences() {
				all = append(all, fmt.Sprintf("%s: %s / %s", d.GetOption(), d.GetPresent(), d.GetAsked()))
			}
			return strings.Join(all, "\n")
		}
		if got := ensured() + ensured(blue, red); got != "" {
			t.Errorf("got %s", got)
		}
		const want = "rules[blue]: sql: color = 'blue' / \n" +
			"rules[red]: sql: color = 'red' / all; action sql: SET a = 1\n" +
			`rules[green]:  / correlation: subject = "green", properties.n = int32 5`
		if got := ensured(&sidebusv1.Rule{Name: "green", Filter: correlationFilter(&sidebusv1.Rule_Correlation{
			Subject: proto.String("green"), Properties: map[string]*sidebusv1.Value{"N": int32Value(5)},
		})}, &sidebusv1.Rule{Name: "RED", Filter: allFilter(), Action: sqlAction("SET a = 1")}); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// Every kind of rule comes back as it was given, types of values included.
func TestRULE_6_RulesComeBack(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		w.openNews(t)
		values := map[string]*sidebusv1.Value{
			"n": int32Value(5), "s": {Kind: &sidebusv1.Value_StringValue{StringValue: "x"}}, "b": {Kind: &sidebusv1.Value_BoolValue{BoolValue: true}},
			"at": {Kind: &sidebusv1.Value_DatetimeValue{DatetimeValue: "2026-01-02T03:04:05Z"}},
		}
		withParameters := &sidebusv1.Rule_Sql{Expression: "a = @n and b = @s or c = @B", Parameters: values}
		rules := []*sidebusv1.Rule{
			{Name: "all", Filter: allFilter()},
			{Name: "correlated", Filter: correlationFilter(&sidebusv1.Rule_Correlation{
				ContentType: proto.String("t"), CorrelationId: proto.String("c"), MessageId: proto.String("m"), ReplyTo: proto.String("r"),
				ReplyToSessionId: proto.String("q"), SessionId: proto.String("s"), Subject: proto.String("u"), To: proto.String("w"), Properties: values,
			}), Action: &sidebusv1.Rule_Action{Sql: &sidebusv1.Rule_Sql{Expression: "SET x = @n", Parameters: values}}},
			{Name: "none", Filter: noneFilter()},
			{Name: "sql", Filter: &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_Sql{Sql: withParameters}}},
		}
		for _, want := range rules {
			wantProto(t, "created", want, made(t, w.addRule(t, eu, want)))
			got, err := w.admin.GetRule(ctx, &sidebusv1.GetRuleRequest{Name: eu + "/rules/" + strings.ToUpper(want.GetName())})
			if err != nil {
				t.Fatal(err)
			}
			wantProto(t, "read", want, made(t, got))
			ensured, err := w.admin.EnsureRule(ctx, &sidebusv1.EnsureRuleRequest{Name: eu + "/rules/" + want.GetName(), Rule: want})
			if err != nil || ensured.GetCreated() || len(ensured.GetDifferences()) > 0 {
				t.Errorf("ensured: got %v, %v", ensured, err)
			}
			wantProto(t, "ensured", want, made(t, ensured.GetResource()))
		}
		var listed []*sidebusv1.Rule
		for token := ""; ; {
			page, err := w.admin.ListRules(ctx, &sidebusv1.ListRulesRequest{Subscription: eu, PageSize: 2, PageToken: token})
			if err != nil || len(page.GetRules()) > 2 {
				t.Fatalf("got %v, %v", page, err)
			}
			listed = append(listed, page.GetRules()...)
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		if len(listed) != 5 || listed[0].GetName() != "$Default" || listed[0].GetFilter().GetAll() == nil {
			t.Fatalf("got %v", listed)
		}
		for i, want := range rules {
			wantProto(t, "listed", want, made(t, listed[i+1]))
		}
	})
}

func TestENT_6_EnsureRule(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		ensure := func(rule *sidebusv1.Rule) *sidebusv1.EnsureRuleResponse {
			t.Helper()
			ensured, err := w.admin.EnsureRule(t.Context(), &sidebusv1.EnsureRuleRequest{Name: eu + "/rules/Red", Rule: rule})
			if err != nil {
				t.Fatal(err)
			}
			return ensured
		}
		if first := ensure(&sidebusv1.Rule{Name: "red", Filter: sqlFilter("color = 'red'")}); !first.GetCreated() || first.GetResource().GetName() != "Red" {
			t.Errorf("got %v", first)
		}
		again := ensure(&sidebusv1.Rule{Filter: noneFilter(), Action: sqlAction("REMOVE a")})
		if again.GetCreated() || len(again.GetDifferences()) != 2 || again.GetResource().GetFilter().GetSql().GetExpression() != "color = 'red'" {
			t.Fatalf("got %v", again)
		}
		wantProto(t, "filter", &sidebusv1.Difference{Option: "filter", Present: "sql: color = 'red'", Asked: "none"}, again.GetDifferences()[0])
		wantProto(t, "action", &sidebusv1.Difference{Option: "action", Present: "none", Asked: "sql: REMOVE a"}, again.GetDifferences()[1])
	})
}

func TestSQL_12_WarningsOfARule(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		warned := w.addRule(t, eu, &sidebusv1.Rule{Name: "odd", Filter: sqlFilter("1 = 'one'")})
		if len(warned.GetWarnings()) != 1 || !strings.HasPrefix(warned.GetWarnings()[0], "filter: column ") {
			t.Errorf("got %q", warned.GetWarnings())
		}
		if fine := w.addRule(t, eu, &sidebusv1.Rule{Name: "fine", Filter: sqlFilter("1 = 1")}); len(fine.GetWarnings()) > 0 {
			t.Errorf("got %q", fine.GetWarnings())
		}
	})
	// What is not told is not there.
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		for _, path := range []string{"/v1/topics/news/subscriptions/eu", "/v1/topics/news/subscriptions/eu/rules/$Default"} {
			if a := w.call(t, http.MethodGet, path, ""); a.status != http.StatusOK || strings.Contains(a.body, "warnings") || strings.Contains(a.body, "rules") {
				t.Errorf("%s: got %d %s", path, a.status, a.body)
			}
		}
	})
}

// Lists have only what begins so, in order, page by page, and end where it ends.
func TestENT_17_ListsByPrefix(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		mustPut(t, w.sidecar, "/v1/topics/t", `{}`)
		names := []string{"a", "ab", "Ab-1", "ab.2", "ab1", "AB2", "ac", "b", "0", "z"}
		for _, name := range names {
			mustPut(t, w.sidecar, "/v1/queues/q"+name, `{}`)
			mustPut(t, w.sidecar, "/v1/topics/t"+name, `{}`)
			mustPut(t, w.sidecar, "/v1/topics/t/subscriptions/"+name, `{}`)
		}
		mustPut(t, w.sidecar, "/v1/queues/qab%2Fx", `{}`)
		lists := map[string]func(prefix, token string, size int32) ([]string, string, error){
			"queues": func(prefix, token string, size int32) (names []string, next string, err error) {
				page, err := w.admin.ListQueues(ctx, &sidebusv1.ListQueuesRequest{NamePrefix: prefix, PageToken: token, PageSize: size})
				for _, q := range page.GetQueues() {
					names = append(names, q.GetName())
				}
				return names, page.GetNextPageToken(), err
			},
			"topics": func(prefix, token string, size int32) (names []string, next string, err error) {
				page, err := w.admin.ListTopics(ctx, &sidebusv1.ListTopicsRequest{NamePrefix: prefix, PageToken: token, PageSize: size})
				for _, q := range page.GetTopics() {
					names = append(names, q.GetName())
				}
				return names, page.GetNextPageToken(), err
			},
			"subscriptions": func(prefix, token string, size int32) (names []string, next string, err error) {
				page, err := w.admin.ListSubscriptions(ctx, &sidebusv1.ListSubscriptionsRequest{
					Topic: "topics/T", NamePrefix: prefix, PageToken: token, PageSize: size,
				})
				for _, q := range page.GetSubscriptions() {
					names = append(names, q.GetName())
				}
				return names, page.GetNextPageToken(), err
			},
		}
		for _, c := range []struct{ list, prefix, want string }{
			{"queues", "qAb", "qab qAb-1 qab.2 qab/x qab1 qAB2"},
			{"queues", `qab\`, "qab/x"},
			{"queues", "q0", "q0"},
			{"queues", "qzz", ""},
			{"queues", "", "orders q0 qa qab qAb-1 qab.2 qab/x qab1 qAB2 qac qb qz"},
			{"topics", "ta", "ta tab tAb-1 tab.2 tab1 tAB2 tac"},
			{"topics", "t.", ""},
			{"subscriptions", "AB", "ab Ab-1 ab.2 ab1 AB2"},
			{"subscriptions", "z", "z"},
			{"subscriptions", "", "0 a ab Ab-1 ab.2 ab1 AB2 ac b z"},
		} {
			for _, size := range []int32{1, 2, 5, 100} {
				var got []string
				pages := 0
				for token := ""; ; pages++ {
					names, next, err := lists[c.list](c.prefix, token, size)
					if err != nil || len(names) > int(size) || pages > 20 {
						t.Fatalf("%v: got %v, %v", c, names, err)
					}
					got = append(got, names...)
					if token = next; token == "" {
						break
					}
				}
				if shown := strings.Join(got, " "); shown != c.want {
					t.Errorf("%s %q in pages of %d: got %q, want %q", c.list, c.prefix, size, shown, c.want)
				}
			}
		}
	})
}

func TestENT_3_NamesOfTopicsAndSubscriptions(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		for _, name := range []string{"a/b", "Case.d-x_1/2", "queues/list", "rules/x", "subscriptions", "subscriptions/x", strings.Repeat("n", 260)} {
			topic := "topics/" + name
			if _, err := w.admin.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{Name: topic}); err != nil {
				t.Errorf("%s: %v", topic, err)
				continue
			}
			subscription := topic + "/subscriptions/" + strings.Repeat("s", 50)
			rule := subscription + "/rules/R.1_2-3"
			if _, err := w.admin.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: subscription}); err != nil {
				t.Errorf("%s: %v", subscription, err)
			}
			if _, err := w.admin.EnsureRule(ctx, &sidebusv1.EnsureRuleRequest{Name: rule, Rule: &sidebusv1.Rule{Filter: allFilter()}}); err != nil {
				t.Errorf("%s: %v", rule, err)
			}
			w.tellAll(t, strings.ToLower(topic), text(name))
			w.wantIn(t, strings.ToLower(subscription), name)
			if listed, err := w.admin.ListSubscriptions(ctx, &sidebusv1.ListSubscriptionsRequest{Topic: topic}); err != nil || len(listed.GetSubscriptions()) != 1 {
				t.Errorf("%s: got %v, %v", topic, listed, err)
			}
			if _, err := w.admin.DeleteTopic(ctx, &sidebusv1.DeleteTopicRequest{Name: topic}); err != nil {
				t.Errorf("%s: %v", topic, err)
			}
		}
		mustPut(t, w.sidecar, "/v1/topics/news", `{}`)
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/eu", `{}`)
		for _, name := range []string{".s", "s.", "-s", "a b", " ", "a/b", "a%b", "é", "$s", "$Default", "a:b", strings.Repeat("n", 51), "a\nb", `a\b`} {
			_, err := w.admin.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: news + "/subscriptions/" + name})
			if reasonOf(t, err) != "INVALID_ARGUMENT" {
				t.Errorf("ensured subscription %q: got %v", name, err)
			}
			_, err = w.admin.CreateSubscription(ctx, &sidebusv1.CreateSubscriptionRequest{Topic: news, Subscription: &sidebusv1.Subscription{Name: name}})
			if reasonOf(t, err) != "INVALID_ARGUMENT" {
				t.Errorf("subscription %q: got %v", name, err)
			}
			if name == "$Default" {
				continue
			}
			_, err = w.admin.EnsureRule(ctx, &sidebusv1.EnsureRuleRequest{Name: eu + "/rules/" + name, Rule: &sidebusv1.Rule{Filter: allFilter()}})
			if reasonOf(t, err) != "INVALID_ARGUMENT" {
				t.Errorf("ensured rule %q: got %v", name, err)
			}
			_, err = w.admin.CreateRule(ctx, &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: &sidebusv1.Rule{Name: name, Filter: allFilter()}})
			if reasonOf(t, err) != "INVALID_ARGUMENT" {
				t.Errorf("rule %q: got %v", name, err)
			}
		}
		listed, err := w.admin.ListSubscriptions(ctx, &sidebusv1.ListSubscriptionsRequest{Topic: news})
		if err != nil || len(listed.GetSubscriptions()) != 1 {
			t.Errorf("got %v, %v", listed, err)
		}
	})
}
