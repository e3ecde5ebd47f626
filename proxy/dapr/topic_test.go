package dapr

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

// numbered returns the topic of a subscription for each of n streams: the first without a number.
func numbered(topic string, n int) []string {
	topics := []string{topic}
	for i := 2; i <= n; i++ {
		topics = append(topics, fmt.Sprint(topic, streamMark, i))
	}
	return topics
}

// subscribeNumbered opens n streams of one subscription.
func (r *fakeRuntime) subscribeNumbered(topic string, n int, pairs ...string) []*feed {
	r.b.t.Helper()
	var feeds []*feed
	for _, name := range numbered(topic, n) {
		feeds = append(feeds, r.subscribe(name, pairs...))
		synctest.Wait()
	}
	return feeds
}

// The streams of a subscription are one receiver to Sidebus: they share its messages, and each comes once.
func TestDAPR_1_StreamsOfOneSubscription(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("entityKind", kind, "maxActiveMessages", "1")
				f := r.subscribeNumbered("orders", 3)
				r.send("orders", "1", "2", "3", "4")
				b.wantCounts("orders", "available 1 locked 3 dead 0")
				seen := map[string]bool{}
				for i, one := range f {
					m := one.bodiesWith(t, 1)[0]
					if got := m.GetTopicName(); got != numbered("orders", 3)[i] { // by which apps know their handler
						t.Errorf("stream %d is told the topic %q", i+1, got)
					}
					seen[string(m.GetData())] = true
				}
				if len(seen) != 3 {
					t.Errorf("of 3 messages %v came", seen)
				}
				for body := range f[1].ids {
					f[1].ack(body)
				}
				f[1].wants("4") // the others are busy
				if kind == "topic" {
					n, err := b.Runtime(t.Context(), semantics.TopicKind, "orders")
					if err != nil || n.Subscriptions != 1 {
						t.Errorf("%d subscriptions, %v", n.Subscriptions, err)
					}
				}
			})
		})
	}
}

// A runtime that passes on one message of a stream at a time is as many times as fast with several streams.
func TestDAPR_1_StreamsShareFairly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		for i := range 12 {
			r.send("orders", fmt.Sprint(i))
		}
		for _, f := range r.subscribeNumbered("orders", 4) {
			go func() {
				for response := range f.comes {
					<-time.After(300 * time.Millisecond)
					_ = f.stream.Send(&proto.PullMessagesRequest{AckMessageId: response.GetId()})
				}
			}()
			defer close(f.comes)
		}
		b.pass(time.Second)
		b.wantCounts("orders", "available 0 locked 0 dead 0")
	})
}

func TestDAPR_1_WrongNumbersOfStreams(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		wrong := []string{
			"orders;lane=0", "orders;lane=x", "orders;lane=", "orders;lane=02", "orders;lane=-1", "orders;lane=1001", "orders;foo=1",
			"orders;", "orders;lane", "orders;Lane=2", "orders;lane=2;lane=3", "orders;lane=2/$deadletterqueue",
		}
		for _, topic := range wrong {
			f := r.subscribe(topic)
			f.wants("") // and the stream stays open, as the runtime would not open another one
		}
		if got := b.metric("sidebus_dapr_streams_stalled"); int(got) != len(wrong) {
			t.Errorf("%v stalled, want %d", got, len(wrong))
		}
		b.wantLog(`has a semicolon, so it must end with ;lane=N, where N is 1 to 1000`)
		r.subscribe(";lane=2")
		synctest.Wait()
		b.wantLog("must not be empty")
		entities, _, err := b.ListEntities(t.Context(), semantics.QueueKind, "", 10, "")
		if err != nil || len(entities) != 0 {
			t.Errorf("there are %v, %v", entities, err)
		}
	})
}

func TestDAPR_1_NumbersAreForSubscriptionsOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		const text = `publish to "orders`
		for _, topic := range []string{"orders;lane=2", "orders;lane=x", "orders;foo=1", "orders/$deadletterqueue;lane=2"} {
			b.wantReason(r.publish(topic, "1"), semantics.InvalidArgument, text)
			_, err := r.BulkPublish(r.ctx, &proto.BulkPublishRequest{Topic: topic, Entries: []*proto.BulkMessageEntry{{Event: []byte("1")}}})
			b.wantReason(err, semantics.InvalidArgument, text)
		}
		q := b.runtime("q", "") // no entity has such a name, whatever it is created by
		b.ok(q.init("consumerID", "app"))
		_, err := b.CreateEntity(b.t.Context(), semantics.QueueKind, "orders;lane=2", semantics.Options{}, nil)
		if semantics.CodeOf(err) != semantics.InvalidArgument {
			b.t.Errorf("got %v", err)
		}
		b.wantReason(q.init("consumerID", "app;lane=2"), semantics.InvalidArgument, "consumerID")
	})
}

// Dead letters come to several streams too, and the dead-letter topic of each is that of the entity.
func TestDAPR_2_StreamsAndDeadLetters(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("maxDeliveryCount", "1", "maxActiveMessages", "1")
		f := r.subscribeNumbered("orders", 2)
		r.send("orders", "1", "2")
		given := f[1].bodiesWith(t, 1)[0]
		_, err := r.Publish(r.ctx, &proto.PublishRequest{Topic: "orders/$deadletterqueue", Metadata: given.GetMetadata()})
		b.ok(err)
		b.wantCounts("orders", "available 0 locked 1 dead 1")
		f[0].nack(f[0].bodies())
		b.wantCounts("orders", "available 0 locked 0 dead 2")
		for _, dead := range r.subscribeNumbered("orders/$DeadLetterQueue", 2) {
			dead.ack(dead.bodies())
		}
		b.wantCounts("orders", "available 0 locked 0 dead 0")
	})
}

// An app that hangs on a message of one stream gets those of the others; each stream looks after its own.
func TestDAPR_2_OneStreamHangs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "handlerTimeoutInSec", "10", "redeliveryDelayInMs", "10")
		f := r.subscribeNumbered("orders", 1)[0]
		r.send("orders", "1", "2")
		f.wants("1 2") // and neither is answered
		g := r.subscribe("orders" + streamMark + "2")
		r.send("orders", "3")
		g.wants("3")
		g.ack("3")
		b.wantTakenOver(f, g)
	})
}

// Each stream ends for itself: what it has goes to the others at once.
func TestDAPR_6_StreamsEndOneByOne(t *testing.T) {
	t.Parallel()
	for _, sessions := range []string{"false", "true"} {
		t.Run("sessions "+sessions, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("requireSessions", sessions, "maxActiveMessages", "1")
				f := r.subscribeNumbered("orders", 3)
				for i, body := range []string{"1", "2", "3"} {
					r.sendTo("orders", fmt.Sprint("s", i), body)
				}
				b.wantCounts("orders", "available 0 locked 3 dead 0")
				has := f[0].bodies()
				f[0].cancel()
				b.wantCounts("orders", "available 1 locked 2 dead 0")
				f[1].ack(f[1].bodies())
				f[1].wants(has)
				f[1].ack(has)
				f[2].ack(f[2].bodies())
				b.wantCounts("orders", "available 0 locked 0 dead 0")
				_, err := r.Pause(r.ctx, &proto.PauseRequest{}) // of all streams
				b.ok(err)
				r.sendTo("orders", "s", "4")
				f[1].wants("")
				f[2].wants("")
				b.pass(settling.MaxBackoff)
				b.wantCounts("orders", "available 1 locked 0 dead 0")
			})
		})
	}
}
