package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// The auditor of the model test finds each kind of damage. A test that cannot fail proves nothing.
func TestAuditorFindsDamage(t *testing.T) {
	t.Parallel()
	damages := map[string]func(c *redis.Client, tag string) error{
		"none": func(*redis.Client, string) error { return nil },
		"run without lock": func(c *redis.Client, tag string) error {
			return c.HSet(t.Context(), tag+"runs", "77", "1-1").Err()
		},
		"lock without run": func(c *redis.Client, tag string) error {
			return c.ZAdd(t.Context(), tag+"run_locks", redis.Z{Score: 9e12, Member: "77"}).Err()
		},
		"messages of runs": func(c *redis.Client, tag string) error {
			return c.HIncrBy(t.Context(), tag+"entity", "run_messages", 1).Err()
		},
		"lock gone":    func(c *redis.Client, tag string) error { return c.Del(t.Context(), tag+"locks").Err() },
		"message gone": func(c *redis.Client, tag string) error { return c.XTrimMaxLen(t.Context(), tag+"log", 1).Err() },
		"twice available": func(c *redis.Client, tag string) error {
			return c.ZAdd(t.Context(), tag+"ready", redis.Z{Score: 5, Member: "5"}).Err()
		},
		"lifetime gone":  func(c *redis.Client, tag string) error { return c.Del(t.Context(), tag+"expiry").Err() },
		"orphaned count": func(c *redis.Client, tag string) error { return c.HSet(t.Context(), tag+"deliveries", "99", 1).Err() },
		"bytes wrong":    func(c *redis.Client, tag string) error { return c.HIncrBy(t.Context(), tag+"entity", "bytes", 1).Err() },
		"gap below cursor": func(c *redis.Client, tag string) error {
			return c.ZAdd(t.Context(), tag+"gaps", redis.Z{Score: 1, Member: "1-1"}).Err()
		},
		"due gone":        func(c *redis.Client, tag string) error { return c.Del(t.Context(), tag+"due").Err() },
		"id of a message": func(c *redis.Client, tag string) error { return c.Del(t.Context(), tag+"scheduled_ids").Err() },
		"history halved":  func(c *redis.Client, tag string) error { return c.Del(t.Context(), tag+"history_times").Err() },
		"alarm late": func(c *redis.Client, tag string) error {
			return c.HSet(t.Context(), tag+"entity", "alarm_ms", "9000000000000").Err()
		},
		"unknown key": func(c *redis.Client, tag string) error { return c.Set(t.Context(), tag+"other", 1, 0).Err() },
		"left over":   func(c *redis.Client, tag string) error { return c.Del(t.Context(), tag+"entity").Err() },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSwept(t, redisstore.Options{})
			s.create(t, func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
			life := time.Hour
			s.send(t, messagesOf(5, semantics.Message{TimeToLive: &life})...)
			s.send(t, &semantics.Message{MessageID: "later", ScheduledAt: time.Now().Add(time.Hour)})
			receiveOne(t, s.Store)
			receiveOne(t, s.Store)
			if err := damage(s.raw, s.key("")); err != nil {
				t.Fatal(err)
			}
			err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders")
			if (err != nil) != (name != "none") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// It does so in topics and their subscriptions too.
func TestAuditorFindsDamageInTopics(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	damages := map[string]func(c *redis.Client, tag string) error{
		"none":          func(*redis.Client, string) error { return nil },
		"orphaned keys": func(c *redis.Client, tag string) error { return c.HDel(ctx, tag+"subscriptions", "0").Err() },
		"flags differ":  func(c *redis.Client, tag string) error { return c.HSet(ctx, tag+"subscriptions", "0", "10").Err() },
		"rule of nobody": func(c *redis.Client, tag string) error {
			return c.ZAdd(ctx, tag+"rules", redis.Z{Member: "9\x00r\x00o1:"}).Err()
		},
		"filter uncounted": func(c *redis.Client, tag string) error {
			return c.ZAdd(ctx, tag+"rules", redis.Z{Member: "0\x00r\x00s1:"}).Err()
		},
		"rule twice": func(c *redis.Client, tag string) error {
			return c.ZAdd(ctx, tag+"rules", redis.Z{Member: "0\x00$default\x00o1:"}).Err()
		},
		"bound too low":     func(c *redis.Client, tag string) error { return c.HSet(ctx, tag+"entity", "most_bytes", 1).Err() },
		"bytes wrong":       func(c *redis.Client, tag string) error { return c.HIncrBy(ctx, tag+"entity", "bytes", 1).Err() },
		"due gone":          func(c *redis.Client, tag string) error { return c.Del(ctx, tag+"due").Err() },
		"alarm gone":        func(c *redis.Client, tag string) error { return c.HDel(ctx, tag+"entity", "alarm_ms").Err() },
		"a queue's key":     func(c *redis.Client, tag string) error { return c.ZAdd(ctx, tag+"locks", redis.Z{Member: "1:1"}).Err() },
		"messages of a sub": func(c *redis.Client, tag string) error { return c.XTrimMaxLen(ctx, tag+"subscriptions/2:log", 1).Err() },
		"scheduled at a subscription": func(c *redis.Client, tag string) error {
			return c.ZAdd(ctx, tag+"subscriptions/2:due", redis.Z{Member: "1"}).Err()
		},
		"numbers out of order": func(c *redis.Client, tag string) error { return c.HSet(ctx, tag+"entity", "sequence", 2).Err() },
		"left over":            func(c *redis.Client, tag string) error { return c.Del(ctx, tag+"entity").Err() },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, namespace := rawClient(t), redistest.NamespaceUntil(t, redistest.URL(t))
			fill(t, redistest.Open(t, redisstore.Options{Namespace: namespace}))
			if err := damage(raw, "sb:{"+namespace+"/news}:"); err != nil {
				t.Fatal(err)
			}
			err := audit.New(raw, namespace).Audit(ctx, "news")
			if (err != nil) != (name != "none") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// With a ledger it finds what is locked and was not handed out, what was handed out and is not locked, and what has
// failed more or less often than was said.
func TestAuditorFindsLocksOfNobody(t *testing.T) {
	t.Parallel()
	damages := map[string]func(t *testing.T, s *swept){
		"":               func(*testing.T, *swept) {},
		"not handed out": func(t *testing.T, s *swept) { receiveOne(t, s.Store) }, // past the ledger
		"is not locked": func(t *testing.T, s *swept) {
			s.raw.Del(t.Context(), s.key("runs"), s.key("run_locks"))
			s.raw.HSet(t.Context(), s.key("entity"), "run_messages", 0)
			s.raw.ZAdd(t.Context(), s.key("ready"), redis.Z{Score: 1, Member: "1"})
		},
		"has failed 3 times": func(t *testing.T, s *swept) { s.raw.HSet(t.Context(), s.key("deliveries"), "1", 3) },
		"it was said until": func(t *testing.T, s *swept) {
			s.raw.ZAddXX(t.Context(), s.key("run_locks"), redis.Z{Score: 9e12, Member: s.raw.ZRange(t.Context(), s.key("run_locks"), 0, 0).Val()[0]})
		},
	}
	for says, damage := range damages {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			s := openSwept(t, redisstore.Options{})
			s.create(t, func(*semantics.Options) {})
			s.send(t, messagesOf(3, semantics.Message{})...)
			ledger := redistest.NewLedger(time.Now)
			kept := ledger.Keep(s.Store)
			if _, err := kept.Receive(t.Context(), orders, 1, semantics.RegisterNever); err != nil {
				t.Fatal(err)
			}
			damage(t, s)
			err := audit.New(s.raw, s.namespace).With(ledger).Audit(t.Context(), "orders")
			if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want %q", err, says)
			}
		})
	}
}
