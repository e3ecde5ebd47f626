package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var topicRuleTests = []ruleTest{
	testRULE_1_DefaultRule,
	testRULE_1_OwnFirstRules,
	testRULE_1_KeepsWhatItWasGiven,
	testRULE_1_StoreKeepsItsOwnCopy,
	testRULE_2_DefaultRuleIsDeletable,
	testRULE_2_WithoutRuleNothing,
	testRULE_2_AddedRuleLeavesTheDefault,
	testRULE_3_SameNameTwice,
	testRULE_3_MissingRule,
	testRULE_3_NamesPerSubscription,
	testRULE_3_OneOfManyCreatorsWins,
	testRULE_3_MissingSubscription,
	testRULE_4_SubscriptionsOfATopic,
	testRULE_4_SQLFiltersOfATopic,
	testRULE_4_CorrelationFiltersOfATopic,
	testRULE_7_BadRuleIsNeverStored,
	testRULE_9_ListInPages,
	testRULE_10_Replace,
	testRULE_10_RefusedReplacementChangesNothing,
	testRULE_10_LimitsCountTheRuleOnce,
	testRULE_10_ReplacedAmongConcurrentSends,
	testENT_3_RuleNamesAreChecked,
	testENT_4_RuleNamesWithoutCase,
	testSQL_12_WarningsAreGiven,
}

func slicesSortRules(rules []semantics.Rule) {
	slices.SortFunc(rules, func(a, b semantics.Rule) int { return strings.Compare(semantics.Fold(a.Name), semantics.Fold(b.Name)) })
}

func testRULE_1_DefaultRule(t *testing.T, h *fixture) {
	h.createTopic()
	_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{}, nil)
	h.ok(err)
	want := semantics.Rule{Name: "$Default", Filter: semantics.RuleFilter{All: true}, CreatedAt: h.Now()}
	h.same(h.rules(eu), []semantics.Rule{want})
	got, err := h.broker.GetRule(t.Context(), eu.Path, "$Default")
	h.ok(err)
	h.same(got, want)
	h.publishTexts("a")
	h.wantIDs(eu, "a")
}

func testRULE_1_OwnFirstRules(t *testing.T, h *fixture) {
	h.createTopic()
	first := []semantics.Rule{onSubject("$Default", "sport"), doing(onSubject("w", "weather"), "SET x = 1")}
	_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{}, nil, first...)
	h.ok(err)
	h.same(ruleNames(h.rules(eu)), []string{"$Default", "w"})
	h.publish(text("a"), about("sport", text("b")), about("weather", text("c")))
	h.wantIDs(eu, "b", "c")
	// One that is there already keeps its rules.
	ensured, err := h.broker.EnsureEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{}, nil, always("other"))
	h.ok(err)
	h.same(ensured.Created, false)
	h.same(ruleNames(h.rules(eu)), []string{"$Default", "w"})
}

// wholeRules are rules in which everything is set that can be.
func wholeRules() []semantics.Rule {
	values := properties{
		"s": semantics.String("te'xt \x00ü"), "i": semantics.Int64(math.MinInt64), "b": semantics.Bool(false), "d": semantics.Double(-0.5), "n": semantics.Null(),
	}
	sql := onSQL("sql", "s = @s AND d = @d OR n IS NULL AND i > @i")
	sql.Filter.SQL.Parameters = properties{"s": values["s"], "i": values["i"], "b": values["b"], "d": values["d"]}
	action := doing(sql, "SET x = @p + 1; REMOVE s")
	action.Name, action.Action.Parameters = "action", properties{"p": semantics.Int64(41)}
	correlation := semantics.Rule{Name: "correlation", Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{
		ContentType: ptr("text/plain"), CorrelationID: ptr("c"), MessageID: ptr("m"), ReplyTo: ptr("r"), ReplyToSessionID: ptr("rs"),
		SessionID: ptr("s"), Subject: ptr(""), To: ptr("t"), Properties: values,
	}}}
	onlyProperties := semantics.Rule{
		Name: "properties", Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{Properties: properties{"P": semantics.Null()}}},
	}
	return []semantics.Rule{action, always("All"), correlation, never("none"), onlyProperties, sql}
}

