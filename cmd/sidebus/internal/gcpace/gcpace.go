// Package gcpace lets the garbage collector run about once a second under load.
//
// A sidecar has little live data, some megabytes, and makes kilobytes of garbage for each message. By default the
// collector runs whenever the heap has doubled, so under load it runs many times a second. With this package the heap
// may grow by the garbage of a second, up to a bound. An idle sidecar makes little garbage in a second, so its heap
// stays as small as by default. When load has ended, the runtime collects within two minutes, and the heap shrinks.
package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Start returns the memory of what is garbage by now to the system, and paces the collector for the rest of the
// process, in which the heap grows to most bytes, or to twice what is live if that is more. It paces nothing if the
// variable GOGC is set, because then the operator has decided. GOMEMLIMIT still holds. Call it once, when the start of
// the process has made its garbage.
func Start(most int64) {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		p := &pacer{most: most, now: time.Now}
		p.last = p.read()
		p.await()
	}
}

// pacer sets after each collection how far the heap may grow until the next one.
type pacer struct {
	most int64
	now  func() time.Time
	last sample
	set  int // percent; 0: not yet
}

// sample is what a collection has found.
type sample struct {
	at        time.Time
	allocated int64 // since the process began
	live      int64
	roots     int64 // stacks and globals, for which the runtime also lets the heap grow
}

// cycle is garbage from the moment when it is created, so its finalizer runs after the next collection.
type cycle struct{ *pacer }

func (p *pacer) await() {
	runtime.SetFinalizer(&cycle{p}, func(c *cycle) {
		c.collected()
		c.await()
	})
}

func (p *pacer) collected() {
	s := p.read()
	next := percent(s.live, s.roots, s.allocated-p.last.allocated, s.at.Sub(p.last.at), p.most)
	if next != p.set { // setting it stops all goroutines for a moment
		debug.SetGCPercent(next)
	}
	p.last, p.set = s, next
}

func (p *pacer) read() sample {
	values := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(values)
	bytes := func(i int) int64 { return int64(values[i].Value.Uint64()) } //nolint:gosec // bytes
	return sample{at: p.now(), allocated: bytes(0), live: bytes(1), roots: bytes(2) + bytes(3)}
}

const (
	usual     = 100     // the default of GOGC
	smallHeap = 4 << 20 // a heap that the runtime does not collect with the default of GOGC
)

// percent returns by how much the heap may grow beyond what is live: by the garbage of a second, if as much as in the
// last interval is allocated, but not beyond most bytes; at least by as much as by default.
func percent(live, roots, allocated int64, interval time.Duration, most int64) int {
	live = max(live, smallHeap)
	garbage := float64(allocated) / max(interval, time.Microsecond).Seconds()
	heap := min(float64(live)+garbage, float64(most))
	return max(int((heap-float64(live))/float64(live+roots)*100), usual)
}
