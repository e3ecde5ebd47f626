package proxy_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Each subscription has its own copy, with its own number, lock and count, and the topic's number on it.
func TestTOPIC_1_CopiesAreIndependent(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.tellAll(t, news, text("only in eu and us"))
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/late", `{}`)
		sent := w.tellAll(t, news, text("one"), text("two"))
		if sent[0].GetSequenceNumber() != 2 || sent[1].GetSequenceNumber() != 3 || sent[0].GetMessageId() == "" {
			t.Errorf("the topic gave %v", sent)
		}
		w.wantIn(t, eu, "only in eu and us one two")
		w.wantIn(t, us, "only in eu and us one two")
		late := w.takeFrom(t, news+"/subscriptions/late", 10) // nothing from before it was there (TOPIC-4)
		if texts(late) != "one two" || late[0].GetSequenceNumber() != 1 || late[0].GetEnqueuedSequenceNumber() != 2 || late[0].GetDeliveryCount() != 1 {
			t.Errorf("late got %v", late)
		}
		if late[0].GetMessageId() != sent[0].GetMessageId() || late[0].GetLockToken() == "" {
			t.Errorf("late got %v", late[0])
		}
		taken := w.takeFrom(t, eu, 1)
		settled(t)(w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: eu, LockTokens: []string{taken[0].GetLockToken()}}))
		lost, err := w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: us, LockTokens: []string{late[0].GetLockToken()}})
		if err != nil || lost.GetResults()[0].GetReason() != "MESSAGE_LOCK_LOST" {
			t.Errorf("a token of another subscription: got %v, %v", lost, err)
		}
		w.wantIn(t, eu, "one two")
		w.wantIn(t, us, "only in eu and us one two")
	})
}

// Every verb of a queue does with a subscription what it does with a queue.
func TestTOPIC_1_EveryVerbOfASource(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		ctx, ok := t.Context(), settled(t)
		m := text("message")
		m.Properties = map[string]*sidebusv1.Value{"n": int32Value(7)}
		for range 6 {
			w.tellAll(t, news, m)
		}
		token := func(n int) []string {
			t.Helper()
			taken := w.takeFrom(t, eu, int32(n))
			tokens := make([]string, len(taken))
			for i, m := range taken {
				tokens[i] = m.GetLockToken()
			}
			if len(taken) != n {
				t.Fatalf("got %d messages, want %d", len(taken), n)
			}
			return tokens
		}
		locks := token(4)
		renewed, err := w.messages.RenewLocks(ctx, &sidebusv1.RenewLocksRequest{Source: eu, LockTokens: locks})
		if err != nil || renewed.GetResults()[3].GetLockedUntil() == nil {
			t.Errorf("renew: got %v, %v", renewed, err)
		}
		ok(w.messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: eu, LockTokens: locks[:1]}))
		ok(w.messages.Defer(ctx, &sidebusv1.DeferRequest{Source: eu, LockTokens: locks[1:2]}))
		ok(w.messages.Abandon(ctx, &sidebusv1.AbandonRequest{
			Source: eu, LockTokens: locks[2:3], Delay: durationpb.New(time.Hour), Properties: map[string]*sidebusv1.Value{"again": int32Value(1)},
		}))
		ok(w.messages.DeadLetter(ctx, &sidebusv1.DeadLetterRequest{Source: eu, LockTokens: locks[3:], Reason: proto.String("broken")}))
		if c := w.countsIn(t, eu); c.GetDeferredCount() != 1 || c.GetDelayedCount() != 1 || c.GetDeadLetterMessageCount() != 1 || c.GetTotalMessageCount() != 5 {
			t.Errorf("got %v", c)
		}
		deferred, err := w.messages.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{Source: eu, SequenceNumbers: []int64{2}})
		if err != nil {
			t.Fatal(err)
		}
		ok(w.messages.Release(ctx, &sidebusv1.ReleaseRequest{Source: eu, LockTokens: []string{deferred.GetMessages()[0].GetLockToken()}}))
		if _, err := w.messages.Reactivate(ctx, &sidebusv1.ReactivateRequest{Source: eu, SequenceNumbers: []int64{2}}); err != nil {
			t.Error(err)
		}
		by, err := w.messages.ReceiveBySequence(ctx, &sidebusv1.ReceiveBySequenceRequest{
			Source: eu, SequenceNumbers: []int64{2}, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
		})
		if err != nil || by.GetMessages()[0].GetProperties()["n"].GetInt32Value() != 7 {
			t.Errorf("by number: got %v, %v", by, err)
		}
		deleted, err := w.messages.DeleteBySequence(ctx, &sidebusv1.DeleteBySequenceRequest{Source: eu, SequenceNumbers: []int64{5}})
		if err != nil || deleted.GetResults()[0].Reason != nil {
			t.Errorf("delete: got %v, %v", deleted, err)
		}
		dead, err := w.messages.Receive(ctx, &sidebusv1.ReceiveRequest{Source: eu, SubQueue: sidebusv1.SubQueue_DEAD_LETTER, MaxWait: &durationpb.Duration{}})
		if err != nil || dead.GetMessages()[0].GetDeadLetterReason() != "broken" {
			t.Fatalf("dead letters: got %v, %v", dead, err)
		}
		ok(w.messages.Release(ctx, &sidebusv1.ReleaseRequest{
			Source: eu, SubQueue: sidebusv1.SubQueue_DEAD_LETTER, LockTokens: []string{dead.GetMessages()[0].GetLockToken()},
		}))
		purged, err := w.messages.Purge(ctx, &sidebusv1.PurgeRequest{
			Source: eu, Include: []sidebusv1.PurgeRequest_Include{sidebusv1.PurgeRequest_DEAD_LETTER}, Before: timestamppb.New(w.clock.Now().Add(time.Second)),
		})
		if err != nil || purged.GetDeleted() != 3 {
			t.Errorf("purge: got %v, %v", purged, err)
		}
		// What was received for good goes when its answer has left, which the caller may see before.
		eventually(t, "nothing is left", func() bool { return w.countsIn(t, eu).GetTotalMessageCount() == 0 })
		w.wantIn(t, us, "message message message message message message")
	})
}

