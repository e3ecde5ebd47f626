package redisstore_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// dump shows every key of a namespace, or of an entity named behind it and a slash, with its content, but for options,
// times, payloads and nonces, so that a key or member too many fails a test.
func dump(t *testing.T, namespace string) []string {
	t.Helper()
	options := redistest.ClientOptions(t, redistest.URL(t))
	c := redis.NewClient(options)
	defer c.Close()
	keys, err := c.Keys(t.Context(), "sb:{"+namespace+"[/}]*").Result()
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, key := range keys {
		part := key[strings.Index(key, "}:")+2:] // of a subscription "subscriptions/eu:log"
		if strings.HasPrefix(part, "deleted/") {
			continue
		}
		switch part[strings.LastIndex(part, ":")+1:] {
		case "names", "registered", "alarms", "whole_sweep", "readings", "barred":
			continue
		case "rules":
			for _, member := range c.ZRange(t.Context(), key, 0, -1).Val() {
				names := strings.SplitN(member, "\x00", 3)
				lines = append(lines, part+" "+names[0]+" "+names[1])
			}
			continue
		case "entity":
			for _, field := range []string{
				"sequence", "cursor", "bytes", "dead_sequence", "dead_cursor", "dead_bytes", "state_bytes", "blocked", "blocked_sessions",
				"most_bytes", "run_messages", "sql_filters", "correlation_filters", "forwarder_called", "transfer", "dead_transfer",
			} {
				value := c.HGet(t.Context(), key, field).Val()
				if strings.HasSuffix(field, "transfer") { // <number>:<nonce>:<begun>:<kind>:<incarnation>:<path>
					value = value[strings.LastIndexByte(value, ':')+1:]
				}
				if value != "" && (value != "0" || field != "run_messages") {
					lines = append(lines, part+" "+field+"="+value)
				}
			}
			continue
		}
		switch kind := c.Type(t.Context(), key).Val(); kind {
		case "string":
			// ready_sessions of a queue that had chunks: see lua/lib/intake/append_chunks.lua
		case "stream":
			for _, m := range c.XRange(t.Context(), key, "-", "+").Val() {
				line := part + " " + m.ID
				if origin, is := m.Values["e"]; is {
					line += " of " + fmt.Sprint(origin)
				}
				lines = append(lines, line)
			}
		case "zset":
			for _, z := range c.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
				member, _, _ := strings.Cut(fmt.Sprint(z.Member), ":")
				if part == "run_locks" { // by nonce
					member = "run"
				}
				switch {
				case strings.HasSuffix(part, "_sessions") || part == "session_locks" || part == "states_due":
					member += "@" + strconv.FormatFloat(z.Score, 'f', -1, 64)
				case z.Score < 0:
					member = "-" + member
				}
				lines = append(lines, part+" "+member)
			}
		case "hash":
			for field, value := range c.HGetAll(t.Context(), key).Val() {
				if part == "arrivals" { // <incarnation>:<side>:<path> and <number>:<nonce>:<ms>:<outcomes>
					_, field, _ = strings.Cut(field, ":")
					value = value[strings.LastIndexByte(value, ':')+1:]
				}
				if part == "runs" { // by nonce
					field = "run"
				}
				lines = append(lines, part+" "+field+"="+value)
			}
		default:
			t.Errorf("key %s is a %s", key, kind)
		}
	}
	slices.Sort(lines)
	return lines
}

