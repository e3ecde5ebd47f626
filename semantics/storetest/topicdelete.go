package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

var topicDeleteTests = []ruleTest{
	testENT_8_TopicTakesEverythingAlong,
	testENT_8_SubscriptionGoesAlone,
	testENT_8_CopiesElsewhereKeepTheirBodies,
	testENT_8_TopicEndsWaits,
	testENT_8_SubscriptionEndsWaits,
	testENT_8_MissingTopicAndSubscription,
	testENT_8_KindIsPartOfTheName,
	testENT_9_RecreatedTopicIsEmpty,
	testENT_9_RecreatedSubscriptionIsEmpty,
	testENT_9_DeletionAmongConcurrentSends,
}

// sourceVerbs calls the verbs on a subscription that need only its existence.
func (h *fixture) sourceVerbs(source semantics.Source) map[string]error {
	ctx, tokens, errs := h.t.Context(), []semantics.LockToken{semantics.NewLockToken()}, map[string]error{}
	for _, s := range []semantics.Source{source, deadOf(source), undelivered(source)} {
		at := " " + s.SubQueue.String()
		_, errs["receive"+at] = h.broker.Receive(ctx, s, broker.ReceiveOptions{MaxMessages: 1})
		_, errs["wait"+at] = h.broker.Receive(ctx, s, broker.ReceiveOptions{MaxMessages: 1, MaxWait: patience})
		errs["receive deferred"+at] = h.receiveDeferred(s, 1)
		errs["receive by number"+at] = h.receiveNumbers(s, 1)
		errs["reactivate"+at] = h.reactivate(s, 1)
		_, errs["complete"+at] = h.broker.Complete(ctx, s, tokens)
		_, errs["abandon"+at] = h.broker.Abandon(ctx, s, tokens, semantics.AbandonOptions{})
		_, errs["defer"+at] = h.broker.Defer(ctx, s, tokens, nil)
		_, errs["release"+at] = h.broker.Release(ctx, s, tokens)
		_, errs["renew"+at] = h.broker.RenewLocks(ctx, s, tokens)
		_, errs["purge"+at] = h.broker.Purge(ctx, s, broker.PurgeOptions{Deferred: true})
		_, errs["delete by number"+at] = h.broker.DeleteBySequence(ctx, s, []int64{1})
	}
	held := source
	held.SessionLock = semantics.NewLockToken()
	_, errs["peek dead"] = h.broker.Peek(ctx, deadOf(source), 0, 1, semantics.ShowAll)
	_, errs["dead-letter"] = h.broker.DeadLetter(ctx, source, tokens, why("", ""))
	_, _, errs["resubmit"] = h.broker.Resubmit(ctx, deadOf(source), broker.ResubmitOptions{})
	_, errs["subscribe"] = h.broker.Subscribe(ctx, source, stream.DefaultOptions())
	_, errs["accept"] = h.broker.AcceptSession(ctx, source.Path, broker.AcceptOptions{SessionID: "s"})
	_, errs["accept next"] = h.broker.AcceptSession(ctx, source.Path, broker.AcceptOptions{})
	_, errs["renew session"] = h.broker.RenewSessionLock(ctx, held)
	errs["close session"] = h.broker.CloseSession(ctx, held)
	_, errs["state"] = h.broker.SessionState(ctx, held)
	_, errs["set state"] = h.trySetState(held, []byte("x"))
	_, _, errs["list sessions"] = h.broker.ListSessions(ctx, source.Path, 0, "", semantics.SessionFilter{})
	errs["unblock"] = h.broker.UnblockSession(ctx, source.Path, "s")
	errs["dead-letter the rest"] = h.broker.DeadLetterRest(ctx, source.Path, "s")
	return errs
}

func testENT_8_TopicTakesEverythingAlong(t *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.createSubscription(subscription("tales"), hasSessions)
	h.publish(of("s", text("a")), of("s", text("b")), later("c", h.in(time.Hour)))
	h.deadLetterFrom(eu, h.receiveOne(eu))
	locked := h.receiveOne(eu)
	h.acceptOf(subscription("tales"), "s")
	h.deleteTopic()
	h.wantCode(h.get(semantics.TopicKind, news), semantics.EntityNotFound)
	h.wantCode(second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("d")})), semantics.EntityNotFound)
	h.wantCode(h.cancelPublished(3), semantics.EntityNotFound)
	for _, source := range []semantics.Source{eu, us, subscription("tales")} {
		h.wantCode(h.get(semantics.SubscriptionKind, source.Path), semantics.EntityNotFound)
		h.wantAll(h.sourceVerbs(source), semantics.EntityNotFound)
	}
	h.wantCode(second(h.broker.Complete(t.Context(), eu, tokensOf(locked))), semantics.EntityNotFound)
	_, _, err := h.broker.ListEntities(t.Context(), semantics.SubscriptionKind, news, 0, "")
	h.wantCode(err, semantics.EntityNotFound)
	h.wantCode(h.broker.ActivateDue(t.Context(), news), semantics.EntityNotFound)
}

