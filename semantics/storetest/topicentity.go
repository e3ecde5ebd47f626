package storetest

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var topicEntityTests = []ruleTest{
	testENT_1_DeadLetterQueueOfASubscription,
	testENT_2_QueuesAndTopicsShareTheirNames,
	testENT_2_SubscriptionNamesPerTopic,
	testENT_3_SubscriptionNamesAreChecked,
	testENT_3_OddNamesAreKeptApart,
	testENT_4_CaseOfTopicsAndSubscriptions,
	testENT_5_SubscriptionsIsReserved,
	testENT_6_TopicGetsDefaults,
	testENT_6_SubscriptionGetsDefaults,
	testENT_6_EnsureOfTopicsAndSubscriptions,
	testENT_6_SubscriptionNeedsItsTopic,
	testENT_6_EnsureOfASubscriptionUnderRace,
	testENT_7_UpdateOfATopic,
	testENT_7_UpdateOfASubscription,
	testENT_11_BoundsOfTopicsAndSubscriptions,
	testENT_16_ImmutableOptionsOfTopics,
	testENT_17_ListTopics,
	testENT_17_ListSubscriptions,
}

func (h *fixture) get(kind semantics.Kind, path string) error {
	return second(h.broker.GetEntity(h.t.Context(), kind, path))
}

func (h *fixture) make(kind semantics.Kind, path string) error {
	return second(h.broker.CreateEntity(h.t.Context(), kind, path, semantics.Options{}, nil))
}

func testENT_1_DeadLetterQueueOfASubscription(_ *testing.T, h *fixture) {
	h.createNews()
	h.wantNumbers(h.peek(deadEU))
	h.receiveNone(deadEU)
	h.publishTexts("a")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.wantIDs(deadEU, "a")
	h.wantNumbers(h.peek(deadUS)) // each subscription has its own
	h.receiveNone(deadUS)
	h.complete(deadEU, h.receiveOne(deadEU))
	h.same(h.runtimeOf(eu), semantics.Runtime{})
}

func testENT_2_QueuesAndTopicsShareTheirNames(_ *testing.T, h *fixture) {
	h.createNews()
	h.create()
	for _, name := range []string{news, "NEWS"} {
		h.wantCode(h.make(semantics.QueueKind, name), semantics.EntityAlreadyExists)
		h.wantCode(h.make(semantics.TopicKind, name), semantics.EntityAlreadyExists)
		_, err := h.broker.EnsureEntity(h.t.Context(), semantics.QueueKind, name, semantics.Options{}, nil)
		h.wantCode(err, semantics.EntityAlreadyExists) // it exists, but is not a queue
	}
	h.wantCode(h.make(semantics.TopicKind, "Orders"), semantics.EntityAlreadyExists)
	_, err := h.broker.EnsureEntity(h.t.Context(), semantics.TopicKind, "orders", semantics.Options{}, nil)
	h.wantCode(err, semantics.EntityAlreadyExists)
	h.same([]semantics.Kind{h.topic().Kind, h.entityOf(eu).Kind}, []semantics.Kind{semantics.TopicKind, semantics.SubscriptionKind})
	h.deleteTopic()
	h.createNamed(news) // the name is free for a queue then
	h.wantCode(h.make(semantics.SubscriptionKind, eu.Path), semantics.EntityNotFound)
}

func testENT_2_SubscriptionNamesPerTopic(_ *testing.T, h *fixture) {
	h.createNews()
	h.createTopicNamed("other")
	h.createNamed("eu")
	h.ok(h.make(semantics.SubscriptionKind, "other/Subscriptions/eu"))
	for _, path := range []string{"news/Subscriptions/eu", "news/Subscriptions/EU", "NEWS/subscriptions/Eu", `news\Subscriptions\eu`} {
		h.topicRefused(semantics.EntityAlreadyExists, func() error { return h.make(semantics.SubscriptionKind, path) })
	}
	h.publishTexts("a")
	h.wantIDs(semantics.Source{Path: "other/Subscriptions/eu"})
	h.wantIDs(semantics.Source{Path: "eu"})
}

