package console

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	pastsAtMost = 20               // dead-letter queues whose counts are remembered
	pastSpacing = 30 * time.Second // least time between two samples
)

// past remembers how many dead letters there were in the last hour, by group, of the dead-letter queues that pages have
// looked at. It is safe for concurrent use.
type past struct {
	mu     sync.Mutex
	queues map[string]*letterRing
}

// letterRing is the last hour of one dead-letter queue.
type letterRing struct {
	samples []letterSample
}

type letterSample struct {
	at     int64          // seconds since 1970
	counts map[uint64]int // by the hash of the group: reasons are up to 4 KiB long, and thousands of samples are kept
}

var groupSeed = maphash.MakeSeed()

func (k groupKey) hash() uint64 { return maphash.Comparable(groupSeed, k) }

// note adds the counts of now, and writes those of the last hour into the answer. deadAt are the times at which the
// letters were dead-lettered: before the first look, the counts are of those that are still there.
func (p *past) note(queue string, answer *letters, deadAt map[groupKey][]int64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.queues[queue]
	if r == nil {
		p.evict()
		r = &letterRing{}
		if p.queues == nil {
			p.queues = map[string]*letterRing{}
		}
		p.queues[queue] = r
		for at := now.Add(-historySpan); at.Before(now); at = at.Add(pastSpacing) {
			r.add(answer, at, func(key groupKey) int { return before(deadAt[key], at.Unix()) })
		}
	}
	r.add(answer, now, func(key groupKey) int { return len(deadAt[key]) })
	r.write(answer)
}

// evict drops the queue that was looked at least recently, if there are too many.
func (p *past) evict() {
	if len(p.queues) < pastsAtMost {
		return
	}
	oldest, at := "", int64(0)
	for name, r := range p.queues {
		if last := r.samples[len(r.samples)-1].at; oldest == "" || last < at {
			oldest, at = name, last
		}
	}
	delete(p.queues, oldest)
}

// add appends a sample of the groups of an answer, or puts it in the place of the last one if that is not old enough.
func (r *letterRing) add(answer *letters, at time.Time, count func(groupKey) int) {
	s := letterSample{at: at.Unix(), counts: map[uint64]int{}}
	for _, g := range answer.Groups {
		if n := count(g.groupKey); n > 0 {
			s.counts[g.hash()] = n
		}
	}
	if n := len(r.samples); n >= 2 && s.at-r.samples[n-2].at < int64(pastSpacing/time.Second) {
		r.samples[n-1] = s
		return
	}
	old := 0
	for oldest := s.at - int64(historySpan/time.Second); old < len(r.samples) && r.samples[old].at < oldest; {
		old++
	}
	r.samples = append(r.samples[old:], s)
}

// write writes the samples into the groups of an answer.
func (r *letterRing) write(answer *letters) {
	for _, s := range r.samples {
		answer.At = append(answer.At, s.at)
		for i := range answer.Groups {
			g := &answer.Groups[i]
			g.Counts = append(g.Counts, s.counts[g.hash()])
		}
	}
}

// before returns how many times are not after another.
func before(times []int64, end int64) (n int) {
	for _, at := range times {
		if at <= end {
			n++
		}
	}
	return n
}