func testRULE_1_KeepsWhatItWasGiven(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, wholeRules())
	h.createSubscriptionWith(us, nil)
	h.Advance(ms)
	whole := wholeRules()
	for i := range whole {
		whole[i].CreatedAt = h.Now()
		h.same(h.createRule(us, wholeRules()[i]), whole[i])
	}
	h.same(h.rules(us), whole)
	for _, want := range whole {
		got, err := h.broker.GetRule(t.Context(), us.Path, want.Name)
		h.ok(err)
		h.same(got, want)
	}
	for _, route := range h.routes().Subscriptions {
		slicesSortRules(route.Rules)
		for i := range route.Rules {
			route.Rules[i].CreatedAt = h.Now()
		}
		h.same(route.Rules, whole) // as they were given at creation, too
	}
}

func testRULE_1_StoreKeepsItsOwnCopy(t *testing.T, h *fixture) {
	h.createTopic()
	given := wholeRules()
	h.createSubscriptionWith(eu, given)
	spoil := func(rules []semantics.Rule) {
		for _, r := range rules {
			for _, sql := range []*semantics.SQLText{r.Filter.SQL, r.Action} {
				if sql != nil {
					sql.Expression, sql.Parameters["spoilt"] = "spoilt", semantics.Null()
				}
			}
			if c := r.Filter.Correlation; c != nil {
				c.Properties["spoilt"] = semantics.Null()
				if c.To != nil {
					*c.To = "spoilt"
				}
			}
		}
	}
	want := wholeRules()
	for i := range want {
		want[i].CreatedAt = h.Now()
	}
	spoil(given)
	h.same(h.rules(eu), want)
	spoil(h.rules(eu))
	routes := h.routes()
	spoil(routes.Subscriptions[0].Rules)
	rule, err := h.Store.GetRule(t.Context(), eu.Path, "correlation")
	h.ok(err)
	spoil([]semantics.Rule{rule})
	h.same(h.rules(eu), want)
}

func testRULE_2_DefaultRuleIsDeletable(_ *testing.T, h *fixture) {
	h.createNews()
	h.deleteRule(eu, "$default") // without case, as any other
	h.publishTexts("a")
	h.wantIDs(eu)
	h.wantIDs(us, "a")
	h.same(h.rules(eu), []semantics.Rule(nil))
	h.createRule(eu, always(semantics.DefaultRule))
	h.publishTexts("b")
	h.wantIDs(eu, "b")
}

func testRULE_2_WithoutRuleNothing(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, nil)
	h.publish(text("a"), counting(0, text("b")))
	h.wantIDs(eu)
	h.wantIDs(deadEU)
}

func testRULE_2_AddedRuleLeavesTheDefault(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.createRule(eu, onSubject("s", "sport"))
	h.createRule(eu, doing(onSubject("w", "weather"), "SET x = 1"))
	h.publish(text("a"), about("sport", text("b")), about("weather", text("c")))
	h.wantIDs(eu, "a", "b", "c", "c") // everything, and what the action makes on top
	h.same(ruleNames(h.rules(eu)), []string{"$Default", "s", "w"})
}

func testRULE_3_SameNameTwice(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	for _, name := range []string{"$Default", "$DEFAULT", "Sport", "sport", "SPORT"} {
		if name == "Sport" {
			h.createRule(eu, onSubject(name, "x"))
			continue
		}
		before := h.routes()
		h.topicRefused(semantics.RuleAlreadyExists, func() error {
			_, _, err := h.broker.CreateRule(t.Context(), eu.Path, onSubject(name, "y"))
			return err
		})
		h.same(h.routes().Subscriptions, before.Subscriptions)
	}
	_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, us.Path, semantics.Options{}, nil, always("a"), always("A"))
	h.wantCode(err, semantics.InvalidArgument) // nor within one creation
}

