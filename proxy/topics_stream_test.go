package proxy_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// What is published to a topic is stored in its order in every subscription, also when publications to queues come
// between.
func TestSEND_3_OrderOfAStreamToATopic(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	p := s.publish(t)
	const n = 500
	go func() {
		for i := range n {
			target := news
			if i%5 == 4 {
				target = orders
			}
			_ = p.Send(publication(target, fmt.Sprint(i)))
		}
		_ = p.CloseSend()
	}()
	number := int64(0)
	for i := range n {
		r, err := p.Recv()
		if err != nil || r.GetRequestId() != fmt.Sprint(i) || len(r.GetSent().GetResults()) != 1 {
			t.Fatalf("answer %d: got %v, %v", i, r, err)
		}
		if i%5 == 4 {
			continue
		}
		if number++; r.GetSent().GetResults()[0].GetSequenceNumber() != number {
			t.Fatalf("answer %d: got %v, want number %d", i, r, number)
		}
	}
	if end := p.ends(); end != "OK" {
		t.Errorf("the stream ended with %s", end)
	}
	for _, source := range []string{eu, us} {
		got, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: source, MaxMessages: proto.Int32(1000), MaxWait: &durationpb.Duration{}})
		if err != nil || len(got.GetMessages()) != n*4/5 {
			t.Fatalf("%s: got %d messages, %v", source, len(got.GetMessages()), err)
		}
		for i, m := range got.GetMessages() {
			if m.GetText() != fmt.Sprint(i/4*5+i%4) || m.GetSequenceNumber() != int64(i+1) || m.GetEnqueuedSequenceNumber() != int64(i+1) {
				t.Fatalf("%s: message %d is %v", source, i, m)
			}
		}
	}
}

// A rule that is made between two publications of one stream decides about the second (TOPIC-4).
func TestTOPIC_4_RulesBetweenPublications(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	p := s.publish(t)
	p.send(publication(news, "1"))
	p.answers(1)
	if _, err := s.admin.DeleteRule(t.Context(), &sidebusv1.DeleteRuleRequest{Name: eu + "/rules/$Default"}); err != nil {
		t.Fatal(err)
	}
	p.send(publication(news, "2"))
	p.answers(1)
	if _, err := s.admin.CreateRule(t.Context(), &sidebusv1.CreateRuleRequest{Subscription: eu, Rule: &sidebusv1.Rule{Name: "r", Filter: allFilter()}}); err != nil {
		t.Fatal(err)
	}
	p.send(publication(news, "3"))
	p.answers(1)
	s.wantPeeked(t, eu, "1:0 3:0")
	s.wantPeeked(t, us, "1:0 2:0 3:0")
}

func TestERR_4_RefusedPublicationsToATopic(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	mustPut(t, s, "/v1/topics/shut", `{"status":"SEND_DISABLED"}`)
	mustPut(t, s, "/v1/topics/strict", `{"failIfUnmatched":true}`)
	p := s.publish(t)
	p.send(
		publication(news, "1"), publication("topics/none", "none"), publication(eu, "subscription"), publication("topics/shut", "shut"),
		publication("topics/strict", "strict"), publication("queues/news", "queue"), publication(news, "2"),
	)
	const want = "1 none:ENTITY_NOT_FOUND subscription:INVALID_OPERATION shut:ENTITY_DISABLED strict:NO_MATCHING_SUBSCRIPTION queue:ENTITY_NOT_FOUND 2"
	if got := p.answers(7); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.wantPeeked(t, eu, "1:0 2:0")
}

func TestRECV_13_DeliversFromASubscription(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	c := s.subscribe(t, &sidebusv1.SubscribeOpen{Source: eu, Credits: proto.Int32(2)})
	p := s.publish(t)
	p.send(publication(news, "1"), publication(news, "2"), publication(news, "3"))
	p.answers(3)
	c.wants("1 2")
	c.complete("1", "2")
	c.wants("3")
	c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_DeadLetter{DeadLetter: &sidebusv1.DeadLetterRequest{}}}, "3")
	s.wantPeeked(t, us, "1:0 2:0 3:0")
	dead := s.subscribe(t, &sidebusv1.SubscribeOpen{Source: eu, SubQueue: sidebusv1.SubQueue_DEAD_LETTER})
	dead.wants("3")
}

func TestRECV_13_SessionsOfASubscription(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	const tellers = news + "/subscriptions/tellers"
	mustPut(t, s, "/v1/topics/news/subscriptions/tellers", `{"requiresSession":true}`)
	open := talesOpen(2, 1)
	open.Source = tellers
	c := s.subscribe(t, open)
	p := s.publish(t)
	p.send(publication(news, "a/1", "b/1", "a/2"))
	p.answers(1)
	c.wants("+a +b a/1 b/1")
	c.complete("a/1")
	c.wants("a/2")
}

func TestTOPIC_8_RefusedStreams(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	for source, reason := range map[string]string{
		news: "INVALID_OPERATION", "queues/news": "INVALID_OPERATION", "topics/none": "ENTITY_NOT_FOUND", "topics/orders": "ENTITY_NOT_FOUND",
		news + "/subscriptions/none": "ENTITY_NOT_FOUND",
	} {
		c := s.dialStream(t)
		c.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: source}}})
		if _, err := c.stream.Recv(); reasonOf(t, err) != reason {
			t.Errorf("%s: got %v, want %s", source, err, reason)
		}
	}
}

// A stream ends when its subscription is deleted, or its topic (ENT-8).
func TestENT_8_DeletedUnderAStream(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openNews(t)
	streams := map[string]*subscriber{}
	for _, source := range []string{eu, us} {
		streams[source] = s.subscribe(t, &sidebusv1.SubscribeOpen{Source: source})
	}
	if _, err := s.admin.DeleteSubscription(t.Context(), &sidebusv1.DeleteSubscriptionRequest{Name: eu}); err != nil {
		t.Fatal(err)
	}
	if _, err := streams[eu].stream.Recv(); reasonOf(t, err) != "ENTITY_NOT_FOUND" {
		t.Errorf("subscription: got %v", err)
	}
	if _, err := s.admin.DeleteTopic(t.Context(), &sidebusv1.DeleteTopicRequest{Name: news}); err != nil {
		t.Fatal(err)
	}
	if _, err := streams[us].stream.Recv(); reasonOf(t, err) != "ENTITY_NOT_FOUND" {
		t.Errorf("topic: got %v", err)
	}
}
