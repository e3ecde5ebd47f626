package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// The auditor of the model test finds each kind of damage. A test that cannot fail proves nothing.
func TestAuditorFindsDamage(t *testing.T) {
	t.Parallel()
	damages := map[string]func(c *redis.Client, tag string) error{
		"none":         func(*redis.Client, string) error { return nil },
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
			err := redistest.NewAuditor(s.raw, s.namespace).Audit(t.Context(), "orders")
			if (err != nil) != (name != "none") {
				t.Errorf("got %v", err)
			}
		})
	}
}