func testENT_8_SubscriptionGoesAlone(_ *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a", "b")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.deleteSubscription(eu)
	h.wantCode(h.get(semantics.SubscriptionKind, eu.Path), semantics.EntityNotFound)
	h.wantAll(h.sourceVerbs(eu), semantics.EntityNotFound)
	h.wantIDs(us, "a", "b")
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 4, Subscriptions: 1})
	h.publishTexts("c")
	h.wantIDs(us, "a", "b", "c")
}

// Copies in other subscriptions are whole after one is deleted, whether they share what is stored or not.
func testENT_8_CopiesElsewhereKeepTheirBodies(t *testing.T, h *fixture) {
	h.createNews()
	var messages []*semantics.Message
	for i := range 40 {
		messages = append(messages, &semantics.Message{MessageID: strconv.Itoa(i), Body: bytes.Repeat([]byte{byte(i)}, 600)})
	}
	h.publish(messages...)
	h.complete(eu, h.receive(eu, 5)...)
	h.deleteSubscription(eu)
	for i, m := range h.receive(us, 40) {
		if !bytes.Equal(m.Body, messages[i].Body) {
			t.Errorf("copy %d has %d bytes, %v", i, len(m.Body), m.Unreadable)
		}
		h.complete(us, m)
	}
}

func testENT_8_TopicEndsWaits(t *testing.T, h *fixture) {
	h.createNews()
	s := h.newSidecar(h.Store)
	waits := []<-chan outcome{s.waiting(t.Context(), eu, 1), s.waiting(t.Context(), us, 1), s.waiting(t.Context(), deadUS, 1)}
	h.deleteTopic()
	for _, wait := range waits {
		h.wantCode(h.await(wait).err, semantics.EntityNotFound)
	}
}

func testENT_8_SubscriptionEndsWaits(t *testing.T, h *fixture) {
	h.createNews()
	s := h.newSidecar(h.Store)
	here, dead, there := s.waiting(t.Context(), eu, 1), s.waiting(t.Context(), deadEU, 1), s.waiting(t.Context(), us, 1)
	h.deleteSubscription(eu)
	h.wantCode(h.await(here).err, semantics.EntityNotFound)
	h.wantCode(h.await(dead).err, semantics.EntityNotFound)
	h.publishTexts("a")
	h.awaitNumbers(there, 1) // the others go on waiting
}

func testENT_8_MissingTopicAndSubscription(t *testing.T, h *fixture) {
	h.createTopicNamed("other")
	h.createSubscription(semantics.Source{Path: "other/Subscriptions/eu"})
	missing := func(path string, errs ...error) {
		h.t.Helper()
		for _, err := range errs {
			h.same(h.wantCode(err, semantics.EntityNotFound).Details[semantics.DetailEntity], path)
		}
	}
	manage := func(kind semantics.Kind, path string) []error {
		return []error{
			h.get(kind, path), h.broker.DeleteEntity(t.Context(), kind, path), second(h.broker.Runtime(t.Context(), kind, path)),
			second(h.broker.UpdateEntity(t.Context(), kind, path, semantics.Options{}, []string{"userMetadata"})),
		}
	}
	missing(news, manage(semantics.TopicKind, news)...)
	missing(eu.Path, manage(semantics.SubscriptionKind, eu.Path)...)
	h.createTopic()
	missing(eu.Path, manage(semantics.SubscriptionKind, eu.Path)...)
	h.wantAll(h.sourceVerbs(eu), semantics.EntityNotFound)
}

