package proxy_test

import (
	"net/http"
	"testing"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// spreadStore is a store that knows of partitions.
type spreadStore struct {
	semantics.Store
	semantics.Checker
}

// A topic with partitions is created, used and deleted as any other, over each wire.
func TestPART_8_TopicOnTheWire(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"grpc", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := memstore.New()
			w := &wire{sidecar: start(t, spreadStore{partitioned.New(memory), memory})}
			w.messages, w.sessions = w.sidecar.clients(name)
			if w.admin = w.sidecar.admin; name == "http" {
				w.admin = sidebusv1.NewAdminClient(overHTTP{w.sidecar})
			}
			ctx := t.Context()
			ensured, err := w.admin.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{
				Name: news, Topic: &sidebusv1.Topic{Name: "news", Partitions: proto.Int32(4)},
			})
			must(t, err)
			if topic := ensured.GetResource(); topic.GetPartitions() != 4 || !topic.GetEnablePartitioning() {
				t.Errorf("created %v", topic)
			}
			alone, err := w.admin.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{
				Name: "topics/alone", Topic: &sidebusv1.Topic{Name: "alone", EnablePartitioning: proto.Bool(true)},
			})
			must(t, err)
			if n := alone.GetResource().GetPartitions(); n != 16 {
				t.Errorf("PART-1: enablePartitioning alone: got %d partitions, want 16", n)
			}
			_, err = w.admin.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{
				Name: "topics/other", Topic: &sidebusv1.Topic{Name: "other", Partitions: proto.Int32(65)},
			})
			if reasonOf(t, err) != "ARGUMENT_OUT_OF_RANGE" {
				t.Errorf("65 partitions: got %v", err)
			}
			mustPut(t, w.sidecar, "/v1/topics/news/subscriptions/eu", `{}`)
			for _, key := range []string{"a", "b", "c", ""} {
				m := text("of " + key)
				if key != "" {
					m.PartitionKey = proto.String(key)
				}
				w.tellAll(t, news, m)
			}
			keyed := []*sidebusv1.Message{{PartitionKey: proto.String("a")}, {PartitionKey: proto.String("b")}}
			_, err = w.messages.Send(ctx, &sidebusv1.SendRequest{Target: news, Messages: keyed})
			if reasonOf(t, err) != "PARTITION_KEY_MISMATCH" {
				t.Errorf("two keys: got %v", err)
			}
			taken := w.takeFrom(t, eu, 10)
			if len(taken) != 4 {
				t.Fatalf("got %v, want four messages", taken)
			}
			runtime, err := w.admin.GetSubscriptionRuntime(ctx, &sidebusv1.GetSubscriptionRuntimeRequest{Name: eu})
			must(t, err)
			if n := len(runtime.GetPartitions()); n != 4 {
				t.Fatalf("got the counts of %d partitions", n)
			}
			var tokens []string
			for _, m := range taken {
				tokens = append(tokens, m.GetLockToken())
				if int64(m.GetPartitionId()) != m.GetSequenceNumber()>>48 {
					t.Errorf("message %d is in partition %d", m.GetSequenceNumber(), m.GetPartitionId())
				}
				runtime.Partitions[m.GetPartitionId()].LockedCount--
			}
			for p, counts := range runtime.GetPartitions() {
				if int(counts.GetPartitionId()) != p || counts.GetLockedCount() != 0 {
					t.Errorf("counts of partition %d: %v", p, counts)
				}
			}
			topic, err := w.admin.GetTopicRuntime(ctx, &sidebusv1.GetTopicRuntimeRequest{Name: news})
			must(t, err)
			if n := len(topic.GetPartitions()); n != 4 {
				t.Errorf("got the counts of %d partitions of the topic", n)
			}
			settled(t)(w.messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: eu, LockTokens: tokens}))
			_, err = w.admin.DeleteTopic(ctx, &sidebusv1.DeleteTopicRequest{Name: news})
			must(t, err)
			_, err = w.messages.Send(ctx, &sidebusv1.SendRequest{Target: news, Messages: keyed[:1]})
			if reasonOf(t, err) != "ENTITY_NOT_FOUND" {
				t.Errorf("a topic that is gone: got %v", err)
			}
		})
	}
}

// The REST API of Service Bus sends to such a topic and receives from its subscriptions.
func TestPART_8_CompatibleREST(t *testing.T) {
	t.Parallel()
	memory := memstore.New()
	s := start(t, spreadStore{partitioned.New(memory), memory})
	mustPut(t, s, "/v1/topics/news", `{"partitions":3}`)
	mustPut(t, s, "/v1/topics/news/subscriptions/eu", `{}`)
	at := "http://" + s.proxy.HTTPAddr().String()
	for range 4 {
		if a := s.request(t, http.MethodPost, at+"/news/messages", "hi"); a.status != http.StatusCreated {
			t.Fatalf("sent: %+v", a)
		}
	}
	for range 4 {
		a := s.request(t, http.MethodPost, at+"/news/subscriptions/eu/messages/head?timeout=5", "")
		if a.status != http.StatusCreated || a.body != "hi" {
			t.Fatalf("received: %+v", a)
		}
		if a := s.request(t, http.MethodDelete, a.header.Get("Location"), ""); a.status != http.StatusOK {
			t.Errorf("completed: %+v", a)
		}
	}
	if a := s.request(t, http.MethodPost, at+"/news/subscriptions/eu/messages/head?timeout=0", ""); a.status != http.StatusNoContent {
		t.Errorf("got %+v, want nothing more", a)
	}
}