func testENT_3_SubscriptionNamesAreChecked(t *testing.T, h *fixture) {
	h.createTopic()
	for _, name := range []string{"a", "7", "A.b-c_D", "subscriptions", strings.Repeat("x", 50)} {
		h.ok(h.make(semantics.SubscriptionKind, subscription(name).Path))
	}
	bad := []string{
		"", "$Default", ".a", "a-", "a b", "größe", "a:b", "{a}", "a@b", "a\x00", strings.Repeat("x", 51), "a/b", "Subscriptions/a",
	}
	for _, name := range bad {
		if err := h.make(semantics.SubscriptionKind, subscription(name).Path); h.codeOf(err) != semantics.InvalidArgument {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, path := range []string{news, "/Subscriptions/a", "-/Subscriptions/a", "Subscriptions/a", "a//Subscriptions/a"} {
		h.wantCode(h.make(semantics.SubscriptionKind, path), semantics.InvalidArgument)
	}
	h.same(h.topicRuntime().Subscriptions, int64(5))
}

// Names that a careless store mixes up.
func testENT_3_OddNamesAreKeptApart(t *testing.T, h *fixture) {
	topics := []string{"a", "a/b", "a.b", "a-b", "a_b", "ab", "b", "a/subscription", "subscriptions", "subscriptions2/x", "0", "1e5", strings.Repeat("t", 260)}
	names := []string{"a", "b", "a.b", "a-b", "a_b", "ab", "subscriptions", "Subscriptions2", "0", "00", "1e5", "nil", "rules", strings.Repeat("s", 50)}
	for _, topic := range topics {
		h.createTopicNamed(topic)
		for _, name := range names {
			h.createSubscriptionWith(semantics.Source{Path: semantics.SubscriptionPath(topic, name)}, []semantics.Rule{onSubject("r", name)})
		}
	}
	h.createNamed("subscriptions/a") // a queue, by its name
	for _, topic := range topics {
		for _, name := range names {
			m := about(name, text(topic+" "+name))
			m.MessageID, m.Body = name, []byte(topic)
			h.ok(second(h.broker.Send(t.Context(), semantics.ToTopic(topic), []*semantics.Message{m})))
		}
	}
	for _, topic := range topics {
		for _, name := range names {
			source := semantics.Source{Path: semantics.SubscriptionPath(topic, name)}
			got := h.receive(source, 9)
			if len(got) != 1 || got[0].MessageID != name || string(got[0].Body) != topic {
				t.Errorf("%s has %d messages", source, len(got))
			}
			h.complete(source, got...)
		}
	}
	h.wantNumbers(h.peek(semantics.Source{Path: "subscriptions/a"}))
}

func testENT_4_CaseOfTopicsAndSubscriptions(t *testing.T, h *fixture) {
	h.ok(h.make(semantics.TopicKind, "Team/News"))
	h.ok(h.make(semantics.SubscriptionKind, "Team/News/Subscriptions/EU-West"))
	upper, lower := semantics.Source{Path: "TEAM/NEWS/SUBSCRIPTIONS/EU-WEST"}, semantics.Source{Path: "team/news/subscriptions/eu-west"}
	topic, err := h.broker.GetEntity(t.Context(), semantics.TopicKind, "tEAM/nEWS")
	h.ok(err)
	sub, err := h.broker.GetEntity(t.Context(), semantics.SubscriptionKind, lower.Path)
	h.ok(err)
	h.same([]string{topic.Name, sub.Name}, []string{"Team/News", "Team/News/Subscriptions/EU-West"})
	for _, to := range []string{"TEAM/NEWS", "team/news"} {
		h.ok(second(h.broker.Send(t.Context(), semantics.ToTopic(to), []*semantics.Message{text(to)})))
	}
	got := h.receive(upper, 9)
	h.wantNumbers(got, 1, 2)
	h.complete(lower, got[0])
	h.abandon(upper, got[1])
	h.wantIDs(lower, "team/news")
	h.createRule(upper, onSubject("r", "s"))
	h.same(ruleNames(h.rules(lower)), []string{"$Default", "r"})
	sub, err = h.broker.UpdateEntity(t.Context(), semantics.SubscriptionKind, upper.Path, semantics.Options{MaxDeliveryCount: 3}, []string{"maxDeliveryCount"})
	h.ok(err)
	h.same([]any{sub.Name, sub.Options.MaxDeliveryCount}, []any{"Team/News/Subscriptions/EU-West", int64(3)})
	h.same(h.runtimeOf(upper).Active, int64(1))
	subs, _, err := h.broker.ListEntities(t.Context(), semantics.SubscriptionKind, "TEAM/news", 0, "")
	h.ok(err)
	h.same(len(subs), 1)
	h.deleteSubscription(upper)
	h.wantCode(h.get(semantics.SubscriptionKind, lower.Path), semantics.EntityNotFound)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.TopicKind, "TEAM/news"))
	h.wantCode(h.get(semantics.TopicKind, "Team/News"), semantics.EntityNotFound)
}