func testRULE_3_MissingRule(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.createSubscription(us)
	h.createRule(us, always("there"))
	missing := func(name string) {
		h.t.Helper()
		h.topicRefused(semantics.RuleNotFound, func() error { return h.broker.DeleteRule(t.Context(), eu.Path, name) })
		h.wantCode(second(h.broker.GetRule(t.Context(), eu.Path, name)), semantics.RuleNotFound)
	}
	missing("there")
	h.createRule(eu, always("there"))
	h.deleteRule(eu, "There")
	missing("there")
	h.same(ruleNames(h.rules(us)), []string{"$Default", "there"})
}

func testRULE_3_NamesPerSubscription(t *testing.T, h *fixture) {
	h.createNews()
	h.createTopicNamed("other")
	other := semantics.Source{Path: "other/Subscriptions/eu"}
	h.createSubscription(other)
	for i, source := range []semantics.Source{eu, us, other} {
		h.createRule(source, onSubject("same", fmt.Sprint(i)))
	}
	for i, source := range []semantics.Source{eu, us, other} {
		rule, err := h.broker.GetRule(t.Context(), source.Path, "same")
		h.ok(err)
		h.same(*rule.Filter.Correlation.Subject, fmt.Sprint(i))
	}
	h.deleteRule(us, "same")
	h.same(ruleNames(h.rules(eu)), []string{"$Default", "same"})
}

func testRULE_3_OneOfManyCreatorsWins(t *testing.T, h *fixture) {
	h.races()
	h.createTopic()
	h.createSubscriptionWith(eu, nil)
	var created, deleted atomic.Int32
	compete := func(count *atomic.Int32, lost semantics.Code, do func(b *broker.Broker, i int) error) {
		var work sync.WaitGroup
		brokers := h.sidecars()
		for i := range 8 {
			work.Go(func() {
				switch code := semantics.CodeOf(do(brokers[i%len(brokers)], i)); code {
				case "":
					count.Add(1)
				case lost:
				default:
					t.Errorf("got %s", code)
				}
			})
		}
		work.Wait()
	}
	compete(&created, semantics.RuleAlreadyExists, func(b *broker.Broker, i int) error {
		_, _, err := b.CreateRule(t.Context(), eu.Path, onSubject([]string{"rule", "Rule"}[i%2], "s"))
		return err
	})
	compete(&deleted, semantics.RuleNotFound, func(b *broker.Broker, _ int) error { return b.DeleteRule(t.Context(), eu.Path, "RULE") })
	h.same([]int32{created.Load(), deleted.Load()}, []int32{1, 1})
}

func testRULE_3_MissingSubscription(t *testing.T, h *fixture) {
	verbs := func(path string) []error {
		_, _, create := h.broker.CreateRule(t.Context(), path, always("a"))
		_, get := h.broker.GetRule(t.Context(), path, "a")
		_, _, list := h.broker.ListRules(t.Context(), path, 0, "")
		return []error{create, get, list, h.broker.DeleteRule(t.Context(), path, "a")}
	}
	all := func(path string, want semantics.Code) {
		h.t.Helper()
		for _, err := range verbs(path) {
			h.wantCode(err, want)
		}
	}
	all(eu.Path, semantics.EntityNotFound) // not even the topic is there
	h.createTopic()
	all(eu.Path, semantics.EntityNotFound)
	h.create()
	all(news, semantics.InvalidArgument)
	all(orders.Path, semantics.InvalidArgument)
}

// limited makes news in a store whose topics have low limits.
func (h *fixture) limited(subscriptions, sqlFilters, correlationFilters int) *fixture {
	h.t.Helper()
	if h.WithTopicLimits == nil {
		h.t.Fatal("the harness cannot lower the limits of a topic: WithTopicLimits is missing")
	}
	harness := h.Harness
	harness.Store, harness.Peer = h.WithTopicLimits(subscriptions, sqlFilters, correlationFilters), nil
	low := newFixture(h.t, harness)
	low.createTopic()
	return low
}

