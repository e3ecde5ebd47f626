package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var optionTests = []ruleTest{
	testENT_6_CreateGivesDefaults,
	testENT_7_UpdateChangesTheNamedOptions,
	testENT_7_UpdateIsRefusedWhole,
	testENT_10_UpdateLeavesLocksAlone,
	testENT_11_BoundsOfOptions,
	testENT_12_TenDeliveriesByDefault,
	testENT_16_ImmutableOptions,
	testDUR_3_LevelThatTheStoreLacksIsRefused,
	testDUR_1_EntityAsksForMemory,
}

// The stores of these tests have no replicas. Each says in its own words why it cannot have the level.
func testDUR_3_LevelThatTheStoreLacksIsRefused(t *testing.T, h *fixture) {
	h.createTopic()
	h.create()
	h.ok(h.make(semantics.SubscriptionKind, eu.Path))
	asked, names := semantics.Options{Durability: semantics.AtReplica}, []string{"durability"}
	for path, kind := range map[string]semantics.Kind{
		"orders": semantics.QueueKind, "news": semantics.TopicKind, eu.Path: semantics.SubscriptionKind,
	} {
		_, err := h.broker.UpdateEntity(t.Context(), kind, path, asked, names)
		h.same(semantics.CodeOf(err), semantics.PreconditionFailed)
		h.same(semantics.AsError(err).Details[semantics.DetailField], "durability")
		present, err := h.broker.GetEntity(t.Context(), kind, path)
		h.ok(err)
		h.same(present.Options.Durability, semantics.AsSidecar)
		_, err = h.broker.CreateEntity(t.Context(), kind, path+"2", asked, names)
		h.same(semantics.CodeOf(err), semantics.PreconditionFailed)
		_, err = h.broker.GetEntity(t.Context(), kind, path+"2")
		h.wantCode(err, semantics.EntityNotFound)
	}
}

// Entities may ask for what every store has, and for nothing again. Nothing else about them changes.
func testDUR_1_EntityAsksForMemory(t *testing.T, h *fixture) {
	h.createTopic()
	h.create()
	h.ok(h.make(semantics.SubscriptionKind, eu.Path))
	for _, level := range []semantics.EntityDurability{semantics.AtMemory, semantics.AsSidecar, semantics.AtMemory} {
		for path, kind := range map[string]semantics.Kind{
			"orders": semantics.QueueKind, "news": semantics.TopicKind, eu.Path: semantics.SubscriptionKind,
		} {
			got, err := h.broker.UpdateEntity(t.Context(), kind, path, semantics.Options{Durability: level}, []string{"durability"})
			h.ok(err)
			h.same(got.Options.Durability, level)
			h.same(got.Kind, kind)
		}
		h.send(text("a"), text("b"))
		_, err := h.broker.Send(t.Context(), semantics.Target{Path: "news", IsTopic: true}, []*semantics.Message{text("c")})
		h.ok(err)
		for source, n := range map[semantics.Source]int{orders: 2, eu: 1} {
			codes, err := h.broker.Complete(t.Context(), source, tokensOf(h.receive(source, n)...))
			h.ok(err)
			h.same(codes, make([]semantics.Code, n))
		}
	}
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
}

func testENT_6_CreateGivesDefaults(t *testing.T, h *fixture) {
	queue, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
	h.ok(err)
	want := semantics.Entity{
		Name: "orders",
		Options: semantics.Options{
			LockDuration: time.Minute, MaxSizeInMegabytes: 1024, MaxMessageSizeInKilobytes: 256,
			DefaultMessageTimeToLive: semantics.Never, MaxDeliveryCount: 10, EnableBatchedOperations: true,
			DuplicateDetectionHistoryTimeWindow: 10 * time.Minute, DuplicateHistoryMaxEntries: 1_000_000, DeadLetterTTL: semantics.Never,
			Partitions: 1, SessionInFlight: 100, SessionStateTTL: semantics.Never, AutoDeleteOnIdle: semantics.Never,
			// what no queue has stands at its default
			SupportOrdering: true, DeadLetteringOnFilterEvaluationExceptions: true,
		},
		CreatedAt: h.Now(), UpdatedAt: h.Now(), AccessedAt: h.Now(),
	}
	h.same(queue, want)
	queue, err = h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same(queue, want)

	given := semantics.Options{
		LockDuration: 5 * time.Second, MaxSizeInMegabytes: 81920, MaxMessageSizeInKilobytes: 102400,
		DefaultMessageTimeToLive: 1234567 * ms, DeadLetteringOnMessageExpiration: true, MaxDeliveryCount: math.MaxInt32,
		MaxMessageCount: math.MaxInt64, Status: semantics.StatusReceiveDisabled, UserMetadata: "Für wen? \"Alle\" \U0001D11E\n",
		RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 20 * time.Second, DuplicateHistoryMaxEntries: 1,
		ForgetOnCancel: true, EnablePartitioning: true, RedeliveryDelay: 7 * 24 * time.Hour, ExpireDeferred: true, DeadLetterTTL: 1001 * ms,
		RequiresSession: true, SessionInFlight: 7, OnDisconnect: semantics.ReleaseOnDisconnect, SessionExpiryMode: semantics.ExpireSession,
		SessionOnDeadLetter: semantics.BlockSession, AcceptNext: semantics.AcceptNextForbidden, SessionStateTTL: 1002 * ms,
		AutoDeleteOnIdle: 5*time.Minute + ms, AutoDeleteKeepsDeadLetters: true, ForwardDeadLetteredMessagesTo: "ORDERS",
		Partitions: 1, Durability: semantics.AtMemory,
	}
	_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, "other", given, semantics.OptionNames(semantics.QueueKind))
	h.ok(err)
	queue, err = h.broker.GetEntity(t.Context(), semantics.QueueKind, "other")
	h.ok(err)
	given.SupportOrdering, given.DeadLetteringOnFilterEvaluationExceptions = true, true
	h.same(queue.Options, given)
}

