package history

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// check holds the whole history against the invariants, and then looks at the keys.
func (r *run) check() {
	r.t.Helper()
	r.checkAll(r.peek(semantics.MainQueue), r.peek(semantics.DeadLetterQueue))
	r.checkKeys()
}

// checkAll holds the history against the invariants. main and dead are what the queue has in the end.
func (r *run) checkAll(main, dead []*semantics.Received) {
	r.t.Helper()
	slices.SortStableFunc(r.record.deliveries, func(a, b *handout) int {
		return cmp.Or(a.hold.accepted.Compare(b.hold.accepted), a.began.Compare(b.began), cmp.Compare(a.number, b.number))
	})
	r.checkLocks()
	r.checkOrder()
	r.checkCounts()
	r.checkNothingIsLost(main, dead)
	r.checkRecovery()
}

// checkOrder checks I4: messages of a session are handed out for the first time, and completed, in the order of their
// numbers.
func (r *run) checkOrder() {
	r.t.Helper()
	handed, outOfOrder := map[int64]bool{}, map[int64]bool{}
	first, completed := map[string]*handout{}, map[string]*handout{}
	for _, d := range r.record.deliveries {
		if d.verb == "defer" || d.verb == "abandon, skipping" {
			outOfOrder[d.number] = true // whatever became of it
		}
	}
	for _, d := range r.record.deliveries {
		session := d.hold.session
		if !d.ended.Before(d.hold.until) {
			continue // its sidecar was halted, others had their turn, and it may have read only what they left
		}
		if before := first[session]; !handed[d.number] && !d.deferred {
			handed[d.number] = true
			if before != nil && d.sequence <= before.sequence && !r.handedOutUnseen(d, before.ended) {
				r.t.Errorf("%s: message %d was handed out for the first time after %d (I4)\n%s", session, d.sequence, before.sequence,
					r.callsOf(session, before.began, d.ended))
			}
			first[session] = d
		}
	}
	var completions []*handout
	for _, d := range r.record.deliveries {
		if d.verb == "complete" && d.outcome == done && !d.deferred && !outOfOrder[d.number] {
			completions = append(completions, d)
		}
	}
	slices.SortStableFunc(completions, func(a, b *handout) int {
		return cmp.Or(a.hold.accepted.Compare(b.hold.accepted), a.settleBegan.Compare(b.settleBegan))
	})
	for _, d := range completions {
		session := d.hold.session
		if before := completed[session]; before != nil && d.sequence <= before.sequence && !r.handedOutUnseen(d, before.ended) {
			r.t.Errorf("%s: message %d was completed after %d (I4)\n%s", session, d.sequence, before.sequence,
				r.callsOf(session, before.began, d.settled))
		}
		completed[session] = d
	}
}

// handedOutUnseen reports whether a message may have been handed out before, to a receive whose answer got lost, and so
// have been in flight when the next ones were handed out. It cannot when only one may be in flight.
func (r *run) handedOutUnseen(d *handout, by time.Time) bool {
	return r.inFlight > 1 && slices.ContainsFunc(r.record.blind, func(b *call) bool {
		return b.what == "receive" && b.session == d.hold.session && b.began.Before(by) && d.enqueued.Before(b.ended)
	})
}

// rise is by how much the delivery count may have risen.
type rise struct{ least, most int }

// ended returns by how much the count of a message rises because of how one of its deliveries ended (I7, DC-1 to DC-3,
// I16).
func (r *run) ended(d *handout) rise {
	verb, _, _ := strings.Cut(d.verb, ",")
	settled := map[string]rise{"abandon": {1, 1}, "release": {0, 0}, "defer": {0, 0}, "complete": {0, 0}, "dead-letter": {0, 0}}[verb]
	if d.verb != "" && d.outcome == done {
		return settled
	}
	left := r.given(d.hold)
	if d.verb != "" && d.outcome == unknown {
		return rise{min(settled.least, left.least), max(settled.most, left.most)}
	}
	return left
}