func testRULE_4_SubscriptionsOfATopic(t *testing.T, h *fixture) {
	h = h.limited(2, 99, 99)
	h.createSubscription(eu)
	h.createSubscription(us)
	create := func(path string) error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, path, semantics.Options{}, nil)
		return err
	}
	asia := subscription("asia").Path
	err := h.topicRefused(semantics.QuotaExceeded, func() error { return create(asia) })
	h.same([]string{err.Details[semantics.DetailEntity], err.Details[semantics.DetailLimit]}, []string{news, "2"})
	h.wantCode(second(h.broker.GetEntity(t.Context(), semantics.SubscriptionKind, asia)), semantics.EntityNotFound)
	h.wantCode(create("news/subscriptions/EU"), semantics.EntityAlreadyExists) // which would be none more
	h.createTopicNamed("other")
	h.ok(create("other/Subscriptions/asia")) // the limit is the topic's own
	h.deleteSubscription(us)
	h.ok(create(asia))
	h.deleteTopic()
	h.createTopic()
	h.ok(create(asia))
	h.ok(create(us.Path))
}

// filterLimit checks the limit of three for one kind of filter in a store that has it.
func (h *fixture) filterLimit(limited func(name string) semantics.Rule, others ...semantics.Rule) {
	h.t.Helper()
	ctx := h.t.Context()
	h.createSubscriptionWith(eu, append([]semantics.Rule{limited("1")}, others...))
	h.createSubscriptionWith(us, nil)
	subscribe := func(rules ...semantics.Rule) error {
		return second(h.broker.CreateEntity(ctx, semantics.SubscriptionKind, subscription("asia").Path, semantics.Options{}, nil, rules...))
	}
	create := func(source semantics.Source, name string) error {
		_, _, err := h.broker.CreateRule(ctx, source.Path, limited(name))
		return err
	}
	h.topicRefused(semantics.QuotaExceeded, func() error { return subscribe(limited("2"), limited("3"), limited("4")) })
	h.wantCode(second(h.broker.GetEntity(ctx, semantics.SubscriptionKind, subscription("asia").Path)), semantics.EntityNotFound)
	h.ok(subscribe(limited("2"), always("all")))
	h.ok(create(us, "3"))
	err := h.topicRefused(semantics.QuotaExceeded, func() error { return create(us, "4") })
	h.same([]string{err.Details[semantics.DetailEntity], err.Details[semantics.DetailLimit]}, []string{news, "3"})
	for _, rule := range others {
		h.createRule(us, rule) // it is the limit of one kind
	}
	h.wantCode(create(eu, "1"), semantics.RuleAlreadyExists)
	h.deleteRule(eu, "1")
	h.ok(create(us, "4"))
	h.wantCode(create(us, "5"), semantics.QuotaExceeded)
	h.deleteSubscription(subscription("asia")) // and its rule with it
	h.ok(create(eu, "5"))
	h.wantCode(create(eu, "6"), semantics.QuotaExceeded)
}

func testRULE_4_SQLFiltersOfATopic(_ *testing.T, h *fixture) {
	limited := func(name string) semantics.Rule { return onSQL(name, "n = 1") }
	h.limited(99, 3, 0).filterLimit(limited, always("all"), never("none"), doing(always("do"), "SET x = 1"))
}

func testRULE_4_CorrelationFiltersOfATopic(_ *testing.T, h *fixture) {
	limited := func(name string) semantics.Rule { return doing(onSubject(name, "s"), "SET x = 1") }
	h.limited(99, 0, 3).filterLimit(limited, always("all"), never("none"))
}

func testRULE_7_BadRuleIsNeverStored(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	for name, c := range map[string]struct {
		rule semantics.Rule
		want semantics.Code
	}{
		"syntax":      {onSQL("bad", "color ="), semantics.FilterInvalid},
		"binding":     {onSQL("bad", "sys.Color = 'red'"), semantics.FilterInvalid},
		"parameter":   {onSQL("bad", "color = @missing"), semantics.FilterInvalid},
		"nothing":     {semantics.Rule{Name: "bad"}, semantics.FilterInvalid},
		"two filters": {semantics.Rule{Name: "bad", Filter: semantics.RuleFilter{All: true, None: true}}, semantics.FilterInvalid},
		"empty":       {semantics.Rule{Name: "bad", Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{}}}, semantics.FilterInvalid},
		"long":        {onSQL("bad", "x = '"+strings.Repeat("y", semantics.MaxRuleText)+"'"), semantics.FilterInvalid},
		"action":      {doing(always("bad"), "SET"), semantics.ActionInvalid},
		"not to set":  {doing(always("bad"), "SET sys.SequenceNumber = 1"), semantics.ActionInvalid},
		"long action": {doing(always("bad"), "SET x = '"+strings.Repeat("y", semantics.MaxRuleText)+"'"), semantics.ActionInvalid},
	} {
		h.topicRefused(c.want, func() error {
			_, _, err := h.broker.CreateRule(t.Context(), eu.Path, c.rule)
			return err
		})
		_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, us.Path, semantics.Options{}, nil, always("good"), c.rule)
		if h.codeOf(err) != c.want {
			t.Errorf("%s: creation of a subscription returned %v", name, err)
		}
		h.wantCode(second(h.broker.GetEntity(t.Context(), semantics.SubscriptionKind, us.Path)), semantics.EntityNotFound)
	}
}

