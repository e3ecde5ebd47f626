package history

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

var (
	histories = flag.Int("histories", 3, "how many histories to make, each of the next seed")
	firstSeed = flag.Uint64("seed", 1, "seed of the first history")
	faulty    = flag.Duration("faulty", 2000*time.Millisecond, "how long faults are injected in each history")
)

// Whatever is done to sidecars and applications, the sessions of a queue keep their promises. What a history does comes
// from its seed; what happens then is up to the machine, so a seed may have to be tried several times.
func TestSESS_30_SessionHistories(t *testing.T) {
	t.Parallel()
	sidecartest.Binary(t)
	var operations, faults atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d histories from seed %d on: %d operations, %d faults", *histories, *firstSeed, operations.Load(), faults.Load())
	})
	for i := range *histories {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to repeat: go test ./test/history -run 'TestSESS_30_SessionHistories$' -count=20 -seed=%d -histories=1 -faulty=%s", seed, *faulty)
				}
			})
			r := newRun(t, seed)
			r.play(*faulty)
			r.check()
			operations.Add(int64(len(r.record.calls)))
			faults.Add(int64(r.tell()))
		})
	}
}

// tell logs how much a history has in it, and gives the number of its faults.
func (r *run) tell() (faults int) {
	calls, fenced, blind, redelivered := map[string]int{}, 0, len(r.record.blind), 0
	for _, c := range r.record.calls {
		calls[c.what]++
		if c.outcome == lost {
			fenced++
		}
	}
	for _, d := range r.record.deliveries {
		if d.count > 1 {
			redelivered++
		}
	}
	ended := map[rise]int{}
	for _, h := range r.record.holds {
		ended[r.given(h)]++
	}
	killed, drained, halts, sent := 0, 0, 0, 0
	for _, p := range r.all {
		halts += len(p.halts)
		if !p.killed.IsZero() {
			killed++
		}
		if !p.drained.IsZero() {
			drained++
		}
	}
	for _, by := range r.record.sent {
		sent += len(by)
	}
	r.t.Logf("%d killed, %d drained, %d halted; %d sent, %d delivered, %d of them again; %d holds, of which %d ran out; %d calls, %d fenced off, %d of unknown outcome; %v",
		killed, drained, halts, sent, len(r.record.deliveries), redelivered, len(r.record.holds), ended[rise{1, 1}], len(r.record.calls), fenced, blind, calls)
	return killed + drained + halts
}