// A dead letter that is sent again comes back to its subscription alone.
func TestDLQ_22_ResubmitToTheSubscription(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.tellAll(t, news, text("a"), text("b"), text("c"))
		for _, m := range w.takeFrom(t, eu, 3) {
			settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{Source: eu, LockTokens: []string{m.GetLockToken()}}))
		}
		for number, target := range map[int64]string{1: "", 2: "topics/NEWS/Subscriptions/EU", 3: orders} {
			moved, err := w.messages.Resubmit(t.Context(), &sidebusv1.ResubmitRequest{Source: eu, SequenceNumbers: []int64{number}, Target: target})
			if err != nil || moved.GetResults()[0].Reason != nil {
				t.Errorf("to %q: got %v, %v", target, moved, err)
			}
		}
		w.wantDead(t, eu, "")
		if n := w.countsIn(t, eu).GetActiveMessageCount(); n != 2 {
			t.Errorf("%d came back, want 2", n)
		}
		w.wantIn(t, us, "a b c")
		w.wantIn(t, orders, "c")
	})
}

// What a topic is to send later is seen at the topic, can be cancelled there for all, and has its copies when it is
// due.
func TestSCHED_7_ScheduledAtTheTopic(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		later := func(id string) *sidebusv1.Message {
			m := text(id)
			m.MessageId, m.ScheduledEnqueueTime = &id, timestamppb.New(w.clock.Now().Add(time.Minute))
			return m
		}
		sent := w.tellAll(t, news, later("a"), later("b"), later("c"))
		seen := w.seenIn(t, news, sidebusv1.SubQueue_NONE)
		if texts(seen) != "a b c" || seen[0].GetState() != sidebusv1.ReceivedMessage_SCHEDULED || seen[0].GetVisibleAt() == nil {
			t.Errorf("got %v", seen)
		}
		w.wantIn(t, eu, "")
		counts, err := w.admin.GetTopicRuntime(t.Context(), &sidebusv1.GetTopicRuntimeRequest{Name: news})
		if err != nil || counts.GetScheduledMessageCount() != 3 || counts.GetSubscriptionCount() != 2 || counts.GetSizeInBytes() == 0 {
			t.Errorf("got %v, %v", counts, err)
		}
		for _, request := range []*sidebusv1.CancelScheduledRequest{
			{Target: news, SequenceNumbers: []int64{sent[0].GetSequenceNumber()}},
			{Target: news, MessageIds: []string{"c"}},
		} {
			if cancelled, err := w.messages.CancelScheduled(t.Context(), request); err != nil || cancelled.GetCancelled() != 1 {
				t.Errorf("got %v, %v", cancelled, err)
			}
		}
		w.clock.advance(time.Minute)
		if err := w.broker.ActivateDue(t.Context(), "news"); err != nil { // as the sweeper does
			t.Fatal(err)
		}
		w.wantIn(t, eu, "b")
		w.wantIn(t, us, "b")
		w.wantIn(t, news, "")
	})
}

