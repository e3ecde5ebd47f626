package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// commandsOf gives how many commands a Redis carried out while work ran, those of scripts included. Nobody else may use
// it.
func commandsOf(t *testing.T, client *redis.Client, work func()) (calls int) {
	t.Helper()
	if err := client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	work()
	for line := range strings.Lines(client.Info(t.Context(), "commandstats").Val()) {
		_, stats, _ := strings.Cut(line, ":calls=")
		n := 0
		_, _ = fmt.Sscanf(stats, "%d,", &n)
		calls += n
	}
	return calls
}

// The oldest message that makes way is found at once, however many lie before it that are deferred.
func TestTOPIC_7_DropOldestLooksAtFew(t *testing.T) {
	t.Parallel()
	const deferred, available, most = 1500, 3, 500 // commands for one message
	for name, requiresSession := range map[string]bool{"plain": false, "sessions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			defer server.Stop()
			s := redistest.Open(t, redisstore.Options{URL: server.URL})
			options := redistest.ClientOptions(t, server.URL)
			raw := redis.NewClient(options)
			defer raw.Close()
			must(t, createTopic(t, s))
			must(t, subscribe(t, s, "eu", func(o *semantics.Options) {
				o.RequiresSession, o.SessionInFlight = requiresSession, 1000
				o.MaxMessageCount, o.Overflow = deferred+available, semantics.DropOldestOverflow
			}))
			put := func(n int) {
				t.Helper()
				var all []semantics.Publication
				for range n {
					m := &semantics.Message{MessageID: "m", SessionID: "a"}
					all = append(all, semantics.Publication{Message: m, Copies: copiesOf(m, "eu")})
				}
				must(t, publish(t, s, all...).Err)
			}
			put(deferred)
			source := of("eu")
			if requiresSession {
				session, err := s.AcceptSession(t.Context(), source.Path, "a")
				must(t, err)
				source.SessionLock = session.Lock
			}
			for left := deferred; left > 0; {
				batch, err := s.Receive(t.Context(), source, 500, semantics.RegisterNever)
				must(t, err)
				_, err = s.Defer(t.Context(), source, tokensOf(batch.Messages), nil)
				must(t, err)
				left -= len(batch.Messages)
			}
			put(available)
			if n := commandsOf(t, raw, func() { put(available) }); n > most*available {
				t.Errorf("%d commands to drop %d messages behind %d deferred ones, want %d at most", n, available, deferred, most*available)
			}
			left, err := s.Peek(t.Context(), source, deferred, 9, semantics.ShowAll)
			must(t, err)
			if got := fmt.Sprint(numbersIn(left)); got != fmt.Sprint([]int64{deferred, deferred + 4, deferred + 5, deferred + 6}) {
				t.Errorf("it has %s", got)
			}
		})
	}
}

func numbersIn(messages []*semantics.Received) (numbers []int64) {
	for _, m := range messages {
		numbers = append(numbers, m.SequenceNumber)
	}
	return numbers
}