// replaceRule replaces a rule.
func (h *fixture) replaceRule(source semantics.Source, rule semantics.Rule) error {
	_, _, err := h.broker.ReplaceRule(h.t.Context(), source.Path, rule)
	return err
}

func testRULE_10_Replace(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "sport"), never("other")})
	h.createSubscriptionWith(us, []semantics.Rule{always("r")})
	created, before := h.Now(), h.routes().Version
	h.publish(about("sport", text("a")), about("weather", text("b")))
	h.Advance(time.Minute)
	replaced, warnings, err := h.broker.ReplaceRule(t.Context(), eu.Path, doing(onSQL("R", "sys.Label = 'weather' AND '5' <> 5"), "SET x = 1"))
	h.ok(err)
	h.same(len(warnings), 1)
	h.same(replaced.CreatedAt, created)
	got, err := h.broker.GetRule(t.Context(), eu.Path, "r")
	h.ok(err)
	h.same(got, replaced)
	h.same(ruleNames(h.rules(eu)), []string{"other", "R"})
	if h.routes().Version == before {
		t.Error("the version of the routes is the same")
	}
	h.publish(about("sport", text("c")), about("weather", text("d")))
	h.wantIDs(us, "a", "b", "c", "d")
	h.same(h.rules(us)[0].Filter, semantics.RuleFilter{All: true})
	h.ok(h.replaceRule(eu, always("r")))
	h.publish(about("sport", text("e")))
	h.wantIDs(eu, "a", "e")
	h.ok(h.replaceRule(eu, always("r"))) // by an equal one
	h.same(ruleNames(h.rules(eu)), []string{"other", "r"})
}

func testRULE_10_RefusedReplacementChangesNothing(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "sport")})
	h.createSubscriptionWith(us, []semantics.Rule{always("there")})
	for _, c := range []struct {
		rule semantics.Rule
		want semantics.Code
	}{
		{always("there"), semantics.RuleNotFound},
		{onSQL("r", "x ="), semantics.FilterInvalid},
		{doing(always("r"), "SET"), semantics.ActionInvalid},
		{always("no/name"), semantics.InvalidArgument},
	} {
		h.topicRefused(c.want, func() error { return h.replaceRule(eu, c.rule) })
	}
	h.topicRefused(semantics.EntityNotFound, func() error { return h.replaceRule(subscription("asia"), always("r")) })
	rule, err := h.broker.GetRule(t.Context(), eu.Path, "r")
	h.ok(err)
	h.same(rule.Filter, onSubject("r", "sport").Filter)
}

func testRULE_10_LimitsCountTheRuleOnce(_ *testing.T, h *fixture) {
	h = h.limited(99, 1, 1)
	h.createSubscriptionWith(eu, []semantics.Rule{onSQL("r", "n = 1"), onSubject("c", "s"), always("a")})
	h.ok(h.replaceRule(eu, onSQL("r", "n = 2")))
	h.topicRefused(semantics.QuotaExceeded, func() error { return h.replaceRule(eu, onSQL("a", "n = 3")) })
	h.topicRefused(semantics.QuotaExceeded, func() error { return h.replaceRule(eu, onSubject("r", "s")) })
	h.ok(h.replaceRule(eu, always("r")))
	h.ok(h.replaceRule(eu, onSQL("a", "n = 3"))) // which the other has left
	h.topicRefused(semantics.QuotaExceeded, func() error { return h.replaceRule(eu, onSQL("r", "n = 1")) })
}