func testENT_5_SubscriptionsIsReserved(_ *testing.T, h *fixture) {
	for _, kind := range []semantics.Kind{semantics.QueueKind, semantics.TopicKind} {
		for _, name := range []string{"news/Subscriptions/eu", "news/subscriptions", "news/SUBSCRIPTIONS/a/b", "$Topic"} {
			h.wantCode(h.make(kind, name), semantics.InvalidArgument)
		}
	}
}

func testENT_6_TopicGetsDefaults(t *testing.T, h *fixture) {
	h.ok(h.make(semantics.TopicKind, news))
	want := semantics.Entity{
		Kind: semantics.TopicKind, Name: news, Options: semantics.DefaultOptions(), CreatedAt: h.Now(), UpdatedAt: h.Now(), AccessedAt: h.Now(),
	}
	h.same(h.topic(), want)
	given := semantics.Options{
		MaxSizeInMegabytes: 81920, MaxMessageSizeInKilobytes: 102400, DefaultMessageTimeToLive: 1234567 * ms, Status: semantics.StatusSendDisabled,
		UserMetadata: "Für wen?", EnableBatchedOperations: false, RequiresDuplicateDetection: true,
		DuplicateDetectionHistoryTimeWindow: 20 * time.Second, DuplicateHistoryMaxEntries: 1, ForgetOnCancel: true, EnablePartitioning: true,
		SupportOrdering: false, FailIfUnmatched: true, UnmatchedTo: "NEWS/back", AutoDeleteOnIdle: time.Hour, AutoDeleteKeepsDeadLetters: true,
		Partitions: 1,
	}
	h.createNamed("news/back")
	_, err := h.broker.CreateEntity(t.Context(), semantics.TopicKind, "other", given, semantics.OptionNames(semantics.TopicKind))
	h.ok(err)
	got, err := h.broker.GetEntity(t.Context(), semantics.TopicKind, "other")
	h.ok(err)
	h.sameOptions(semantics.TopicKind, got.Options, given)
	_, err = h.broker.CreateEntity(t.Context(), semantics.TopicKind, "third", given, []string{"lockDuration"})
	h.wantCode(err, semantics.InvalidArgument) // which no topic has
}

// sameOptions compares the options that a kind has.
func (h *fixture) sameOptions(kind semantics.Kind, got, want semantics.Options) {
	h.t.Helper()
	h.same(got.Differences(want, semantics.OptionNames(kind)), []semantics.Difference(nil))
}

