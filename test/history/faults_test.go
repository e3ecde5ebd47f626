package history

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

// fault is something that is done to a sidecar at some time.
type fault struct {
	at   time.Duration
	do   func(s *post)
	post *post
}

// injectFaults does things to sidecars for a span of time.
func (r *run) injectFaults(span time.Duration) {
	r.t.Helper()
	var faults []fault
	for at := 150 * time.Millisecond; at < span; at += time.Duration(50+r.rng.IntN(250)) * time.Millisecond {
		s := r.posts[r.rng.IntN(holders)]
		switch r.rng.IntN(8) {
		case 0, 1:
			faults = append(faults, fault{at, r.kill, s})
		case 2, 3, 6:
			longer := r.lock + time.Duration(r.rng.IntN(400))*time.Millisecond
			faults = append(faults, fault{at, r.halt, s}, fault{at + longer, r.resume, s})
		case 4, 5:
			faults = append(faults, fault{at, r.drain, s})
		default:
			faults = append(faults, fault{at, r.kill, r.posts[holders+r.rng.IntN(senders)]})
		}
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	began := time.Now()
	for _, f := range faults {
		if time.Since(began) > span+span/2 {
			break // sidecars start slowly here
		}
		r.pause(time.Until(began.Add(f.at)))
		f.do(f.post)
	}
	r.pause(time.Until(began.Add(span)))
	for _, s := range r.posts {
		r.resume(s)
	}
}

// kill ends a sidecar with SIGKILL and starts another one.
func (r *run) kill(s *post) {
	p := s.take()
	r.record.add(func() { p.killed = time.Now() })
	p.Kill()
	r.resumed(p)
	r.launch(s)
}

// halt stops a sidecar in its tracks.
func (r *run) halt(s *post) {
	p := s.take()
	if p.halted {
		return
	}
	p.halted = true
	r.record.add(func() { p.halts = append(p.halts, span{began: time.Now()}) })
	p.Signal(syscall.SIGSTOP)
}

func (r *run) resume(s *post) {
	if p := s.take(); p.halted {
		p.Signal(syscall.SIGCONT)
		r.resumed(p)
	}
}

func (r *run) resumed(p *process) {
	if p.halted {
		p.halted = false
		r.record.add(func() { p.halts[len(p.halts)-1].ended = time.Now() })
	}
}

// drain ends a sidecar as an orchestrator does, with SIGTERM, and starts another one.
func (r *run) drain(s *post) {
	p := s.take()
	r.resume(s)
	r.record.add(func() { p.drained = time.Now() })
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(r.t); code != 0 {
		r.t.Errorf("a drained sidecar ended with %d", code)
	}
	r.record.add(func() { p.exited = time.Now() })
	r.launch(s)
}