// given returns by how much the counts rise of messages that were not settled when a session's lock expired.
func (r *run) given(h *hold) rise {
	drained := h.drained()
	switch {
	case h.closed == done:
		return rise{0, 0}
	case len(drained) > 0 && len(h.elsewhere) == 0 && h.sidecar.exited.Before(h.until):
		return rise{0, 0}
	case len(drained) > 0, h.closed == unknown:
		return rise{0, 1}
	default: // it ran out
		return rise{1, 1}
	}
}

// drained returns the sidecars through which a session was used and that were drained since. They close it, if it still
// holds.
func (h *hold) drained() (all []*process) {
	for _, p := range append([]*process{h.sidecar}, h.elsewhere...) {
		if !p.drained.IsZero() && h.accepted.Before(p.exited) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// checkCounts checks I7, I8 and I16: each delivery says how many before it have failed.
func (r *run) checkCounts() {
	r.t.Helper()
	last := map[int64]*handout{}
	for _, d := range r.record.deliveries {
		before, from, want := last[d.number], time.Time{}, rise{}
		count := 1
		if before != nil {
			count, from, want = before.count, before.began, r.ended(before)
			if before.outcome == done && (before.verb == "complete" || before.verb == "dead-letter") {
				r.t.Errorf("message %d was handed out again after it was settled: %s (I1)", d.number, before.verb)
			}
		}
		for _, b := range r.record.blind { // deliveries that no client saw
			if b.session == d.hold.session && b.what == "receive" && b.began.Before(d.ended) && b.ended.After(from) {
				want.most++
			}
		}
		if rose := d.count - count; rose < want.least || rose > want.most {
			r.t.Errorf("%s: message %d is delivery %d after %d, its count should have risen by %d to %d (I7, I16)\n%s",
				d.hold.session, d.number, d.count, count, want.least, want.most, r.callsOf(d.hold.session, from, d.ended))
		}
		if d.count > r.most {
			r.t.Errorf("message %d was handed out %d times, the queue permits %d (I8)", d.number, d.count, r.most)
		}
		if d.outcome == "MESSAGE_LOCK_LOST" {
			r.t.Errorf("message %d was %s under a session that held, and its lock was lost", d.number, d.verb)
		}
		last[d.number] = d
	}
}

// callsOf shows the calls about a session in a piece of time, at most the last 60.
func (r *run) callsOf(session string, from, to time.Time) string {
	var lines []string
	for _, c := range r.record.calls {
		if (c.session == session || c.session == "") && c.began.Before(to) && c.ended.After(from) {
			lines = append(lines, c.line())
		}
	}
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// checkNothingIsLost checks I1 and I8: what was acknowledged is completed, a dead letter or still there, in one place
// only.
func (r *run) checkNothingIsLost(main, dead []*semantics.Received) {
	r.t.Helper()
	places, numbers := map[string][]string{}, map[string]int64{}
	maybe := map[string]bool{}
	put := func(text, place string, number int64) {
		places[text] = append(places[text], place)
		if other, known := numbers[text]; known && other != number {
			r.t.Errorf("message %s has the numbers %d and %d", text, other, number)
		}
		numbers[text] = number
	}
	byApp := map[int64]bool{}
	for _, d := range r.record.deliveries {
		switch {
		case d.verb == "complete" && d.outcome == done:
			put(d.text, "completed", d.number)
		case d.verb == "complete" && d.outcome == unknown: // no other verb removes a message
			maybe[d.text] = true
		}
		byApp[d.number] = byApp[d.number] || d.verb == "dead-letter"
	}
	for _, row := range main {
		put(string(row.Body), "in the queue", row.SequenceNumber)
		if row.State != semantics.Deferred || row.DeliveryCount >= r.most {
			r.t.Errorf("message %d is left in the queue: %+v", row.SequenceNumber, row)
		}
	}
	for _, row := range dead {
		put(string(row.Body), "dead", row.SequenceNumber)
		switch {
		case row.DeadLetterReason == byHand && byApp[row.SequenceNumber]:
		case row.DeadLetterReason == "MaxDeliveryCountExceeded" && row.DeliveryCount == r.most:
		default:
			r.t.Errorf("message %d is a dead letter because of %q with count %d", row.SequenceNumber, row.DeadLetterReason, row.DeliveryCount)
		}
	}
	for _, sentBy := range r.record.sent {
		before := int64(0)
		for _, s := range sentBy {
			if s.number <= before {
				r.t.Errorf("message %s got number %d after %d (SEND-3)", s.text, s.number, before)
			}
			before = s.number
			if numbers[s.text] != 0 && numbers[s.text] != s.number {
				r.t.Errorf("message %s was sent as %d and is %d", s.text, s.number, numbers[s.text])
			}
			if len(places[s.text]) == 0 && !maybe[s.text] {
				r.t.Errorf("message %s, number %d of %s, is lost (I1)", s.text, s.number, s.session)
			}
		}
	}
	for text, where := range places {
		if len(where) > 1 {
			r.t.Errorf("message %s is in several places: %v (I1, I8)", text, where)
		}
	}
}

// peek returns all messages of one side.
func (r *run) peek(side semantics.SubQueue) (all []*semantics.Received) {
	r.t.Helper()
	for from := int64(0); ; from = all[len(all)-1].SequenceNumber + 1 {
		rows, err := r.store.Peek(r.ctx, semantics.Source{Path: queue, SubQueue: side}, from, broker.MaxPeekMessages, semantics.ShowAll)
		if err != nil {
			r.t.Fatal(err)
		}
		if all = append(all, rows...); len(rows) == 0 {
			return all
		}
	}
}

// checkRecovery checks I15: when the lock of a session expires while a client waits for a session, the session is taken
// within a second, even if only by an accept whose answer was lost.
func (r *run) checkRecovery() {
	r.t.Helper()
	const within = time.Second
	slices.SortStableFunc(r.record.holds, func(a, b *hold) int { return a.accepted.Compare(b.accepted) })
	for i, h := range r.record.holds {
		if r.given(h) != (rise{1, 1}) {
			continue
		}
		next := slices.IndexFunc(r.record.holds[i+1:], func(n *hold) bool { return n.session == h.session })
		had := slices.ContainsFunc(r.record.deliveries, func(d *handout) bool { // it had a message all the time
			return d.hold == h && !d.deferred && (d.verb == "" || d.outcome == lost) && d.count < r.most
		})
		if next < 0 || !had || r.record.holds[i+1+next].accepted.Before(h.until.Add(within)) {
			continue
		}
		if r.mayBeTakenBlindly(h.session, h.until, h.until.Add(within)) {
			continue
		}
		for _, w := range r.record.waits {
			if w.began.Before(h.until) && w.ended.After(h.until.Add(within)) && w.sidecar.ran(h.until, h.until.Add(within)) {
				r.t.Errorf("%s was free at %s and taken at %s, although somebody waited from %s to %s (I15)",
					h.session, h.until, r.record.holds[i+1+next].accepted, w.began, w.ended)
			}
		}
	}
}

// ran says that nothing was done to a sidecar in a piece of time.
func (p *process) ran(from, to time.Time) bool {
	inside := func(at time.Time) bool { return !at.IsZero() && at.Before(to) }
	if inside(p.killed) || inside(p.drained) {
		return false
	}
	return !slices.ContainsFunc(p.halts, func(h span) bool { return h.began.Before(to) && h.ended.After(from) })
}

// checkKeys checks that all that is kept fits together.
func (r *run) checkKeys() {
	r.t.Helper()
	auditor := audit.New(rawClient(r.t), r.namespace)
	if err := auditUntilWhole(r.ctx, late, func(ctx context.Context) error { return auditor.Audit(ctx, queue) }); err != nil {
		r.t.Error(err)
	}
}

// auditUntilWhole audits what running sidecars change, which looks broken meanwhile: again and again until nothing is
// found, but not for longer than given. It returns what it found last.
func auditUntilWhole(ctx context.Context, longest time.Duration, audit func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	err := audit(ctx)
	for err != nil && ctx.Err() == nil {
		select {
		case <-again.C:
			if found := audit(ctx); ctx.Err() == nil {
				err = found
			}
		case <-ctx.Done():
		}
	}
	return err
}

// rawClient reads keys past all sidecars.
func rawClient(t testing.TB) redis.UniversalClient {
	t.Helper()
	return redistest.Client(t, redistest.URL(t))
}
