package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Where an entity may forward to.
var forwardEntityTests = []ruleTest{
	testENT_13_DestinationsAtCreation,
	testENT_13_DestinationsAtUpdate,
	testENT_13_BadPaths,
	testENT_13_Hints,
	testENT_13_NotWithSessions,
	testENT_13_WhatStaysIsNotAskedAgain,
	testENT_7_ForwardingOptionsOfKinds,
	testENT_14_AutoDeleteIsNever,
	testENT_15_AutoDeleteWithDeadLetters,
	testENT_6_EnsureForwarding,
}

// forwardingOptions are those that a kind has.
func forwardingOptions(kind semantics.Kind) []string {
	if kind == semantics.TopicKind {
		return []string{"unmatchedTo"}
	}
	return []string{"forwardTo", "forwardDeadLetteredMessagesTo"}
}

// to has an entity forward to a path by one of the options.
func to(option, path string) semantics.Options {
	switch option {
	case "forwardTo":
		return semantics.Options{ForwardTo: path}
	case "forwardDeadLetteredMessagesTo":
		return semantics.Options{ForwardDeadLetteredMessagesTo: path}
	default:
		return semantics.Options{UnmatchedTo: path}
	}
}

// forEachForwarding runs a test for each option of each kind, with the path of an entity of the kind that is not there
// yet.
func (h *fixture) forEachForwarding(test func(kind semantics.Kind, path, option string)) {
	h.t.Helper()
	h.createTopicNamed("parent")
	for kind, path := range map[semantics.Kind]string{
		semantics.QueueKind: "subject", semantics.TopicKind: "subject", semantics.SubscriptionKind: "parent/Subscriptions/subject",
	} {
		for _, option := range forwardingOptions(kind) {
			test(kind, path, option)
			h.ok(h.broker.DeleteEntity(h.t.Context(), kind, path))
		}
	}
}

func testENT_13_DestinationsAtCreation(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopicNamed("topic")
	h.forEachForwarding(func(kind semantics.Kind, path, option string) {
		for _, bad := range []string{"missing", "SUBJECT", "parent/Subscriptions/subject", "topic/subscriptions/eu"} {
			_, err := h.broker.CreateEntity(t.Context(), kind, path, to(option, bad), []string{option})
			e := h.wantCode(err, semantics.ForwardDestinationInvalid)
			h.same(e.Details[semantics.DetailField], option)
			h.wantCode(h.get(kind, path), semantics.EntityNotFound)
		}
		for _, good := range []string{"queue", "TOPIC", ""} {
			created, err := h.broker.CreateEntity(t.Context(), kind, path, to(option, good), []string{option})
			h.ok(err)
			// as it was given
			h.same(created.Options.Differences(to(option, good), []string{option}), []semantics.Difference(nil))
			if good != "" {
				h.ok(h.broker.DeleteEntity(t.Context(), kind, path))
			}
		}
	})
}

func testENT_13_DestinationsAtUpdate(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopicNamed("topic")
	h.forEachForwarding(func(kind semantics.Kind, path, option string) {
		_, err := h.broker.UpdateEntity(t.Context(), kind, path, to(option, "queue"), []string{option})
		h.wantCode(err, semantics.EntityNotFound)
		h.ok(h.make(kind, path))
		before, err := h.broker.GetEntity(t.Context(), kind, path)
		h.ok(err)
		for _, bad := range []string{"missing", "SUBJECT", "parent/Subscriptions/subject"} {
			_, err := h.broker.UpdateEntity(t.Context(), kind, path, to(option, bad), []string{"userMetadata", option})
			h.same(h.wantCode(err, semantics.ForwardDestinationInvalid).Details[semantics.DetailField], option)
		}
		after, err := h.broker.GetEntity(t.Context(), kind, path)
		h.ok(err)
		h.same(after, before)
		for _, good := range []string{"queue", "TOPIC", ""} {
			updated, err := h.broker.UpdateEntity(t.Context(), kind, path, to(option, good), []string{option})
			h.ok(err)
			h.same(updated.Options.Differences(to(option, good), []string{option}), []semantics.Difference(nil))
			read, err := h.broker.GetEntity(t.Context(), kind, path)
			h.ok(err)
			h.same(read.Options, updated.Options)
		}
	})
}

func testENT_13_BadPaths(t *testing.T, h *fixture) {
	h.createNamed("team/queue")
	h.forEachForwarding(func(kind semantics.Kind, path, option string) {
		for _, bad := range []string{"a//b", "queue?", "/queue", "queue/$deadletterqueue", "a\xffb"} {
			_, err := h.broker.CreateEntity(t.Context(), kind, path, to(option, bad), []string{option})
			h.same(h.wantCode(err, semantics.InvalidArgument).Details[semantics.DetailField], option)
		}
		h.ok(h.make(kind, path))
		_, err := h.broker.UpdateEntity(t.Context(), kind, path, to(option, "a//b"), []string{option})
		h.same(h.wantCode(err, semantics.InvalidArgument).Details[semantics.DetailField], option)
		// ENT-3
		updated, err := h.broker.UpdateEntity(t.Context(), kind, path, to(option, `team\queue`), []string{option})
		h.ok(err)
		h.same(updated.Options.Differences(to(option, "team/queue"), []string{option}), []semantics.Difference(nil))
	})
}

// The API calls an entity "queues/..." where only the entity is named.
func testENT_13_Hints(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopicNamed("topic")
	for path, hint := range map[string]string{
		"queues/queue": "leave queues/ out", "topics/topic": "leave topics/ out", "topics/other": "create it first", "other": "create it first",
	} {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "subject", to("forwardTo", path), []string{"forwardTo"})
		want := `forwardTo is "` + path + `", and there is no such queue or topic; ` + hint
		h.same(h.wantCode(err, semantics.ForwardDestinationInvalid).Message, want)
	}
}

