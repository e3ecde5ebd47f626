package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// clusterNode is a Redis Cluster of one node. It refuses a script that touches a key in another slot than those it was
// given.
func clusterNode(t *testing.T) string {
	t.Helper()
	bus := redistest.FreePort(t) // which it must have, and would else be the same as of any other
	server := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	t.Cleanup(server.Stop)
	command(t, server.URL, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	options := redistest.ClientOptions(t, server.URL)
	client := redis.NewClient(options)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(client.ClusterInfo(ctx).Val(), "cluster_state:ok") {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the cluster does not come up")
		}
	}
	return server.URL
}

// All that is done with a topic, its subscriptions and their rules stays within the slot of the topic.
func TestTopicsKeepToOneSlot(t *testing.T) {
	t.Parallel()
	url := clusterNode(t)
	if err := redis.NewScript("#!lua\nreturn redis.call('SET', '{b}x', 1)").Run(t.Context(), clientOf(t, url), []string{"{a}x"}).Err(); err == nil {
		t.Fatal("this Redis lets scripts touch other slots: it proves nothing")
	}
	s := redistest.Open(t, redisstore.Options{URL: url})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(t, s)
	must(subscribe(t, s, "full", func(o *semantics.Options) { o.MaxMessageCount, o.Overflow = 1, semantics.DropOldestOverflow }))
	_, err := s.CreateRule(ctx, of("full").Path, semantics.Rule{Name: "r", Filter: semantics.RuleFilter{None: true}})
	must(err)
	must(s.DeleteRule(ctx, of("full").Path, "r"))
	due := &semantics.Message{MessageID: "due", SessionID: "s", ScheduledAt: soon(t, clientOf(t, url))}
	must(publish(t, s, semantics.Publication{Message: due}).Err)
	awaitDue(t, s, 1)
	broker := brokerOver(s)
	defer broker.Close()
	must(broker.ActivateDue(ctx, "news"))
	for _, m := range messagesOf(2, semantics.Message{SessionID: "s"}) {
		must(publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, "0", "1", "2", "full")}).Err)
	}
	held := receiveOneOf(t, s, of("0"))
	_, err = s.Abandon(ctx, of("0"), []semantics.LockToken{held.LockToken}, semantics.AbandonOptions{
		Properties: map[string]semantics.Value{"p": semantics.String("v")},
	})
	must(err)
	_, err = s.Resubmit(ctx, deadOf("2"), of("2").Path, []semantics.Resubmission{{SequenceNumber: 3, MessageID: "m"}}, false)
	must(err)
	session, err := s.AcceptSession(ctx, of("1").Path, "s")
	must(err)
	source := of("1")
	source.SessionLock = session.Lock
	options := semantics.DefaultOptions()
	options.MaxSizeInMegabytes = 0 // nothing fits any more, so sizes are added up
	_, err = s.UpdateEntity(ctx, semantics.TopicKind, "news", options, []string{"maxSizeInMegabytes"})
	must(err)
	if _, err = s.SetSessionState(ctx, source, []byte("state"), nil); semantics.CodeOf(err) != semantics.EntityFull {
		t.Errorf("state: %v", err)
	}
	full := &semantics.Message{MessageID: "full"}
	if err := publish(t, s, semantics.Publication{Message: full, Copies: copiesOf(full, "0")}).Err; semantics.CodeOf(err) != semantics.EntityFull {
		t.Errorf("publish: %v", err)
	}
	_, err = s.UpdateEntity(ctx, semantics.SubscriptionKind, of("0").Path, options, []string{"deadLetteringOnFilterEvaluationExceptions"})
	must(err)
	_, err = s.Runtime(ctx, semantics.TopicKind, "news")
	must(err)
	must(s.DeleteEntity(ctx, semantics.SubscriptionKind, of("0").Path))
	must(s.DeleteEntity(ctx, semantics.TopicKind, "news"))
}

func clientOf(t testing.TB, url string) *redis.Client {
	t.Helper()
	options := redistest.ClientOptions(t, url)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
