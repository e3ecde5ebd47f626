package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

const (
	transferLetters = sidebusv1.SubQueue_TRANSFER_DEAD_LETTER
	bin             = "queues/bin"
)

// forward does what the sweeper of a running sidecar has done at once: it forwards what the sources, in this order,
// have to forward.
func (s *sidecar) forward(t *testing.T, sources ...semantics.Source) {
	t.Helper()
	for _, source := range sources {
		if err := s.broker.Forward(t.Context(), source); err != nil {
			t.Fatalf("%s: %v", source, err)
		}
	}
}

// fromMain is the source that forwardTo is about.
func fromMain(path string) semantics.Source { return semantics.Source{Path: path} }

// fromLetters is the source that forwardDeadLetteredMessagesTo is about.
func fromLetters(path string) semantics.Source {
	return semantics.Source{Path: path, SubQueue: semantics.DeadLetterQueue}
}

// strand puts texts into the transfer dead-letter queue of "orders": what it forwards to, the queue "bin", is disabled
// meanwhile.
func (w *wire) strand(t *testing.T, contents ...string) {
	t.Helper()
	mustPut(t, w.sidecar, "/v1/"+bin, `{}`)
	w.patch(t, bin, `{"status":"DISABLED"}`)
	mustPatch(t, w.sidecar, `{"forwardTo":"bin"}`)
	for _, c := range contents {
		w.put(t, text(c))
	}
	w.forward(t, fromMain("orders"))
	mustPatch(t, w.sidecar, `{"forwardTo":""}`)
	w.patch(t, bin, `{"status":"ACTIVE"}`)
	if got := texts(w.seenIn(t, orders, transferLetters)); got != strings.Join(contents, " ") {
		t.Fatalf("transfer dead letters: got %q, want %q", got, contents)
	}
}

func (s *sidecar) patch(t *testing.T, resource, body string) {
	t.Helper()
	if a := s.call(t, http.MethodPatch, "/v1/"+resource, body); a.status != http.StatusOK {
		t.Fatalf("PATCH %s %s: %d %s", resource, body, a.status, a.body)
	}
}

func TestFWD_1_Chain(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/queues/second", `{"forwardTo":"Orders"}`)
		first, err := w.admin.CreateQueue(t.Context(), &sidebusv1.CreateQueueRequest{Queue: &sidebusv1.Queue{Name: "first", ForwardTo: proto.String("second")}})
		if err != nil || first.GetForwardTo() != "second" || first.ForwardDeadLetteredMessagesTo != nil || first.AutoDeleteOnIdle != nil {
			t.Fatalf("got %v, %v", first, err)
		}
		w.put(t, text("before"))
		w.tellAll(t, "queues/first", text("1"), text("2"), text("3"))
		w.clock.advance(time.Minute)
		w.forward(t, fromMain("first"), fromMain("second"))
		taken := w.take(t, 10)
		if got := texts(taken); got != "before 1 2 3" { // FWD-6
			t.Fatalf("got %q", got)
		}
		for i, m := range taken[1:] { // FWD-4
			if m.GetSequenceNumber() != int64(i+2) || m.GetEnqueuedSequenceNumber() != int64(i+1) || m.GetDeliveryCount() != 1 {
				t.Errorf("got %v", m)
			}
			if !m.GetEnqueuedTime().AsTime().Equal(w.clock.Now()) || m.DeadLetterSource != nil || m.DeadLetterReason != nil {
				t.Errorf("got %v", m)
			}
		}
		for _, queue := range []string{"queues/first", "queues/second"} {
			counts, err := w.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: queue})
			if err != nil || counts.GetTotalMessageCount() != 0 || counts.GetSizeInBytes() != 0 {
				t.Errorf("%s: got %v, %v", queue, counts, err)
			}
		}
		w.eventuallyMeasured(t, "sidebus_messages_forwarded_total 6") // FWD-12
		w.eventuallyMeasured(t, "sidebus_forwards_refused_total 0")
	})
}

func TestFWD_2_ForwardingSourceGivesNothing(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.deadLetter(t, orders, text("dead"))
		w.put(t, text("1"))
		mustPut(t, w.sidecar, "/v1/"+bin, `{}`)
		mustPatch(t, w.sidecar, `{"forwardTo":"bin"}`)
		const no = "INVALID_OPERATION"
		refuse("receive", no, "", sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: orders}).check(t, w.messages)
		refuse("by number", no, "", sidebusv1.MessagesClient.ReceiveBySequence, &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{2}}).check(t, w.messages)
		c := w.dialStream(t)
		c.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: ordersOpen(1)}})
		if got := c.ends(); got != no {
			t.Errorf("stream: got %s", got)
		}
		w.wantIn(t, orders, "1")
		dead, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders, SubQueue: sidebusv1.SubQueue_DEAD_LETTER})
		if err != nil || texts(dead.GetMessages()) != "dead" {
			t.Errorf("got %v, %v", dead, err)
		}
	})
}