func testENT_8_KindIsPartOfTheName(t *testing.T, h *fixture) {
	h.createNews()
	h.create()
	for path, kind := range map[string]semantics.Kind{news: semantics.QueueKind, orders.Path: semantics.TopicKind} {
		h.wantCode(h.get(kind, path), semantics.EntityNotFound)
		h.wantCode(second(h.broker.Runtime(t.Context(), kind, path)), semantics.EntityNotFound)
		h.wantCode(h.broker.DeleteEntity(t.Context(), kind, path), semantics.EntityNotFound)
		h.wantCode(second(h.broker.UpdateEntity(t.Context(), kind, path, semantics.Options{}, []string{"userMetadata"})), semantics.EntityNotFound)
	}
	for _, target := range []semantics.Target{semantics.ToQueue(news), semantics.ToTopic(orders.Path)} {
		h.wantCode(second(h.broker.Send(t.Context(), target, []*semantics.Message{text("a")})), semantics.EntityNotFound)
		_, errs := h.broker.SendEach(t.Context(), target, [][]*semantics.Message{{text("a")}, {text("b")}})
		for _, err := range errs {
			h.wantCode(err, semantics.EntityNotFound)
		}
	}
	h.wantIDs(eu)
	h.same(h.runtime(), semantics.Runtime{})
}

func testENT_9_RecreatedTopicIsEmpty(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.publish(text("a"), text("b"), later("c", h.in(time.Hour)))
	h.deadLetterFrom(eu, h.receiveOne(eu))
	locked := h.receiveOne(eu)
	h.createRule(eu, onSubject("r", "s"))
	h.deleteTopic()
	h.Advance(ms)
	topic := h.createTopic(detectsDuplicates)
	h.same(topic.CreatedAt, h.Now())
	h.same(h.topicRuntime(), semantics.Runtime{}) // not even the subscriptions
	h.wantNumbers(h.peek(semantics.Source{Path: news}))
	h.wantCode(h.get(semantics.SubscriptionKind, eu.Path), semantics.EntityNotFound)
	h.createSubscription(eu)
	h.same(h.runtimeOf(eu), semantics.Runtime{})
	h.same(ruleNames(h.rules(eu)), []string{"$Default"})
	h.wantNumbers(h.peek(deadEU))
	codes, err := h.broker.Complete(h.t.Context(), eu, tokensOf(locked))
	h.wantCodes(codes, err, semantics.MessageLockLost)
	h.same(h.publish(text("a")), []semantics.Stored{stored(1)}) // the history is gone too
	h.wantNumbers(h.receive(eu, 9), 1)
	h.Advance(time.Hour)
	h.activate()
	h.same(h.runtimeOf(eu).Active, int64(1))
}

func testENT_9_RecreatedSubscriptionIsEmpty(_ *testing.T, h *fixture) {
	h.createNews()
	h.createRule(eu, onSubject("r", "s"))
	h.publishTexts("a", "b", "c")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	locked := h.receiveOne(eu)
	h.deleteSubscription(eu)
	h.Advance(ms)
	h.same(h.createSubscription(eu).CreatedAt, h.Now())
	h.same(h.runtimeOf(eu), semantics.Runtime{})
	h.wantIDs(eu)
	h.wantIDs(deadEU)
	h.same(ruleNames(h.rules(eu)), []string{"$Default"})
	codes, err := h.broker.Complete(h.t.Context(), eu, tokensOf(locked))
	h.wantCodes(codes, err, semantics.MessageLockLost)
	h.same(h.publish(text("d")), []semantics.Stored{stored(4)}) // the topic goes on
	got := h.receiveOne(eu)
	h.same([]int64{got.SequenceNumber, got.EnqueuedSequenceNumber}, []int64{1, 4})
	h.Advance(2 * lock)
	h.same(h.runtimeOf(eu).Available, int64(1))
}

// A topic that is deleted and made again while messages are sent to it: every send is refused or in the topic of its
// time.
func testENT_9_DeletionAmongConcurrentSends(t *testing.T, h *fixture) {
	h.races()
	ctx, stop := context.WithCancel(t.Context())
	sent := make(chan struct{})
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for s, broker := range h.sidecars() {
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text(fmt.Sprintf("%d/%d", s, i))})
				switch code := semantics.CodeOf(err); code {
				case "":
					select {
					case sent <- struct{}{}:
					default:
					}
				case semantics.EntityNotFound:
				default:
					t.Errorf("send: %v", err)
				}
			}
		})
	}
	for range 10 {
		h.createNews()
		for range 3 {
			select {
			case <-sent:
			case <-time.After(patience):
				t.Fatal("no messages are sent")
			}
		}
		h.deleteTopic()
	}
	stop()
	work.Wait()
	h.createNews()
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 2})
	h.same(h.publish(text("a")), []semantics.Stored{stored(1)})
	h.wantNumbers(h.receive(eu, 9), 1)
}