func TestSESS_10_SessionsOfASubscription(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		w.openNews(t)
		const tellers = news + "/subscriptions/tellers"
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/tellers", `{"requiresSession":true}`)
		w.tellAll(t, news, inSession("s", "1"), inSession("r", "2"), inSession("s", "3"), text("of none"))
		w.wantIn(t, eu, "1 2 3 of none")
		if dead := w.seenIn(t, tellers, sidebusv1.SubQueue_DEAD_LETTER); texts(dead) != "of none" || dead[0].GetDeadLetterReason() != "Session ID is null" {
			t.Errorf("got %v", dead)
		}
		accepted, err := w.sessions.Accept(ctx, &sidebusv1.SessionsAcceptRequest{Source: tellers, SessionId: proto.String("s")})
		if err != nil {
			t.Fatal(err)
		}
		lock := accepted.GetSession().GetLockToken()
		taken, err := w.messages.Receive(ctx, &sidebusv1.ReceiveRequest{
			Source: tellers, SessionLockToken: &lock, MaxMessages: proto.Int32(10), MaxWait: &durationpb.Duration{},
		})
		if err != nil || texts(taken.GetMessages()) != "1 3" || taken.GetMessages()[1].GetSessionSequence() != 2 {
			t.Errorf("got %v, %v", taken, err)
		}
		if _, err := w.sessions.SetState(ctx, &sidebusv1.SessionsSetStateRequest{Source: tellers, LockToken: lock, State: []byte("half way")}); err != nil {
			t.Error(err)
		}
		state, err := w.sessions.GetState(ctx, &sidebusv1.SessionsGetStateRequest{Source: tellers, LockToken: lock})
		if err != nil || string(state.GetState()) != "half way" {
			t.Errorf("got %v, %v", state, err)
		}
		if _, err := w.sessions.RenewLock(ctx, &sidebusv1.SessionsRenewLockRequest{Source: tellers, LockToken: lock}); err != nil {
			t.Error(err)
		}
		rows, err := w.sessions.List(ctx, &sidebusv1.SessionsListRequest{Source: tellers, PageSize: 1})
		if err != nil || len(rows.GetSessions()) != 1 || rows.GetSessions()[0].GetSessionId() != "r" || rows.GetNextPageToken() == "" {
			t.Errorf("got %v, %v", rows, err)
		}
		if _, err := w.sessions.Close(ctx, &sidebusv1.SessionsCloseRequest{Source: tellers, LockToken: lock}); err != nil {
			t.Error(err)
		}
		if _, err := w.sessions.Unblock(ctx, &sidebusv1.SessionsUnblockRequest{Source: tellers, SessionId: "s"}); err != nil {
			t.Error(err)
		}
		next, err := w.sessions.Accept(ctx, &sidebusv1.SessionsAcceptRequest{Source: tellers, MaxWait: &durationpb.Duration{}})
		if err != nil || next.GetSession().GetSessionId() != "r" {
			t.Errorf("got %v, %v", next, err)
		}
	})
}

// Rules make as many copies as TOPIC-5 says, and each one is what its action made of it.
func TestTOPIC_5_CopiesOfRules(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.dropRule(t, eu+"/rules/$Default")
		for i, rule := range []*sidebusv1.Rule{
			{Filter: sqlFilter("color = 'red'")},
			{Filter: correlationFilter(&sidebusv1.Rule_Correlation{Subject: proto.String("paint")})},
			{Filter: allFilter(), Action: sqlAction("SET color = 'blue'; REMOVE old; SET sys.To = 'wall'")},
			{Filter: sqlFilter("n > 5"), Action: sqlAction("SET n = n + 1")},
			{Filter: noneFilter()},
		} {
			rule.Name = fmt.Sprint("r", i)
			w.addRule(t, eu, rule)
		}
		m := text("m")
		m.Subject = proto.String("paint")
		m.Properties = map[string]*sidebusv1.Value{
			"color": {Kind: &sidebusv1.Value_StringValue{StringValue: "red"}}, "old": int32Value(1), "n": int32Value(7),
		}
		w.tellAll(t, news, m)
		seen := map[string]*sidebusv1.ReceivedMessage{}
		for _, copied := range w.seenIn(t, eu, sidebusv1.SubQueue_NONE) {
			seen[copied.GetProperties()["RuleName"].GetStringValue()] = copied
		}
		plain, painted, counted := seen[""], seen["r2"], seen["r3"]
		if len(seen) != 3 || plain == nil || painted == nil || counted == nil {
			t.Fatalf("got %v, want a plain copy and those of r2 and r3", seen)
		}
		switch {
		case plain.GetProperties()["color"].GetStringValue() != "red" || len(plain.GetProperties()) != 3,
			painted.GetProperties()["color"].GetStringValue() != "blue" || painted.GetProperties()["old"] != nil || painted.GetTo() != "wall",
			counted.GetProperties()["n"].GetInt32Value() != 8 || counted.GetProperties()["old"].GetInt32Value() != 1 || counted.To != nil:
			t.Errorf("got %v\n%v\n%v", plain, painted, counted)
		}
		w.wantIn(t, us, "m")
	})
}