func testENT_6_SubscriptionGetsDefaults(t *testing.T, h *fixture) {
	h.createTopic(livesFor(time.Hour), detectsDuplicates)
	h.Advance(ms)
	h.ok(h.make(semantics.SubscriptionKind, eu.Path))
	want := semantics.Entity{
		Kind: semantics.SubscriptionKind, Name: eu.Path, Options: semantics.DefaultOptions(), // nothing of the topic's
		CreatedAt: h.Now(), UpdatedAt: h.Now(), AccessedAt: h.Now(),
	}
	h.same(h.entityOf(eu), want)
	given := semantics.Options{
		LockDuration: 5 * time.Second, DefaultMessageTimeToLive: 1234567 * ms, DeadLetteringOnMessageExpiration: true, MaxDeliveryCount: math.MaxInt32,
		MaxMessageCount: math.MaxInt64, Overflow: semantics.DropOldestOverflow, Status: semantics.StatusReceiveDisabled, UserMetadata: "x",
		RedeliveryDelay: 7 * 24 * time.Hour, ExpireDeferred: true, DeadLetterTTL: 1001 * ms, RequiresSession: true, SessionInFlight: 7,
		OnDisconnect: semantics.ReleaseOnDisconnect, SessionExpiryMode: semantics.ExpireSession, SessionOnDeadLetter: semantics.BlockSession,
		AcceptNext: semantics.AcceptNextForbidden, SessionStateTTL: 1002 * ms,
		AutoDeleteOnIdle: time.Hour, AutoDeleteKeepsDeadLetters: true, ForwardDeadLetteredMessagesTo: "NEWS",
		Durability: semantics.AtMemory,
	}
	_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, us.Path, given, semantics.OptionNames(semantics.SubscriptionKind))
	h.ok(err)
	h.sameOptions(semantics.SubscriptionKind, h.entityOf(us).Options, given)
	_, err = h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, us.Path, given, []string{"maxSizeInMegabytes"})
	h.wantCode(err, semantics.InvalidArgument)
}

func testENT_6_EnsureOfTopicsAndSubscriptions(t *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a")
	h.topicRefused(semantics.EntityAlreadyExists, func() error { return h.make(semantics.TopicKind, news) })
	h.topicRefused(semantics.EntityAlreadyExists, func() error { return h.make(semantics.SubscriptionKind, eu.Path) })
	before := h.topicSnapshot()
	asked := semantics.Options{UserMetadata: "asked for"}
	for kind, path := range map[semantics.Kind]string{semantics.TopicKind: news, semantics.SubscriptionKind: eu.Path} {
		ensured, err := h.broker.EnsureEntity(t.Context(), kind, path, asked, []string{"userMetadata"})
		h.ok(err)
		h.same(ensured.Created, false)
		h.same(ensured.Differences, []semantics.Difference{{Option: "userMetadata", Present: "", Asked: "asked for"}})
		h.same([]any{ensured.Entity.Kind, ensured.Entity.Name}, []any{kind, path})
	}
	h.same(h.topicSnapshot(), before)
}

func testENT_6_SubscriptionNeedsItsTopic(_ *testing.T, h *fixture) {
	err := h.wantCode(h.make(semantics.SubscriptionKind, eu.Path), semantics.EntityNotFound)
	h.same(err.Details[semantics.DetailEntity], news)
	h.createNamed(news) // a queue has none
	h.wantCode(h.make(semantics.SubscriptionKind, eu.Path), semantics.EntityNotFound)
}

func testENT_6_EnsureOfASubscriptionUnderRace(t *testing.T, h *fixture) {
	h.races()
	h.createTopic()
	brokers := h.sidecars()
	var created atomic.Int32
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			path := []string{eu.Path, "News/subscriptions/EU"}[i%2]
			ensured, err := brokers[i%len(brokers)].EnsureEntity(t.Context(), semantics.SubscriptionKind, path, semantics.Options{}, nil)
			if err != nil {
				t.Error(err)
			}
			if ensured.Created {
				created.Add(1)
			}
		})
	}
	work.Wait()
	h.same(created.Load(), int32(1))
	h.publishTexts("a")
	h.wantIDs(eu, "a")
	h.same(ruleNames(h.rules(eu)), []string{"$Default"})
}