// A receive and a stream that wait end when the source begins to forward.
func TestFWD_2_WaitingReceiversEnd(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/"+bin, `{}`)
		c := w.subscribe(t, ordersOpen(1))
		failed := make(chan error, 1)
		go func() {
			_, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(patience)})
			failed <- err
		}()
		mustPatch(t, w.sidecar, `{"forwardTo":"bin"}`)
		if err := <-failed; reasonOf(t, err) != "INVALID_OPERATION" {
			t.Errorf("receive: got %v", err)
		}
		if got := c.ends(); got != "INVALID_OPERATION" {
			t.Errorf("stream: got %s", got)
		}
	})
}

func TestFWD_11_FanIn(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		for _, name := range []string{"eu", "us"} {
			updated, err := w.admin.UpdateSubscription(t.Context(), &sidebusv1.UpdateSubscriptionRequest{
				Name: news + "/subscriptions/" + name, Subscription: &sidebusv1.Subscription{ForwardTo: proto.String("orders")},
			})
			if err != nil || updated.GetForwardTo() != "orders" {
				t.Fatalf("got %v, %v", updated, err)
			}
		}
		sent := w.tellAll(t, news, text("1"), text("2"))
		w.forward(t, fromMain("news/Subscriptions/eu"), fromMain("news/Subscriptions/us"))
		taken := w.take(t, 10)
		if got := texts(taken); got != "1 2 1 2" {
			t.Fatalf("got %q", got)
		}
		for i, m := range taken {
			if m.GetEnqueuedSequenceNumber() != sent[i%2].GetSequenceNumber() {
				t.Errorf("FWD-4: got %v", m)
			}
		}
	})
}

// Dead letters are ordinary messages where they are forwarded to, and know why they died and where.
func TestFWD_9_DLQ_15_ForwardedDeadLetters(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openNews(t)
		mustPut(t, w.sidecar, "/v1/"+bin, `{"maxDeliveryCount":1}`)
		mustPatch(t, w.sidecar, `{"forwardDeadLetteredMessagesTo":"bin"}`)
		w.patch(t, eu, `{"forwardDeadLetteredMessagesTo":"bin"}`)
		w.put(t, text("alive"))
		w.take(t, 1)
		w.deadLetter(t, orders, text("of a queue"))
		w.tellAll(t, news, text("of a subscription"))
		letter := w.takeFrom(t, eu, 1)[0]
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
			Source: eu, LockTokens: []string{letter.GetLockToken()}, Reason: proto.String("Old"), Description: proto.String("of yesterday"),
		}))
		w.forward(t, fromLetters("orders"), fromLetters("news/Subscriptions/eu"))
		taken := w.takeFrom(t, bin, 10)
		if got := texts(taken); got != "of a queue of a subscription" {
			t.Fatalf("got %q", got)
		}
		first, second := taken[0], taken[1]
		if first.GetDeadLetterSource() != "orders" || first.GetDeadLetterReason() != "broken" || first.DeadLetteredTime != nil || first.DeadLetterDeliveryCount != nil {
			t.Errorf("got %v", first)
		}
		if second.GetDeadLetterSource() != "news/Subscriptions/eu" || second.GetDeadLetterReason() != "Old" || second.GetDeadLetterErrorDescription() != "of yesterday" {
			t.Errorf("got %v", second)
		}
		if second.GetProperties()["DeadLetterReason"].GetStringValue() != "Old" || second.GetEnqueuedSequenceNumber() != 1 {
			t.Errorf("DLQ-15, FWD-4: got %v", second)
		}
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{Source: bin, LockTokens: []string{first.GetLockToken()}}))
		dead := w.seenIn(t, bin, sidebusv1.SubQueue_DEAD_LETTER)
		if texts(dead) != "of a queue" || dead[0].GetDeadLetterReason() != "MaxDeliveryCountExceeded" || dead[0].GetDeadLetterSource() != "orders" {
			t.Errorf("dead again: got %v", dead)
		}
	})
}

