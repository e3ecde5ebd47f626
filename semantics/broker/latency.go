package broker

import (
	"math"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Latency is how long something took, of the messages of one entity.
type Latency struct {
	Count      int
	Half, At95 time.Duration // half of them took no longer, and 95 of 100
}

// What is measured: times from a millisecond to some hours, in steps of a fifth, for a bounded number of entities.
const (
	latencySteps    = 104
	stepsInDouble   = 4
	latencyEntities = 1000
)

// histogram counts times by their length. Each step is longer than the one before by the same factor.
type histogram [latencySteps]uint32

func (h *histogram) note(took time.Duration) {
	step := 0
	if took > time.Millisecond {
		step = int(math.Ceil(math.Log2(float64(took)/float64(time.Millisecond)) * stepsInDouble))
	}
	h[min(step, latencySteps-1)]++
}

// summary returns what the histogram has. A time is the upper end of its step.
func (h *histogram) summary() Latency {
	var l Latency
	for _, n := range h {
		l.Count += int(n)
	}
	l.Half, l.At95 = h.quantile(l.Count, 50), h.quantile(l.Count, 95)
	return l
}

func (h *histogram) quantile(count, percent int) time.Duration {
	rank, seen := (count*percent+99)/100, 0
	for step, n := range h {
		if seen += int(n); n > 0 && seen >= rank {
			return time.Duration(math.Pow(2, float64(step)/stepsInDouble) * float64(time.Millisecond))
		}
	}
	return 0
}

// latencies are the times of the messages that this process hands out under lock. They are guarded by the lock of held.
// nil: nothing is measured.
type latencies map[string]*latency // by path in lower case

type latency struct {
	waits histogram // from a message's arrival to its first delivery
	takes histogram // from a delivery to its settlement
}

// of returns the times of an entity; nil if there are too many others.
func (all latencies) of(path string) *latency {
	key := semantics.Fold(path)
	l := all[key]
	if l == nil && len(all) < latencyEntities {
		l = &latency{}
		all[key] = l
	}
	return l
}

// MeasureLatency begins or ends to measure how long messages wait and how long their receivers take. Unless it is
// measured it costs nothing.
func (b *Broker) MeasureLatency(on bool) {
	b.held.mu.Lock()
	defer b.held.mu.Unlock()
	switch {
	case !on:
		b.held.latencies = nil
	case b.held.latencies == nil:
		b.held.latencies = latencies{}
	}
}

// TakeLatency returns what was measured of a queue or subscription since the last call: the times from the arrival of a
// message to its first delivery by this process, and from a delivery to its settlement. Dead letters are left out.
func (b *Broker) TakeLatency(path string) (waits, takes Latency) {
	b.held.mu.Lock()
	defer b.held.mu.Unlock()
	key := semantics.Fold(path)
	l := b.held.latencies[key]
	if l == nil {
		return waits, takes
	}
	delete(b.held.latencies, key)
	return l.waits.summary(), l.takes.summary()
}

// deliveredLocked notes messages that are delivered, and returns when, 0 if nothing is measured.
func (h *held) deliveredLocked(source semantics.Source, messages []*semantics.Received) (at int64) {
	if h.latencies == nil || source.SubQueue.IsDeadLetters() {
		return 0
	}
	now := time.Now()
	if l := h.latencies.of(source.Path); l != nil {
		for _, m := range messages {
			if m.DeliveryCount <= 1 {
				l.waits.note(now.Sub(m.EnqueuedAt))
			}
		}
	}
	return now.UnixNano()
}

// settledLocked notes that a message was settled, before its lock is removed.
func (h *held) settledLocked(token semantics.LockToken) {
	if h.latencies == nil {
		return
	}
	lock := h.locks[token]
	if lock.delivered == 0 {
		return // it was delivered before anything was measured, or is of another process
	}
	if l := h.latencies.of(lock.source.Path); l != nil {
		l.takes.note(time.Duration(time.Now().UnixNano() - lock.delivered))
	}
}
