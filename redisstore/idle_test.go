package redisstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// Connections that only the busiest moment needed are closed, and no call meets one that is being closed.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	const callers = 12
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	s := redistest.Open(t, redisstore.Options{
		URL: server.URL, PoolSize: callers, IdleTime: 200 * time.Millisecond, ReadTimeout: 3 * time.Second,
	})
	for i := range callers {
		_, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, queueName(i), semantics.DefaultOptions())
		must(t, err)
	}
	operator := open(t, server.URL)
	must(t, operator.Do(t.Context(), "client", "pause", "500", "write").Err())
	var busy sync.WaitGroup
	for i := range callers {
		busy.Go(func() {
			if _, err := s.Send(t.Context(), queueName(i), message(1)); err != nil {
				t.Error(err)
			}
		})
	}
	sidecartest.Eventually(t, "the calls have connections of their own", func() bool { return connections(t, operator) > callers/2 })
	busy.Wait()

	// The one connection that is still needed stays: no call fails.
	sidecartest.Eventually(t, "idle connections are closed", func() bool {
		if _, err := s.Send(t.Context(), queueName(0), message(1)); err != nil {
			t.Fatal(err)
		}
		return connections(t, operator) <= 2
	})
	for i := range callers {
		if _, err := s.Send(t.Context(), queueName(i), message(1)); err != nil {
			t.Error(err)
		}
	}
}

func queueName(i int) string { return fmt.Sprintf("orders-%d", i) }

// connections returns how many connections of stores the server has.
func connections(t *testing.T, operator *redis.Client) int {
	t.Helper()
	list, err := operator.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "name=sidebus ")
}