// What cannot be forwarded is set aside at its source, and every verb finds it there.
func TestDLQ_19_TransferDeadLetters(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.strand(t, "1", "2", "3", "4", "5", "6", "7")
		counts := w.runtime(t)
		if counts.GetTransferDeadLetterMessageCount() != 7 || counts.GetDeadLetterMessageCount() != 0 || counts.GetTotalMessageCount() != 7 || counts.GetTransferMessageCount() != 0 {
			t.Errorf("got %v", counts)
		}
		w.eventuallyMeasured(t, "sidebus_forwards_refused_total 7")
		letter := w.seenIn(t, orders, transferLetters)[0]
		if letter.GetDeadLetterReason() != "TransferDestinationDisabled" || !strings.Contains(letter.GetDeadLetterErrorDescription(), "bin") ||
			letter.GetDeadLetteredTime() == nil || letter.DeadLetterSource != nil {
			t.Errorf("DLQ-13: got %v", letter)
		}
		taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
			Source: orders, SubQueue: transferLetters, MaxMessages: proto.Int32(4), MaxWait: &durationpb.Duration{},
		})
		if err != nil || texts(taken.GetMessages()) != "1 2 3 4" {
			t.Fatalf("got %v, %v", taken, err)
		}
		var lock [4][]string
		for i, m := range taken.GetMessages() {
			lock[i] = []string{m.GetLockToken()}
		}
		renewed, err := w.messages.RenewLocks(t.Context(), &sidebusv1.RenewLocksRequest{Source: orders, SubQueue: transferLetters, LockTokens: lock[0]})
		if err != nil || renewed.GetResults()[0].Reason != nil {
			t.Errorf("got %v, %v", renewed, err)
		}
		refuse("DLQ-4", "INVALID_OPERATION", "", sidebusv1.MessagesClient.DeadLetter,
			&sidebusv1.DeadLetterRequest{Source: orders, SubQueue: transferLetters, LockTokens: lock[0]}).check(t, w.messages)
		settled(t)(w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: orders, SubQueue: transferLetters, LockTokens: lock[0]}))
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{Source: orders, SubQueue: transferLetters, LockTokens: lock[1]}))
		settled(t)(w.messages.Release(t.Context(), &sidebusv1.ReleaseRequest{Source: orders, SubQueue: transferLetters, LockTokens: lock[2]}))
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, SubQueue: transferLetters, LockTokens: lock[3]}))
		deferred, err := w.messages.ReceiveDeferred(t.Context(), &sidebusv1.ReceiveDeferredRequest{Source: orders, SubQueue: transferLetters, SequenceNumbers: []int64{4}})
		if err != nil || texts(deferred.GetMessages()) != "4" {
			t.Fatalf("got %v, %v", deferred, err)
		}
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{
			Source: orders, SubQueue: transferLetters, LockTokens: []string{deferred.GetMessages()[0].GetLockToken()},
		}))
		if _, err := w.messages.Reactivate(t.Context(), &sidebusv1.ReactivateRequest{Source: orders, SubQueue: transferLetters, SequenceNumbers: []int64{4}}); err != nil {
			t.Error(err)
		}
		five, err := w.messages.ReceiveBySequence(t.Context(), &sidebusv1.ReceiveBySequenceRequest{
			Source: orders, SubQueue: transferLetters, SequenceNumbers: []int64{5}, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
		})
		if err != nil || texts(five.GetMessages()) != "5" {
			t.Errorf("got %v, %v", five, err)
		}
		deleted, err := w.messages.DeleteBySequence(t.Context(), &sidebusv1.DeleteBySequenceRequest{Source: orders, SubQueue: transferLetters, SequenceNumbers: []int64{6}})
		if err != nil || deleted.GetResults()[0].Reason != nil {
			t.Errorf("got %v, %v", deleted, err)
		}
		eventually(t, "2 3 4 7 are left", func() bool { return texts(w.seenIn(t, orders, transferLetters)) == "2 3 4 7" })
		resubmitted := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: orders, SubQueue: transferLetters.Enum(), SequenceNumbers: []int64{2, 7}, Target: bin})
		if _, reasons := rows(resubmitted); reasons != "," {
			t.Errorf("got %v", resubmitted)
		}
		back := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: orders, SubQueue: transferLetters.Enum(), Max: proto.Int32(1)})
		if _, reasons := rows(back); reasons != "" || len(back.GetResults()) != 1 {
			t.Errorf("got %v", back)
		}
		w.wantIn(t, bin, "2 7")
		w.wantIn(t, orders, "3")
		w.clock.advance(time.Second)
		purged, err := w.messages.Purge(t.Context(), &sidebusv1.PurgeRequest{Source: orders, SubQueue: transferLetters})
		if err != nil || purged.GetDeleted() != 1 {
			t.Errorf("got %v, %v", purged, err)
		}
		if counts := w.runtime(t); counts.GetTransferDeadLetterMessageCount() != 0 || counts.GetTotalMessageCount() != 1 {
			t.Errorf("got %v", counts)
		}
	})
}

