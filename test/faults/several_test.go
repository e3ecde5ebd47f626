package faults

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// How long before a Redis died or changed its role what it acknowledged may be lost. A replica on the same machine lags
// by milliseconds; a write to a file that is synced every second can wait for a sync that is under way.
const (
	everysec = 2 * time.Second
	lag      = 2 * time.Second
)

// startSentinels starts a primary with a replica and three Sentinels, which fail over.
func startSentinels(t *testing.T) servers {
	t.Helper()
	s := redistest.StartSentinels(t)
	t.Cleanup(s.Stop)
	return servers{url: s.URL, forgetful: true, window: lag, faults: []fault{
		{"primary killed", true, func(r *run) (time.Duration, func()) {
			s.KillPrimary(r.t)
			return r.between(time.Millisecond, 3*time.Second), func() { s.Recover(r.t) }
		}},
		{"failover by hand", true, func(r *run) (time.Duration, func()) {
			s.FailOver(r.t)
			return r.between(time.Second, 3*time.Second), func() { s.Recover(r.t) }
		}},
	}}
}

// startCluster starts three primaries with a replica each, whose slots move and which fail over.
func startCluster(t *testing.T) servers {
	t.Helper()
	c := redistest.StartCluster(t)
	t.Cleanup(c.Stop)
	key := func(r *run) string {
		entities := []string{"orders", "chats", "news"}
		for p := range partitions {
			entities = append(entities, semantics.Fold(r.store.Path("spread", p)))
		}
		return "sb:{" + r.namespace + "/" + entities[r.rng.IntN(len(entities))] + "}:entity"
	}
	return servers{url: c.URL, forgetful: true, window: lag, faults: []fault{
		{"primary killed", true, func(r *run) (time.Duration, func()) {
			c.KillPrimaryOf(r.t, key(r))
			return r.between(time.Millisecond, 4*time.Second), func() { c.Recover(r.t) }
		}},
		{"primary stopped", true, func(r *run) (time.Duration, func()) {
			goOn := c.StopPrimaryOf(r.t, key(r))
			return r.between(100*time.Millisecond, 4*time.Second), func() {
				goOn()
				c.Recover(r.t)
			}
		}},
		{"slot moved", false, func(r *run) (time.Duration, func()) {
			c.MoveSlot(r.t, key(r))
			return 0, nil
		}},
		{"slot half moved", false, func(r *run) (time.Duration, func()) {
			return r.between(100*time.Millisecond, time.Second), c.HalfMoved(r.t, key(r))
		}},
	}}
}

// anHourBehind starts a Redis whose clock is an hour behind those of the pods.
func anHourBehind(t *testing.T) servers {
	t.Helper()
	on := startOne(t, "--appendfsync", "always")
	clock := redistest.OpenSlowClock(t, on.url)
	clock.SetBack(time.Hour)
	socket := redistest.ClientOptions(t, clock.URL).Addr
	on.url, on.behind, on.urlOf = clock.URL, time.Hour, func() *line { return openLine(t, socket) }
	on.end = func() { clock.SetBack(0) }
	return on
}