func testENT_7_UpdateChangesTheNamedOptions(t *testing.T, h *fixture) {
	before := h.create(func(o *semantics.Options) { o.UserMetadata = "stays" })
	h.Advance(ms)
	to := semantics.Options{MaxDeliveryCount: 3, DefaultMessageTimeToLive: time.Hour, UserMetadata: "not named"}
	got, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", to, []string{"maxDeliveryCount", "defaultMessageTimeToLive"})
	h.ok(err)
	want := before
	want.Options.MaxDeliveryCount, want.Options.DefaultMessageTimeToLive = 3, time.Hour
	want.UpdatedAt = h.Now()
	got.AccessedAt = want.AccessedAt
	h.same(got, want)
	kept, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	kept.AccessedAt = want.AccessedAt
	h.same(kept, want)
}

func testENT_7_UpdateIsRefusedWhole(t *testing.T, h *fixture) {
	h.create()
	good := semantics.Options{MaxDeliveryCount: 3}
	for _, c := range []struct {
		code  semantics.Code
		names []string
	}{
		{semantics.InvalidArgument, nil},
		{semantics.InvalidArgument, []string{"maxDeliveryCount", "unknown"}},
		{semantics.ArgumentOutOfRange, []string{"maxDeliveryCount", "lockDuration"}}, // it is 0
	} {
		h.refused(c.code, func() error {
			_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", good, c.names)
			return err
		})
	}
}

func testENT_10_UpdateLeavesLocksAlone(_ *testing.T, h *fixture) {
	h.create(locksFor(30 * time.Second))
	h.sendTexts(2)
	before := h.receiveOne(orders)
	h.update(locksFor(10*time.Second), "lockDuration")
	after := h.receiveOne(orders)
	h.same([]time.Time{before.LockedUntil, after.LockedUntil}, []time.Time{h.Now().Add(30 * time.Second), h.Now().Add(10 * time.Second)})
	h.Advance(30*time.Second - ms)
	h.complete(orders, before)
	h.lost(orders, after)
}