// A stream may wait for the first of them.
func TestRECV_13_StreamOfTransferDeadLetters(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		c := w.subscribe(t, &sidebusv1.SubscribeOpen{Source: orders, SubQueue: transferLetters, Credits: proto.Int32(2)})
		w.strand(t, "1", "2", "3")
		c.wants("1 2")
		refused := c.ask(c.settling(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_DeadLetter{DeadLetter: &sidebusv1.DeadLetterRequest{}}}, "1"))
		if refused.GetFailure().GetReason() != "INVALID_OPERATION" {
			t.Errorf("DLQ-4: got %v", refused)
		}
		c.complete("1", "2")
		c.wants("3")
	})
}

// While a destination may still take what it refuses, it is on its way and nowhere else.
func TestFWD_8_Retry(t *testing.T) {
	t.Parallel()
	at := newClock()
	over := memstore.New(memstore.WithClock(at.Now))
	broker := broker.New(over, broker.WithRules(filter.Compile), broker.WithForwardRetry(time.Minute))
	s := launchBroker(t, broker, over)
	wait(t, "start", s.proxy.Started())
	mustPut(t, s, "/v1/"+bin, `{}`)
	mustPut(t, s, "/v1/"+orders, `{"forwardTo":"bin"}`)
	s.patch(t, bin, `{"status":"DISABLED"}`)
	w := &wire{sidecar: s, messages: s.messages, sessions: s.sessions, admin: s.admin, clock: at}
	w.put(t, text("1"))
	counts := func() string {
		c := s.runtime(t)
		return fmt.Sprintf("active %d transfer %d dead %d total %d", c.GetActiveMessageCount(), c.GetTransferMessageCount(), c.GetTransferDeadLetterMessageCount(), c.GetTotalMessageCount())
	}
	for _, step := range []struct {
		after time.Duration
		want  string
		fails bool
	}{
		{0, "active 0 transfer 1 dead 0 total 1", true},
		{59 * time.Second, "active 0 transfer 1 dead 0 total 1", true},
		{time.Second, "active 0 transfer 0 dead 1 total 1", false},
	} {
		at.advance(step.after)
		if err := broker.Forward(t.Context(), fromMain("orders")); (err != nil) != step.fails {
			t.Errorf("after %s: got %v", step.after, err)
		}
		if got := counts(); got != step.want {
			t.Errorf("after %s: got %s, want %s", step.after, got, step.want)
		}
	}
}

// The options come back as they were given, also from an ensure and a change, and "" and null stand for none.
func TestENT_7_ForwardingOptions(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		ctx := t.Context()
		mustPut(t, w.sidecar, "/v1/"+bin, `{}`)
		mustPut(t, w.sidecar, "/v1/topics/rest", `{"unmatchedTo":"bin"}`)
		updated, err := w.admin.UpdateQueue(ctx, &sidebusv1.UpdateQueueRequest{Name: orders, Queue: &sidebusv1.Queue{
			ForwardTo: proto.String("Rest"), ForwardDeadLetteredMessagesTo: proto.String("bin"), AutoDeleteOnIdle: durationpb.New(time.Hour),
			AutoDeleteKeepsDeadLetters: proto.Bool(true),
		}})
		if err != nil || updated.GetForwardTo() != "Rest" || updated.GetForwardDeadLetteredMessagesTo() != "bin" || !updated.GetAutoDeleteKeepsDeadLetters() {
			t.Fatalf("got %v, %v", updated, err)
		}
		if updated.AutoDeleteOnIdle != nil {
			t.Errorf("ENT-14: got %v", updated)
		}
		asked, err := w.admin.EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: orders, Queue: &sidebusv1.Queue{ForwardTo: proto.String("bin")}})
		if err != nil || len(asked.GetDifferences()) != 1 {
			t.Fatalf("got %v, %v", asked, err)
		}
		wantProto(t, "differences", &sidebusv1.Difference{Option: "forwardTo", Present: "Rest", Asked: "bin"}, asked.GetDifferences()[0])
		topic, err := w.admin.GetTopic(ctx, &sidebusv1.GetTopicRequest{Name: "topics/rest"})
		if err != nil || topic.GetUnmatchedTo() != "bin" {
			t.Errorf("got %v, %v", topic, err)
		}
		for _, none := range []string{`{"forwardTo":"","forwardDeadLetteredMessagesTo":""}`, `{"forwardTo":null,"forwardDeadLetteredMessagesTo":null}`} {
			mustPatch(t, w.sidecar, `{"forwardTo":"rest","forwardDeadLetteredMessagesTo":"bin"}`)
			path := "/v1/" + orders
			if strings.Contains(none, "null") {
				path += "?updateMask=forwardTo,forwardDeadLetteredMessagesTo"
			}
			a := w.call(t, http.MethodPatch, path, none)
			if a.status != http.StatusOK || strings.Contains(a.body, "forward") {
				t.Errorf("%s: got %d %s", none, a.status, a.body)
			}
		}
	})
}

