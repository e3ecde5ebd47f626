package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Sidecars see the clock that was set back, whatever is in their commands besides, and the right one when it is right
// again.
func TestSlowClock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	clock := redistest.OpenSlowClock(t, server.URL)
	store := redistest.Open(t, redisstore.Options{URL: clock.URL})
	options := semantics.DefaultOptions()
	options.MaxMessageSizeInKilobytes = 2048
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	const hour = time.Hour
	for i, behind := range []time.Duration{0, hour, time.Millisecond, 0} {
		clock.SetBack(behind)
		body := make([]byte, 1+i*300_000)
		began := time.Now()
		if _, err := store.Send(context.Background(), "orders", []*semantics.Message{{Body: []byte("0")}, {Body: body}}); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		rows, err := store.Peek(t.Context(), semantics.Source{Path: "orders"}, int64(2*i+1), 2, semantics.ShowAll)
		if err != nil || len(rows) != 2 || len(rows[1].Body) != len(body) || string(rows[0].Body) != "0" {
			t.Fatalf("peek: %d messages, %v", len(rows), err)
		}
		at := rows[0].EnqueuedAt.Add(behind)
		if at.Before(began.Truncate(time.Millisecond)) || at.After(ended) {
			t.Errorf("%s behind: sent at %s, want %s to %s", behind, at, began, ended)
		}
	}
}
