package faults

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// fault is something that goes wrong.
type fault struct {
	name  string
	kills bool // it ends a Redis
	// begin does it and returns when it is to be undone, by end, if ever.
	begin func(r *run) (lasts time.Duration, end func())
}

// step is something to do at some time.
type step struct {
	at time.Time
	do func()
}

// breakThings lets one fault follow the other until there were enough messages and kills, or a promise was broken. What
// happens to sidecars, lines and servers overlaps.
func (r *run) breakThings() {
	r.t.Helper()
	sick := map[*post]bool{}
	isServerSick := false
	next, report, began := time.Now().Add(*gap), time.Now().Add(10*time.Second), time.Now()
	for !r.isEnough() && r.ctx.Err() == nil && !r.t.Failed() {
		now := time.Now()
		r.undo(now)
		r.reviveSidecars()
		if now.After(report) {
			r.report(now.Sub(began))
			report = now.Add(10 * time.Second)
		}
		if now.Before(next) {
			r.rest(min(time.Until(next), 10*time.Millisecond))
			continue
		}
		next = now.Add(time.Duration(r.rng.ExpFloat64() * float64(*gap)))
		if p := r.posts[r.rng.IntN(len(r.posts))]; r.rng.IntN(3) > 0 && !sick[p] {
			sick[p] = true
			r.breakPost(p, func() { sick[p] = false })
		} else if !isServerSick && len(r.faults) > 0 {
			isServerSick = true
			r.breakServer(func() { isServerSick = false })
		}
	}
	for len(r.steps) > 0 {
		r.undo(r.steps[len(r.steps)-1].at)
	}
}

func (r *run) isEnough() bool {
	return int(r.sent.Load()) >= *messages && r.killed >= *sidecarKills && (r.redisKilled >= *redisKills || !r.canKill())
}

func (r *run) canKill() bool {
	return slices.ContainsFunc(r.faults, func(f fault) bool { return f.kills })
}

// report shows how far the run is, and what went wrong since the last time.
func (r *run) report(took time.Duration) {
	r.t.Helper()
	for _, one := range r.ledger.news() {
		r.t.Error(one)
	}
	share := min(1, float64(r.sent.Load())/float64(*messages), float64(r.killed)/float64(max(1, *sidecarKills)))
	if r.canKill() {
		share = min(share, float64(r.redisKilled)/float64(max(1, *redisKills)))
	}
	left := "unknown"
	if share > 0 {
		left = time.Duration(float64(took) * (1 - share) / share).Round(time.Second).String()
	}
	r.t.Logf("%d messages, %d waiting, %d sidecars and %d Redis killed; about %s left",
		r.sent.Load(), r.backlog.Load(), r.killed, r.redisKilled, left)
}

// later does something at some time.
func (r *run) later(in time.Duration, do func()) {
	r.steps = append(r.steps, step{time.Now().Add(in), do})
	slices.SortStableFunc(r.steps, func(a, b step) int { return a.at.Compare(b.at) })
}

// undo does what is to be done by now.
func (r *run) undo(now time.Time) {
	for len(r.steps) > 0 && !r.steps[0].at.After(now) {
		do := r.steps[0].do
		r.steps = r.steps[1:]
		do()
	}
}

// note counts a fault, and keeps the last ones for the story of a run that fails.
func (r *run) note(name string) {
	r.counts[name]++
	r.story = append(r.story, fmt.Sprintf("after %s: %s", time.Since(r.ledger.began).Round(time.Millisecond), name))
	r.story = r.story[max(0, len(r.story)-200):]
}

// between draws a time.
func (r *run) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.rng.Int64N(int64(most-least)))
}

// breakServer lets a fault of the servers happen. Half of those that may kill a Redis must, until there were enough.
func (r *run) breakServer(healed func()) {
	f := r.faults[r.rng.IntN(len(r.faults))]
	if r.redisKilled < *redisKills && r.rng.IntN(2) == 0 && r.faults[0].kills {
		f = r.faults[0]
	}
	r.note(f.name)
	began := time.Now()
	lasts, end := f.begin(r)
	r.later(lasts, func() {
		if end != nil {
			end()
			r.note(f.name + ", over")
		}
		if f.kills {
			r.redisKilled++
			r.outages = append(r.outages, outage{began, time.Now()})
		}
		healed()
	})
}

// breakPost lets something happen to a sidecar or to its line. Half of the time it kills, until there were enough kills.
func (r *run) breakPost(p *post, healed func()) {
	ill := func(name string, least, most time.Duration, i illness) {
		r.note(name)
		p.line.ill.Store(&i)
		r.later(r.between(least, most), func() {
			p.line.heal()
			r.note(name + ", over")
			healed()
		})
	}
	kind := r.rng.IntN(12)
	if p.line == nil {
		kind %= 6
	}
	if r.killed < *sidecarKills && r.rng.IntN(2) == 0 {
		kind = 0
	}
	switch kind {
	case 0, 1, 2:
		r.note("sidecar killed")
		r.killSidecar(p)
		healed()
	case 3:
		r.note("sidecar drained")
		r.drainSidecar(p)
		healed()
	case 4, 5:
		r.note("sidecar stopped")
		s := p.now.Load()
		s.Signal(syscall.SIGSTOP)
		r.later(r.between(100*time.Millisecond, lockDuration+2*time.Second), func() {
			s.Signal(syscall.SIGCONT)
			healed()
		})
	case 6:
		r.note("connections reset")
		p.line.cut()
		healed()
	case 7:
		ill("slow line", 200*time.Millisecond, 3*time.Second, illness{delay: r.between(time.Millisecond, 500*time.Millisecond)})
	case 8:
		ill("narrow line", 200*time.Millisecond, 2*time.Second, illness{perSecond: 64 << 10})
	case 9:
		ill("answers lost", 20*time.Millisecond, 2*time.Second, illness{noAnswers: true})
	case 10:
		ill("half open", 100*time.Millisecond, 8*time.Second, illness{noAnswers: true, noRequests: true})
	default:
		p.line.ill.Store(&illness{noDials: true})
		p.line.cut()
		r.note("partition")
		r.later(r.between(100*time.Millisecond, 4*time.Second), func() {
			p.line.heal()
			healed()
		})
	}
}