// What no subscription wants goes to where the topic says, which is then no failure.
func TestTOPIC_3_UnmatchedTo(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/topics/news", `{"unmatchedTo":"orders","failIfUnmatched":true}`)
		mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/eu", `{"rules":[{"name":"r","filter":{"sql":{"expression":"region = 'eu'"}}}]}`)
		wanted := text("wanted")
		wanted.Properties = map[string]*sidebusv1.Value{"region": {Kind: &sidebusv1.Value_StringValue{StringValue: "eu"}}}
		w.tellAll(t, news, text("unwanted"), wanted)
		w.forward(t, fromMain("news/Subscriptions/$unmatched"))
		w.wantIn(t, eu, "wanted")
		w.wantIn(t, orders, "unwanted")
		listed, err := w.admin.ListSubscriptions(t.Context(), &sidebusv1.ListSubscriptionsRequest{Topic: news})
		if err != nil || len(listed.GetSubscriptions()) != 1 {
			t.Errorf("got %v, %v", listed, err)
		}
		counts, err := w.admin.GetTopicRuntime(t.Context(), &sidebusv1.GetTopicRuntimeRequest{Name: news})
		if err != nil || counts.GetSubscriptionCount() != 1 {
			t.Errorf("got %v, %v", counts, err)
		}
		_, err = w.admin.GetSubscription(t.Context(), &sidebusv1.GetSubscriptionRequest{Name: news + "/subscriptions/$unmatched"})
		if reason := reasonOf(t, err); reason != "INVALID_ARGUMENT" { // no name of a subscription begins so
			t.Errorf("got %v", err)
		}
	})
}

// What could not be forwarded of them is among the transfer dead letters of a subscription that is not there for
// anything else.
func TestTOPIC_3_UnmatchedThatCannotBeForwarded(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		const unmatched = news + "/subscriptions/$unmatched"
		mustPut(t, w.sidecar, "/v1/topics/news", `{"unmatchedTo":"orders"}`)
		mustPatch(t, w.sidecar, `{"status":"SEND_DISABLED"}`)
		w.tellAll(t, news, text("1"), text("2"))
		w.forward(t, fromMain("news/Subscriptions/$unmatched"))
		mustPatch(t, w.sidecar, `{"status":"ACTIVE"}`)
		if counts := w.countsIn(t, unmatched); counts.GetTransferDeadLetterMessageCount() != 2 {
			t.Errorf("got %v", counts)
		}
		seen := w.seenIn(t, unmatched, transferLetters)
		if texts(seen) != "1 2" || seen[0].GetDeadLetterReason() != "TransferDestinationDisabled" {
			t.Errorf("got %v", seen)
		}
		taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: unmatched, SubQueue: transferLetters})
		if err != nil || texts(taken.GetMessages()) != "1" {
			t.Fatalf("got %v, %v", taken, err)
		}
		settled(t)(w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{
			Source: unmatched, SubQueue: transferLetters, LockTokens: []string{taken.GetMessages()[0].GetLockToken()},
		}))
		back := w.resubmit(t, &sidebusv1.ResubmitRequest{Source: unmatched, SubQueue: transferLetters.Enum()})
		if _, reasons := rows(back); reasons != "" || len(back.GetResults()) != 1 {
			t.Errorf("got %v", back)
		}
		w.forward(t, fromMain("news/Subscriptions/$unmatched"))
		w.wantIn(t, orders, "2")
		for _, subQueue := range []sidebusv1.SubQueue_Kind{sidebusv1.SubQueue_NONE, sidebusv1.SubQueue_DEAD_LETTER} {
			_, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: unmatched, SubQueue: subQueue})
			if reason := reasonOf(t, err); reason != "INVALID_ARGUMENT" { // no name of a subscription begins so
				t.Errorf("%s: got %v", subQueue, err)
			}
		}
	})
}