func testRULE_10_ReplacedAmongConcurrentSends(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{always("r")})
	f := h.newTraffic()
	f.run(func() {
		for i := range 20 {
			f.stir()
			h.ok(h.replaceRule(eu, onSQL("r", fmt.Sprintf("%d = %d", i, i))))
			f.rest()
		}
	})
	got := h.takeAll(eu)
	f.wantExactly(got, func(int64) bool { return true })
	h.same(len(got), f.ids) // one copy of each, whichever rule has decided
}

func testRULE_9_ListInPages(t *testing.T, h *fixture) {
	h.createTopic()
	// by folded name, byte by byte
	want := []string{"$Default", "0", "A", "a-b", "a.b", "a0", "a_b", "aa", "B", "b1", "zz"}
	h.createSubscription(eu)
	for _, i := range []int{3, 9, 7, 5, 1, 8, 2, 6, 4, 10} {
		h.createRule(eu, onSubject(want[i], want[i]))
	}
	for _, size := range []int{1, 3, 5, 10, 11, 12, 0} {
		var got []string
		for token, isFirst := "", true; token != "" || isFirst; isFirst = false {
			page, next, err := h.broker.ListRules(t.Context(), eu.Path, size, token)
			h.ok(err)
			if size > 0 && len(page) > size {
				t.Fatalf("page of %d holds %d rules", size, len(page))
			}
			got, token = append(got, ruleNames(page)...), next
		}
		h.same(got, want)
	}
	for _, size := range []int{-1, 101} {
		_, _, err := h.broker.ListRules(t.Context(), eu.Path, size, "")
		h.wantCode(err, semantics.ArgumentOutOfRange)
	}
	_, _, err := h.broker.ListRules(t.Context(), eu.Path, 1, "!")
	h.wantCode(err, semantics.InvalidArgument)
}

func testENT_3_RuleNamesAreChecked(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, nil)
	for _, name := range []string{"a", "7", "A.b-c_D", strings.Repeat("x", 50), "$Default"} {
		h.createRule(eu, always(name))
	}
	for _, name := range []string{"", "$other", "$default ", ".a", "a-", "a b", "a/b", `a\b`, "größe", "a:b", "{a}", "a\x00", strings.Repeat("x", 51)} {
		_, _, create := h.broker.CreateRule(t.Context(), eu.Path, always(name))
		_, get := h.broker.GetRule(t.Context(), eu.Path, name)
		for _, err := range []error{create, get, h.broker.DeleteRule(t.Context(), eu.Path, name)} {
			if h.codeOf(err) != semantics.InvalidArgument {
				t.Errorf("%q: got %v", name, err)
			}
		}
	}
	h.same(len(h.rules(eu)), 5)
}

func testENT_4_RuleNamesWithoutCase(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.createRule(eu, onSubject("Sport-News", "s"))
	for _, name := range []string{"sport-news", "SPORT-NEWS", "Sport-News"} {
		rule, err := h.broker.GetRule(t.Context(), "NEWS/subscriptions/Eu", name)
		h.ok(err)
		h.same(rule.Name, "Sport-News") // kept as it was given
	}
	h.ok(h.broker.DeleteRule(t.Context(), "News/SUBSCRIPTIONS/EU", "sPORT-nEWS"))
	h.same(ruleNames(h.rules(eu)), []string{"$Default"})
}

func testSQL_12_WarningsAreGiven(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	rule, warnings, err := h.broker.CreateRule(t.Context(), eu.Path, onSQL("odd", "'5' = 5"))
	h.ok(err)
	if len(warnings) != 1 {
		t.Errorf("got the warnings %q, want one", warnings)
	}
	h.same(rule.CreatedAt, h.Now()) // it is stored all the same
	_, warnings, err = h.broker.CreateRule(t.Context(), eu.Path, onSQL("fine", "n = 5"))
	h.ok(err)
	h.same(warnings, []string(nil))
}