func testENT_13_NotWithSessions(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopic()
	for kind, path := range map[semantics.Kind]string{semantics.QueueKind: "subject", semantics.SubscriptionKind: eu.Path} {
		options := semantics.Options{RequiresSession: true, ForwardTo: "queue"}
		_, err := h.broker.CreateEntity(t.Context(), kind, path, options, []string{"requiresSession", "forwardTo"})
		h.same(h.wantCode(err, semantics.ForwardDestinationInvalid).Details[semantics.DetailField], "forwardTo")
		// dead letters have none (SESS-34)
		options = semantics.Options{RequiresSession: true, ForwardDeadLetteredMessagesTo: "queue"}
		_, err = h.broker.CreateEntity(t.Context(), kind, path, options, []string{"requiresSession", "forwardDeadLetteredMessagesTo"})
		h.ok(err)
		_, err = h.broker.UpdateEntity(t.Context(), kind, path, to("forwardTo", "queue"), []string{"forwardTo"})
		h.same(h.wantCode(err, semantics.ForwardDestinationInvalid).Details[semantics.DetailField], "forwardTo")
	}
	h.createNamed("plain")
	options := semantics.Options{RequiresSession: true, ForwardTo: "queue"}
	_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "plain", options, []string{"requiresSession", "forwardTo"})
	h.wantCode(err, semantics.PropertyImmutable)
}

func testENT_13_WhatStaysIsNotAskedAgain(t *testing.T, h *fixture) {
	h.createForwarding()
	h.deleteQueue(archive)
	options := semantics.Options{ForwardTo: archive.Path, MaxDeliveryCount: 7}
	updated, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, orders.Path, options, []string{"forwardTo", "maxDeliveryCount"})
	h.ok(err)
	h.same(updated.Options.MaxDeliveryCount, int64(7))
	_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, orders.Path, to("forwardDeadLetteredMessagesTo", archive.Path), []string{"forwardDeadLetteredMessagesTo"})
	h.wantCode(err, semantics.ForwardDestinationInvalid)
}

func testENT_7_ForwardingOptionsOfKinds(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopic()
	h.createSubscription(eu)
	for kind, path := range map[semantics.Kind]string{semantics.QueueKind: "queue", semantics.TopicKind: news, semantics.SubscriptionKind: eu.Path} {
		for _, option := range []string{"forwardTo", "forwardDeadLetteredMessagesTo", "unmatchedTo"} {
			if !isOption(kind, option) {
				_, err := h.broker.UpdateEntity(t.Context(), kind, path, to(option, "queue"), []string{option})
				h.wantCode(err, semantics.InvalidArgument)
			}
		}
	}
}

func testENT_14_AutoDeleteIsNever(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopic()
	for kind, path := range map[semantics.Kind]string{semantics.QueueKind: "subject", semantics.SubscriptionKind: eu.Path} {
		idle := func(want time.Duration) {
			t.Helper()
			e, err := h.broker.GetEntity(t.Context(), kind, path)
			h.ok(err)
			h.same(e.Options.AutoDeleteOnIdle, want)
		}
		update := func(o semantics.Options, names ...string) {
			t.Helper()
			h.ok(second(h.broker.UpdateEntity(t.Context(), kind, path, o, names)))
		}
		options := semantics.Options{AutoDeleteOnIdle: time.Hour, ForwardTo: "queue"}
		ensured, err := h.broker.EnsureEntity(t.Context(), kind, path, options, []string{"autoDeleteOnIdle", "forwardTo"})
		h.ok(err)
		h.same(ensured.Entity.Options.AutoDeleteOnIdle, semantics.Never)
		update(options, "autoDeleteOnIdle")
		idle(semantics.Never)
		// which ends the forwarding
		update(semantics.Options{AutoDeleteOnIdle: time.Hour}, "autoDeleteOnIdle", "forwardTo")
		idle(time.Hour)
		update(options, "userMetadata", "forwardTo")
		idle(semantics.Never)
		ensured, err = h.broker.EnsureEntity(t.Context(), kind, path, options, []string{"autoDeleteOnIdle", "forwardTo"})
		h.ok(err)
		h.same(ensured.Differences, []semantics.Difference(nil)) // it would be made so again
	}
}

func testENT_15_AutoDeleteWithDeadLetters(t *testing.T, h *fixture) {
	h.createNamed("queue")
	h.createTopic()
	names := []string{"autoDeleteOnIdle", "forwardDeadLetteredMessagesTo"}
	options := semantics.Options{AutoDeleteOnIdle: time.Hour, ForwardDeadLetteredMessagesTo: "queue"}
	for kind, path := range map[semantics.Kind]string{semantics.QueueKind: "subject", semantics.SubscriptionKind: eu.Path} {
		created, err := h.broker.CreateEntity(t.Context(), kind, path, options, names)
		h.ok(err)
		h.same(created.Options.Differences(options, names), []semantics.Difference(nil))
		updated, err := h.broker.UpdateEntity(t.Context(), kind, path, options, names)
		h.ok(err)
		h.same(updated.Options.Differences(options, names), []semantics.Difference(nil))
	}
}

func testENT_6_EnsureForwarding(t *testing.T, h *fixture) {
	h.createForwarding()
	h.createNamed(attic.Path)
	asked := to("forwardTo", attic.Path)
	ensured, err := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, orders.Path, asked, []string{"forwardTo"})
	h.ok(err)
	h.same(ensured.Differences, []semantics.Difference{{Option: "forwardTo", Present: archive.Path, Asked: attic.Path}})
	h.sendTexts(1)
	h.forward()
	h.wantIDs(archive, "m1")
}
