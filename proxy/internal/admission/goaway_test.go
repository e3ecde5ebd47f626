package admission

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/internal/admission/internal/counts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
)

type noBroker struct{}

func (noBroker) Held() int                             { return 0 }
func (noBroker) OrphanReplies() int64                  { return 0 }
func (noBroker) PrefetchesCut() int64                  { return 0 }
func (noBroker) Forwarded() (forwarded, refused int64) { return 0, 0 }

// A request that arrives while GOAWAY names its call as not processed is not passed to the server: the client makes the
// call again on another connection, and it must run once.
func TestNothingArrivesBehindGoAway(t *testing.T) {
	t.Parallel()
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), noBroker{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctl := New(Config{MaxConnections: 10, MaxMemory: 1 << 20, ReadTimeout: time.Minute}, metrics, slog.New(slog.DiscardHandler))
	conn := &Conn{controller: ctl, counts: counts.NewConnection(ctl.connections, obs.GRPC, func() {}, func() {})}
	if !ctl.admit(conn.counts, false) {
		t.Fatal("not admitted")
	}
	c := newCallsInFlight(conn)
	defer c.end()
	begin := slices.Concat([]byte(preface), encodeFrame(frameHeaders, flagEndHeaders, 1, nil))
	if n, _, isOver, _ := c.received(begin); n != len(begin) || isOver {
		t.Fatalf("the beginning of a call: %d bytes, over %t", n, isOver)
	}
	if last, isBusy := c.goAway(); last != 0 || isBusy {
		t.Fatalf("last %d, busy %t", last, isBusy)
	}
	if n, _, isOver, _ := c.received(encodeFrame(frameData, flagEndStream, 1, make([]byte, prefixSize))); !isOver {
		t.Errorf("its message: %d bytes", n)
	}
}
