package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"
)

const mebibyte = 1 << 20

func TestPercent(t *testing.T) {
	t.Parallel()
	const most = 64 * mebibyte
	cases := []struct {
		name            string
		live, allocated int64
		interval        time.Duration
		want            int
	}{
		{"an idle process, collected because two minutes have passed", 8 * mebibyte, mebibyte, 2 * time.Minute, 100},
		{"one that fills its heap in two seconds", 8 * mebibyte, 8 * mebibyte, 2 * time.Second, 100},
		{"one that fills it four times a second", 8 * mebibyte, 8 * mebibyte, time.Second / 4, 400},
		{"one that fills it a thousand times", 8 * mebibyte, 8 * mebibyte, time.Millisecond, 700},
		{"one with hardly anything", 0, 4 * mebibyte, time.Millisecond, 1500},
		{"one with half of the bound", 32 * mebibyte, 32 * mebibyte, time.Millisecond, 100},
		{"one with more than the bound", 1 << 30, 1 << 30, time.Millisecond, 100},
		{"a clock that stands still", 8 * mebibyte, 8 * mebibyte, 0, 700},
		{"a clock that went back", 8 * mebibyte, 8 * mebibyte, -time.Second, 700},
	}
	for _, c := range cases {
		if got := percent(c.live, 0, c.allocated, c.interval, most); got != c.want {
			t.Errorf("%s: %d percent, want %d", c.name, got, c.want)
		}
	}
}

// The runtime adds to the heap's goal as much for stacks and globals as for what is live, so they count too.
func TestPercentWithStacks(t *testing.T) {
	t.Parallel()
	const live, roots, most = 8 * mebibyte, 24 * mebibyte, 64 * mebibyte
	got := percent(live, roots, most, time.Millisecond, most)
	if goal := live + (live+roots)*got/100; goal > most {
		t.Errorf("%d percent let the heap grow to %d bytes, at most %d are wanted", got, goal, most)
	}
}

// clock says to a pacer that each collection came an interval after the one before.
type clock struct {
	interval atomic.Int64
	reads    atomic.Int64
}

func (c *clock) now() time.Time { return time.Unix(0, c.interval.Load()*c.reads.Add(1)) }

// goal returns the heap at which the next collection begins, after some with an interval between them.
func goal(interval time.Duration) uint64 {
	c := &clock{}
	c.interval.Store(int64(interval))
	defer c.interval.Store(int64(time.Hour)) // from then on the pacer sets the default
	p := &pacer{most: 64 * mebibyte, now: c.now}
	p.last = p.read()
	p.await()
	for c.reads.Load() < 4 { // until it has set a percentage, and a collection has begun after that
		runtime.GC()
	}
	value := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(value)
	return value[0].Value.Uint64()
}

func TestTheHeapGrowsUnderLoadAlone(t *testing.T) { //nolint:paralleltest // it reads the heap of the process
	if idle := goal(time.Hour); idle > 16*mebibyte {
		t.Errorf("collections an hour apart: the next one begins at %d bytes", idle)
	}
	if loaded := goal(time.Nanosecond); loaded < 48*mebibyte || loaded > 80*mebibyte {
		t.Errorf("collections a nanosecond apart: the next one begins at %d bytes", loaded)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(16 * mebibyte))
	if limited := goal(time.Nanosecond); limited > 24*mebibyte {
		t.Errorf("with a limit of 16 MiB, the next collection begins at %d bytes", limited)
	}
}
