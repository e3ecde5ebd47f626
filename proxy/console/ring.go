package console

import (
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// The history that is kept in memory.
const (
	historySpan   = time.Hour
	sampleSpacing = 10 * time.Second // least time between two samples of an entity
	recentSpan    = 10 * time.Minute // of the small charts in the list
)

// sample is an entity, or all of them, at one time.
type sample struct {
	at int64 // seconds since 1970

	available, locked, deferred, scheduled, dead uint32  // messages
	in, out, rise                                float32 // a second, since the sample before
	age                                          float32 // of the oldest message in seconds

	waits, takes times // since the sample before, of this process
}

// times are how long something took, in seconds: half of all no longer than half, and 95 of 100 no longer than at95.
type times struct{ half, at95 float32 }

// noTimes are those of nothing.
var noTimes = times{-1, -1}

// newTimes returns times; noTimes for nothing.
func newTimes(l broker.Latency) times {
	if l.Count == 0 {
		return noTimes
	}
	return times{float32(l.Half.Seconds()), float32(l.At95.Seconds())}
}

// measured returns how long messages took since it was called last.
type measured func() (waits, takes broker.Latency)

func (m measured) add(s *sample) {
	var waits, takes broker.Latency
	if m != nil {
		waits, takes = m()
	}
	s.waits, s.takes = newTimes(waits), newTimes(takes)
}

// isQuietAfter reports whether nothing has happened since another sample.
func (s sample) isQuietAfter(o sample) bool {
	return s.in == 0 && s.out == 0 && s.rise == 0 && o.in == 0 && o.out == 0 && o.rise == 0 &&
		s.age == 0 && o.age == 0 &&
		s.available == o.available && s.locked == o.locked && s.deferred == o.deferred && s.scheduled == o.scheduled &&
		s.dead == o.dead && s.waits.half < 0 && s.takes.half < 0 && o.waits.half < 0 && o.takes.half < 0
}

// ring is the last hour. Samples of a quiet time are left out, except its first and last.
type ring struct {
	samples []sample
	before  semantics.Runtime // at the last sample
	readAt  time.Time         // of before; zero: there is none
}

// note adds a sample if it is time for one.
func (r *ring) note(n *semantics.Runtime, at time.Time, took measured) {
	if r.readAt.IsZero() {
		r.before, r.readAt = *n, at
		s := sampleOf(n, rates{}, at)
		took.add(&s)
		r.add(s)
		return
	}
	if at.Sub(r.readAt) < sampleSpacing {
		return
	}
	change := ratesBetween(&r.before, n, at.Sub(r.readAt).Seconds())
	r.before, r.readAt = *n, at
	s := sampleOf(n, change, at)
	took.add(&s)
	r.add(s)
}

func sampleOf(n *semantics.Runtime, change rates, at time.Time) sample {
	s := sample{
		at: at.Unix(), available: uint32(n.Available), locked: uint32(n.Locked), deferred: uint32(n.Deferred),
		scheduled: uint32(n.Scheduled), dead: uint32(n.DeadLetter), in: float32(change.In), out: float32(change.Out),
		rise: float32(change.Rise), waits: noTimes, takes: noTimes,
	}
	if !n.OldestEnqueuedAt.IsZero() {
		s.age = float32(max(at.Sub(n.OldestEnqueuedAt).Seconds(), 0))
	}
	return s
}

// add appends a sample, and drops those that are too old.
func (r *ring) add(s sample) {
	if n := len(r.samples); n >= 2 && s.isQuietAfter(r.samples[n-1]) && r.samples[n-1].isQuietAfter(r.samples[n-2]) {
		r.samples[n-1].at = s.at
		return
	}
	old := 0
	for oldest := s.at - int64(historySpan/time.Second); old < len(r.samples) && r.samples[old].at < oldest; {
		old++
	}
	if old > 0 { // the array is used again
		r.samples = append(r.samples[:0], r.samples[old:]...)
	}
	r.samples = append(r.samples, s)
}

// recent returns the rates of the last minutes; nil if there was no traffic.
func (r *ring) recent(now time.Time) (points [][4]float64) {
	from, isActive := now.Add(-recentSpan).Unix(), false
	for _, s := range r.samples {
		if s.at >= from {
			points = append(points, [4]float64{float64(s.at), round(s.in), round(s.out), round(s.rise)})
			isActive = isActive || s.in != 0 || s.out != 0 || s.rise != 0
		}
	}
	if !isActive {
		return nil
	}
	return points
}

// columns are samples as charts take them: one list for each series.
type columns struct {
	At        []int64   `json:"at"` // seconds since 1970
	Available []uint32  `json:"available"`
	Locked    []uint32  `json:"locked"`
	Deferred  []uint32  `json:"deferred"`
	Scheduled []uint32  `json:"scheduled"`
	Dead      []uint32  `json:"dead"`
	In        []float64 `json:"in"`
	Out       []float64 `json:"out"`
	Rise      []float64 `json:"rise"`
	Age       []float64 `json:"age"`

	WaitHalf []seconds `json:"waitHalf"`
	Wait95   []seconds `json:"wait95"`
	TakeHalf []seconds `json:"takeHalf"`
	Take95   []seconds `json:"take95"`
}

// seconds are a time, null if negative.
type seconds float32

// MarshalJSON writes milliseconds as the smallest part.
func (s seconds) MarshalJSON() ([]byte, error) {
	if s < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(s), 'f', 3, 32), nil
}

// columns returns all samples.
func (r *ring) columns() columns {
	c := columns{At: []int64{}}
	for _, s := range r.samples {
		c.At = append(c.At, s.at)
		c.Available, c.Locked = append(c.Available, s.available), append(c.Locked, s.locked)
		c.Deferred, c.Scheduled = append(c.Deferred, s.deferred), append(c.Scheduled, s.scheduled)
		c.Dead, c.Age = append(c.Dead, s.dead), append(c.Age, round(s.age))
		c.WaitHalf, c.Wait95 = append(c.WaitHalf, seconds(s.waits.half)), append(c.Wait95, seconds(s.waits.at95))
		c.TakeHalf, c.Take95 = append(c.TakeHalf, seconds(s.takes.half)), append(c.Take95, seconds(s.takes.at95))
		c.In, c.Out, c.Rise = append(c.In, round(s.in)), append(c.Out, round(s.out)), append(c.Rise, round(s.rise))
	}
	return c
}

// since returns the samples after a time, which becomes that of the last one; nil if there are none.
func (r *ring) since(last *int64) *columns {
	first := len(r.samples)
	for first > 0 && r.samples[first-1].at > *last {
		first--
	}
	if first == len(r.samples) {
		return nil
	}
	*last = r.samples[len(r.samples)-1].at
	c := (&ring{samples: r.samples[first:]}).columns()
	return &c
}

// round returns a number with two decimals, so that its text is short.
func round(n float32) float64 {
	const hundred = 100
	if n < 0 {
		return -round(-n)
	}
	return float64(int64(float64(n)*hundred+0.5)) / hundred
}