// Each verb leaves exactly the keys and members it should: the whole state of the queue is compared after every step.
func TestStateStepByStep(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	namespace := redistest.Namespace()
	s := redistest.Open(t, redisstore.Options{Namespace: namespace, Now: clock.Now})
	ctx := t.Context()
	options := semantics.DefaultOptions()
	options.MaxDeliveryCount, options.DeadLetteringOnMessageExpiration = 2, true
	if _, _, err := s.CreateEntity(ctx, semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	held := map[int64]semantics.LockToken{}
	receive := func(source semantics.Source, n int) {
		t.Helper()
		batch, err := s.Receive(ctx, source, n, semantics.RegisterNever)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range batch.Messages {
			held[m.SequenceNumber] = m.LockToken
		}
	}
	want := func(step string, lines ...string) {
		t.Helper()
		slices.Sort(lines)
		if diff := cmp.Diff(append([]string{}, lines...), dump(t, namespace)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step, diff)
		}
	}
	settle := func(verb func([]semantics.LockToken) ([]semantics.Code, error), n int64) {
		t.Helper()
		if codes, err := verb([]semantics.LockToken{held[n]}); err != nil || codes[0] != "" {
			t.Fatalf("settle %d: %v %v", n, codes, err)
		}
	}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	abandon := func(tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.Abandon(ctx, orders, tokens, semantics.AbandonOptions{})
	}
	complete := func(tokens []semantics.LockToken) ([]semantics.Code, error) { return s.Complete(ctx, orders, tokens) }
	completeDead := func(tokens []semantics.LockToken) ([]semantics.Code, error) { return s.Complete(ctx, dead, tokens) }

	ttl := time.Minute * 3
	bodies := []*semantics.Message{
		{MessageID: "a"}, {MessageID: "bb"}, {MessageID: "ccc", TimeToLive: &ttl}, {MessageID: "dddd", TimeToLive: &ttl},
	}
	if _, err := s.Send(ctx, "orders", bodies); err != nil {
		t.Fatal(err)
	}
	want("send", "entity sequence=4", "entity bytes=10", "log 1-1", "log 2-2", "log 3-3", "log 4-4", "expiry 3", "expiry 4")

	receive(orders, 3)
	want("receive", "entity sequence=4", "entity bytes=10", "entity cursor=3", "log 1-1", "log 2-2", "log 3-3", "log 4-4",
		"locks 1", "locks 2", "locks 3", "expiry -3", "expiry 4")

	settle(complete, 1)
	want("complete", "entity sequence=4", "entity bytes=9", "entity cursor=3", "log 2-2", "log 3-3", "log 4-4",
		"locks 2", "locks 3", "expiry -3", "expiry 4")

	settle(abandon, 2)
	settle(abandon, 3)
	want("abandon", "entity sequence=4", "entity bytes=9", "entity cursor=3", "log 2-2", "log 3-3", "log 4-4",
		"ready 2", "ready 3", "deliveries 2=1", "deliveries 3=1", "expiry 3", "expiry 4")

	receive(orders, 1)
	settle(abandon, 2)
	want("last abandon", "entity sequence=4", "entity bytes=7", "entity cursor=3", "log 3-3", "log 4-4",
		"ready 3", "deliveries 3=1", "expiry 3", "expiry 4",
		"entity dead_sequence=1", "entity dead_bytes=2", "dead_log 1-2", "dead_numbers 1")

	clock.Advance(ttl)
	receive(orders, 9)
	want("expiry", "entity sequence=4", "entity bytes=0", "entity cursor=4",
		"entity dead_sequence=3", "entity dead_bytes=9", "dead_log 1-2", "dead_log 2-3", "dead_log 3-4",
		"dead_numbers 1", "dead_numbers 2", "dead_numbers 3")

	receive(dead, 9)
	for _, n := range []int64{2, 3, 4} {
		settle(completeDead, n)
	}
	want("drained", "entity sequence=4", "entity bytes=0", "entity cursor=4", "entity dead_sequence=3", "entity dead_cursor=3",
		"entity dead_bytes=0")

	if err := s.DeleteEntity(ctx, semantics.QueueKind, "orders"); err != nil {
		t.Fatal(err)
	}
	want("deleted")
}

// A queue that permits large messages hands out small ones as many at a time as any other.
func TestSmallMessagesOfAQueueForLargeOnes(t *testing.T) {
	t.Parallel()
	var receives atomic.Int64
	s := redistest.Open(t, redisstore.Options{Observe: func(script, _ string, _ time.Duration) {
		if script == "receive" {
			receives.Add(1)
		}
	}})
	options := semantics.DefaultOptions()
	options.MaxMessageSizeInKilobytes = semantics.MaxMessageSizeKilobytes
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "orders", messagesOf(200, semantics.Message{Body: make([]byte, 100)})); err != nil {
		t.Fatal(err)
	}
	batch, err := s.Receive(t.Context(), orders, 200, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 200 || receives.Load() != 1 {
		t.Errorf("got %d messages with %d scripts (%v), want 200 with one", len(batch.Messages), receives.Load(), err)
	}
}
