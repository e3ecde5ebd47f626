package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// A peek takes one script; only one that finds a message too large to be read beside others takes a second one.
func TestPEEK_4_LargeMessagesAreReadAlone(t *testing.T) {
	t.Parallel()
	scripts := 0
	s := openSwept(t, redisstore.Options{Observe: func(script, _ string, _ time.Duration) {
		if script == "peek" {
			scripts++
		}
	}})
	must(t, makeQueue(t, s.Store, "orders", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 4096 }))
	for _, c := range []struct {
		bytes, shown, scripts int
	}{
		{0, 0, 1}, {1, 1, 1}, {3 << 20, 1, 1}, {1, 1, 1},
	} {
		if c.bytes > 0 {
			_, err := s.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "m", Body: make([]byte, c.bytes)}})
			must(t, err)
		}
		scripts = 0
		rows, err := s.Peek(t.Context(), orders, 0, 250, semantics.ShowAll)
		must(t, err)
		if len(rows) != c.shown || scripts != c.scripts {
			t.Errorf("after %d bytes more: %d messages in %d scripts, want %d in %d", c.bytes, len(rows), scripts, c.shown, c.scripts)
		}
	}
	scripts = 0
	rows, err := s.Peek(t.Context(), orders, 2, 250, semantics.ShowAll)
	must(t, err)
	if len(rows) != 1 || len(rows[0].Body) != 3<<20 || scripts != 2 {
		t.Errorf("the large one: %d messages in %d scripts", len(rows), scripts)
	}
}