func testENT_11_BoundsOfOptions(t *testing.T, h *fixture) {
	h.create()
	bounds := map[string]struct{ good, bad []change }{
		"lockDuration": {
			good: []change{locksFor(5 * time.Second), locksFor(5 * time.Minute)},
			bad:  []change{locksFor(5*time.Second - ms), locksFor(5*time.Minute + ms), locksFor(0)},
		},
		"maxDeliveryCount": {
			good: []change{deliversAtMost(1), deliversAtMost(math.MaxInt32)},
			bad:  []change{deliversAtMost(0), deliversAtMost(-1), deliversAtMost(math.MaxInt32 + 1)},
		},
		"defaultMessageTimeToLive": {
			good: []change{livesFor(time.Second), livesFor(semantics.Never)},
			bad:  []change{livesFor(time.Second - ms), livesFor(0), livesFor(-time.Second)},
		},
		"maxSizeInMegabytes": {
			good: []change{func(o *semantics.Options) { o.MaxSizeInMegabytes = 1 }, func(o *semantics.Options) { o.MaxSizeInMegabytes = 81920 }},
			bad:  []change{func(o *semantics.Options) { o.MaxSizeInMegabytes = 0 }, func(o *semantics.Options) { o.MaxSizeInMegabytes = 81921 }},
		},
		"maxMessageSizeInKilobytes": {
			good: []change{func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 }, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 102400 }},
			bad:  []change{func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 0 }, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 102401 }},
		},
		"maxMessageCount": {
			good: []change{func(o *semantics.Options) { o.MaxMessageCount = 1 }, func(o *semantics.Options) { o.MaxMessageCount = math.MaxInt64 }},
			bad:  []change{func(o *semantics.Options) { o.MaxMessageCount = -1 }},
		},
		"duplicateDetectionHistoryTimeWindow": {
			good: []change{remembersFor(20 * time.Second), remembersFor(7 * 24 * time.Hour)},
			bad:  []change{remembersFor(20*time.Second - ms), remembersFor(7*24*time.Hour + ms), remembersFor(0)},
		},
		"duplicateHistoryMaxEntries": {
			good: []change{remembersAtMost(1), remembersAtMost(math.MaxInt64)},
			bad:  []change{remembersAtMost(0), remembersAtMost(-1)},
		},
		"redeliveryDelay": {
			good: []change{delaysFor(0), delaysFor(7 * 24 * time.Hour)},
			bad:  []change{delaysFor(-ms), delaysFor(7*24*time.Hour + ms)},
		},
		"deadLetterTtl": {
			good: []change{keepsDeadFor(time.Second), keepsDeadFor(semantics.Never)},
			bad:  []change{keepsDeadFor(time.Second - ms), keepsDeadFor(0)},
		},
		"sessionInFlight": {
			good: []change{sessionInFlight(1), sessionInFlight(1000)},
			bad:  []change{sessionInFlight(0), sessionInFlight(-1), sessionInFlight(1001)},
		},
		"sessionStateTtl": {
			good: []change{keepsStateFor(time.Second), keepsStateFor(semantics.Never)},
			bad:  []change{keepsStateFor(time.Second - ms), keepsStateFor(0), keepsStateFor(-time.Second)},
		},
		"userMetadata": {
			good: []change{func(o *semantics.Options) { o.UserMetadata = strings.Repeat("ü", 1024) }},
			bad:  []change{func(o *semantics.Options) { o.UserMetadata = strings.Repeat("u", 1025) }},
		},
	}
	for name, b := range bounds {
		for i, c := range b.good {
			options := semantics.Options{}
			c(&options)
			_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{name})
			h.ok(err)
			_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, fmt.Sprintf("%s%d", name, i), options, []string{name})
			h.ok(err)
		}
		for _, c := range b.bad {
			options := semantics.Options{}
			c(&options)
			err := h.refused(semantics.ArgumentOutOfRange, func() error {
				_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{name})
				return err
			})
			h.same(err.Details[semantics.DetailField], name)
			_, failed := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "never", options, []string{name})
			h.wantCode(failed, semantics.ArgumentOutOfRange)
		}
	}
	_, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "never")
	h.wantCode(err, semantics.EntityNotFound)
}

func testENT_12_TenDeliveriesByDefault(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	for range 10 {
		h.abandon(orders, h.receiveOne(orders))
	}
	h.wantCounts(0, 0, 1)
}

func testENT_16_ImmutableOptions(t *testing.T, h *fixture) {
	h.create(detectsDuplicates, func(o *semantics.Options) { o.EnablePartitioning = true })
	h.createNamed("plain")
	for _, c := range []struct {
		queue, option string
		options       semantics.Options
	}{
		{"orders", "requiresDuplicateDetection", semantics.Options{MaxDeliveryCount: 3}},
		{"orders", "enablePartitioning", semantics.Options{MaxDeliveryCount: 3}},
		{"plain", "requiresDuplicateDetection", semantics.Options{MaxDeliveryCount: 3, RequiresDuplicateDetection: true}},
		{"plain", "enablePartitioning", semantics.Options{MaxDeliveryCount: 3, EnablePartitioning: true}},
	} {
		before, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, c.queue)
		h.ok(err)
		h.Advance(ms)
		_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, c.queue, c.options, []string{"maxDeliveryCount", c.option})
		e := h.wantCode(err, semantics.PropertyImmutable)
		h.same([]string{e.Details[semantics.DetailField], e.Details[semantics.DetailEntity]}, []string{c.option, c.queue})
		after, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, c.queue)
		h.ok(err)
		h.same(after, before) // the changeable one neither
	}
	// Naming one with the value it has does not change it.
	same := semantics.Options{MaxDeliveryCount: 3, RequiresDuplicateDetection: true, EnablePartitioning: true}
	queue, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", same, []string{"maxDeliveryCount", "requiresDuplicateDetection", "enablePartitioning"})
	h.ok(err)
	h.same(queue.Options.MaxDeliveryCount, int64(3))
	_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "missing", same, []string{"enablePartitioning"})
	h.wantCode(err, semantics.EntityNotFound)
}