func testENT_7_UpdateOfATopic(t *testing.T, h *fixture) {
	before := h.createTopic(func(o *semantics.Options) { o.UserMetadata = "stays" })
	h.Advance(ms)
	to := semantics.Options{DefaultMessageTimeToLive: time.Hour, UserMetadata: "not named", FailIfUnmatched: true}
	got, err := h.broker.UpdateEntity(t.Context(), semantics.TopicKind, news, to, []string{"defaultMessageTimeToLive", "failIfUnmatched"})
	h.ok(err)
	want := before
	want.Options.DefaultMessageTimeToLive, want.Options.FailIfUnmatched = time.Hour, true
	want.UpdatedAt, want.AccessedAt = h.Now(), h.Now()
	h.same(got, want)
	h.same(h.topic(), want)
	for _, names := range [][]string{nil, {"failIfUnmatched", "lockDuration"}, {"failIfUnmatched", "unknown"}} {
		h.topicRefused(semantics.InvalidArgument, func() error {
			return second(h.broker.UpdateEntity(t.Context(), semantics.TopicKind, news, semantics.Options{}, names))
		})
	}
}

func testENT_7_UpdateOfASubscription(t *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a")
	before := h.entityOf(eu)
	topic, other := h.topic(), h.entityOf(us)
	h.Advance(ms)
	to := semantics.Options{MaxDeliveryCount: 3, Overflow: semantics.DeadLetterOverflow, UserMetadata: "not named"}
	got, err := h.broker.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, to, []string{"maxDeliveryCount", "overflow"})
	h.ok(err)
	want := before
	want.Options.MaxDeliveryCount, want.Options.Overflow = 3, semantics.DeadLetterOverflow
	want.UpdatedAt, want.AccessedAt = h.Now(), h.Now()
	h.same(got, want)
	h.same(h.entityOf(eu), want)
	h.same(h.topic().UpdatedAt, topic.UpdatedAt)
	h.same(h.entityOf(us), other)
	h.topicRefused(semantics.InvalidArgument, func() error {
		return second(h.broker.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{}, []string{"maxDeliveryCount", "failIfUnmatched"}))
	})
	h.wantIDs(eu, "a")
}

func testENT_11_BoundsOfTopicsAndSubscriptions(t *testing.T, h *fixture) {
	h.createNews()
	kinds := map[semantics.Kind]string{semantics.TopicKind: news, semantics.SubscriptionKind: eu.Path}
	for kind, path := range kinds {
		for name, bad := range map[string]change{
			"lockDuration":              locksFor(5*time.Second - ms),
			"maxDeliveryCount":          deliversAtMost(0),
			"maxMessageCount":           holdsAtMost(-1),
			"defaultMessageTimeToLive":  livesFor(time.Second - ms),
			"maxSizeInMegabytes":        func(o *semantics.Options) { o.MaxSizeInMegabytes = 81921 },
			"maxMessageSizeInKilobytes": func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 0 },
			"sessionInFlight":           sessionInFlight(1001),
		} {
			if !isOption(kind, name) {
				continue
			}
			options := semantics.Options{}
			bad(&options)
			err := h.topicRefused(semantics.ArgumentOutOfRange, func() error {
				return second(h.broker.UpdateEntity(t.Context(), kind, path, options, []string{name}))
			})
			h.same(err.Details[semantics.DetailField], name)
		}
	}
	_, err := h.broker.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{Overflow: 3}, []string{"overflow"})
	h.wantCode(err, semantics.InvalidArgument)
}