// A rule without a result makes one dead letter with the reason, unless the subscription does not want that.
func TestRULE_8_FailureIsADeadLetter(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		for _, subscription := range []string{eu, us} {
			w.dropRule(t, subscription+"/rules/$Default")
			w.addRule(t, subscription, &sidebusv1.Rule{Name: "zero", Filter: sqlFilter("1 / n = 1")})
		}
		if _, err := w.admin.UpdateSubscription(t.Context(), &sidebusv1.UpdateSubscriptionRequest{
			Name: us, Subscription: &sidebusv1.Subscription{DeadLetteringOnFilterEvaluationExceptions: proto.Bool(false)},
		}); err != nil {
			t.Fatal(err)
		}
		m := text("m")
		m.Properties = map[string]*sidebusv1.Value{"n": int32Value(0)}
		w.tellAll(t, news, m)
		dead := w.seenIn(t, eu, sidebusv1.SubQueue_DEAD_LETTER)
		if texts(dead) != "m" || dead[0].GetDeadLetterReason() != "FilterEvaluationException" || dead[0].GetDeadLetterErrorDescription() == "" {
			t.Errorf("got %v", dead)
		}
		if c := w.countsIn(t, us); c.GetTotalMessageCount() != 0 {
			t.Errorf("us got %v", c)
		}
	})
}

func TestTOPIC_3_Unmatched(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/topics/news", `{}`)
		if sent := w.tellAll(t, news, text("vanishes")); sent[0].GetSequenceNumber() != 1 {
			t.Errorf("got %v", sent)
		}
		if _, err := w.admin.UpdateTopic(t.Context(), &sidebusv1.UpdateTopicRequest{
			Name: news, Topic: &sidebusv1.Topic{FailIfUnmatched: proto.Bool(true)},
		}); err != nil {
			t.Fatal(err)
		}
		refuse("nobody", "NO_MATCHING_SUBSCRIPTION", "", sending,
			&sidebusv1.SendRequest{Target: news, Messages: []*sidebusv1.Message{text("x")}}).check(t, w.messages)
	})
}

// A topic that drops duplicates drops them for all its subscriptions.
func TestDUP_9_AtTheTopic(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/topics/news", `{"requiresDuplicateDetection":true}`)
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/eu", `{}`)
		m := text("m")
		m.MessageId = proto.String("m")
		w.tellAll(t, news, m)
		if again := w.tellAll(t, news, m); !again[0].GetDeduplicated() || again[0].GetSequenceNumber() != 1 {
			t.Errorf("got %v", again)
		}
		w.wantIn(t, eu, "m")
	})
}

// A request may go to a topic; the receiver of a subscription replies.
func TestRR_6_RequestToATopic(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.openTales(t, "")
		request := asking(text("who is there?"))
		request.Target = news
		answered := w.request(t, request)
		w.reply(t, w.requested(t, eu, 1)[0], "me")
		if got := <-answered; got != "me" {
			t.Errorf("got %q", got)
		}
	})
}

// Deleting a topic deletes its subscriptions, and receives that wait there get an error (ENT-8).
func TestENT_8_DeletedTopic(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		w.tellAll(t, news, text("m"))
		waiting := make(chan error, 1)
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/empty", `{}`)
		w.dropRule(t, news+"/subscriptions/empty/rules/$Default")
		go func() {
			_, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
				Source: news + "/subscriptions/empty", MaxWait: durationpb.New(patience),
			})
			waiting <- err
		}()
		if _, err := w.admin.DeleteTopic(t.Context(), &sidebusv1.DeleteTopicRequest{Name: news}); err != nil {
			t.Fatal(err)
		}
		if reason := reasonOf(t, <-waiting); reason != "ENTITY_NOT_FOUND" {
			t.Errorf("who waited got %q", reason)
		}
		for _, resource := range []string{news, eu} {
			if _, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: resource}); reasonOf(t, err) != "ENTITY_NOT_FOUND" {
				t.Errorf("%s: got %v", resource, err)
			}
		}
		w.openNews(t)
		w.wantIn(t, eu, "")
	})
}