func testENT_16_ImmutableOptionsOfTopics(t *testing.T, h *fixture) {
	h.createNews()
	for _, c := range []struct {
		kind          semantics.Kind
		path, option  string
		options, same semantics.Options
	}{
		{semantics.TopicKind, news, "requiresDuplicateDetection", semantics.Options{RequiresDuplicateDetection: true}, semantics.Options{}},
		{semantics.TopicKind, news, "enablePartitioning", semantics.Options{EnablePartitioning: true}, semantics.Options{}},
		{semantics.SubscriptionKind, eu.Path, "requiresSession", semantics.Options{RequiresSession: true}, semantics.Options{}},
	} {
		c.options.UserMetadata = "not changed either"
		err := h.topicRefused(semantics.PropertyImmutable, func() error {
			return second(h.broker.UpdateEntity(t.Context(), c.kind, c.path, c.options, []string{"userMetadata", c.option}))
		})
		h.same([]string{err.Details[semantics.DetailField], err.Details[semantics.DetailEntity]}, []string{c.option, c.path})
		// which does not change them
		h.ok(second(h.broker.UpdateEntity(t.Context(), c.kind, c.path, c.same, []string{c.option})))
	}
}

// listed returns the names of all entities of a kind, in pages of a size.
func (h *fixture) listed(kind semantics.Kind, topic string, size int) (names []string) {
	h.t.Helper()
	for token, isFirst := "", true; token != "" || isFirst; isFirst = false {
		page, next, err := h.broker.ListEntities(h.t.Context(), kind, topic, size, token)
		h.ok(err)
		if len(page) > size {
			h.t.Fatalf("page of %d holds %d", size, len(page))
		}
		for _, entity := range page {
			h.same(entity.Kind, kind)
			names = append(names, entity.Name)
		}
		token = next
	}
	return names
}

func testENT_17_ListTopics(_ *testing.T, h *fixture) {
	h.same(h.listed(semantics.TopicKind, "", 100), []string(nil))
	topics, queues := []string{"A", "a-b", "a.b", "a/b", "c"}, []string{"a0", "aa", "B", "zz"}
	for i := range topics {
		h.createTopicNamed(topics[(i*3+1)%len(topics)])
	}
	for _, name := range queues {
		h.createNamed(name)
	}
	h.createSubscription(semantics.Source{Path: "A/Subscriptions/b"})
	for _, size := range []int{1, 2, 5, 100} {
		h.same(h.listed(semantics.TopicKind, "", size), topics)
		h.same(h.listed(semantics.QueueKind, "", size), queues)
	}
	h.ok(h.broker.DeleteEntity(h.t.Context(), semantics.TopicKind, "a.b"))
	h.same(h.listed(semantics.TopicKind, "", 100), []string{"A", "a-b", "a/b", "c"})
}

func testENT_17_ListSubscriptions(t *testing.T, h *fixture) {
	h.createTopic()
	h.createTopicNamed("other")
	h.createSubscription(semantics.Source{Path: "other/Subscriptions/eu"})
	names := []string{"A", "a-b", "a.b", "a0", "a_b", "aa", "B", "b1", "zz"}
	var want []string
	for _, name := range names {
		want = append(want, subscription(name).Path)
	}
	for _, i := range []int{3, 7, 5, 1, 8, 2, 6, 4, 0} {
		h.createSubscription(subscription(names[i]))
	}
	for _, size := range []int{1, 3, 8, 9, 10, 100} {
		h.same(h.listed(semantics.SubscriptionKind, "NEWS", size), want)
	}
	all, _, err := h.broker.ListEntities(t.Context(), semantics.SubscriptionKind, news, 0, "")
	h.ok(err)
	h.same(all[8], h.entityOf(subscription("zz")))
	for _, topic := range []string{"missing", "missing/other"} {
		_, _, err := h.broker.ListEntities(t.Context(), semantics.SubscriptionKind, topic, 0, "")
		h.wantCode(err, semantics.EntityNotFound)
	}
	h.create()
	_, _, err = h.broker.ListEntities(t.Context(), semantics.SubscriptionKind, orders.Path, 0, "")
	h.wantCode(err, semantics.EntityNotFound)
}
