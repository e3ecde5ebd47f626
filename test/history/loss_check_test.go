package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// place is a message as one entity has it.
type place struct{ source, text string }

// checkRound holds what was seen in a round against what a loss permits: everything that was acknowledged after it, or
// so long before it that it stays, obeys every rule.
func (r *lossRun) checkRound() {
	r.t.Helper()
	fail := func(format string, args ...any) {
		r.t.Helper()
		r.t.Errorf("round %d, %s: "+format, append([]any{r.number, r.loss}, args...)...)
	}
	dead := r.deadLetters()
	taken := map[place][]*taking{}
	for _, d := range r.deliveries {
		at := place{d.source, d.text}
		taken[at] = append(taken[at], d)
	}
	for _, s := range r.sends {
		r.checkSent(s, taken, dead, fail)
	}
	for _, b := range r.batches {
		r.checkWhole(b, taken, dead, fail)
	}
	r.checkDoubles(taken, fail)
	r.checkSessionOrder(fail)
	r.checkKeys()
	r.operations += len(r.sends) + len(r.deliveries)
	for _, changes := range r.changes {
		r.operations += len(changes)
	}
	r.losses++
}

// deadLetters gives what receivers have set aside by hand, and is still there.
func (r *lossRun) deadLetters() map[place]bool {
	r.t.Helper()
	dead := map[place]bool{}
	for _, path := range r.sources() {
		source := semantics.Source{Path: path, SubQueue: semantics.DeadLetterQueue}
		for next := int64(0); ; {
			rows, err := r.store.Peek(r.ctx, source, next, broker.MaxPeekMessages, semantics.ShowAll)
			if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
				r.t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			for _, row := range rows {
				if row.Unreadable != nil { // then nothing says which message it is
					r.t.Errorf("round %d, %s: dead letter %d of %s, enqueued at %s, cannot be read: %v",
						r.number, r.loss, row.SequenceNumber, path, row.EnqueuedAt.Sub(r.lost.ended), row.Unreadable)
				}
				dead[place{path, row.MessageID}] = true
				next = row.SequenceNumber + 1
			}
		}
	}
	return dead
}

// checkSent checks that a message came where it had to, and in time.
func (r *lossRun) checkSent(s *lossSend, taken map[place][]*taking, dead map[place]bool, fail func(string, ...any)) {
	r.t.Helper()
	if s.outcome != done {
		return
	}
	stays, _ := r.stays(s.span)
	require := func(source string) {
		at := place{source, s.text}
		if stays && !dead[at] && !slices.ContainsFunc(taken[at], r.isOver) && !r.mayBeTakenBlindly(source, s) {
			fail("%s, sent to %s %s, is lost in %s: %s\n%s", s.text, s.target, r.since(s.span), source, r.story(taken[at]), r.changesOf(at))
		}
		r.checkTime(s, taken[at], fail)
	}
	switch s.target {
	case from:
		require(archive)
	case news:
		r.checkCopies(s, taken, require, fail)
	default:
		require(s.target)
	}
}

// mayBeTakenBlindly reports whether a receive whose answer was lost may have taken a message for good.
func (r *lossRun) mayBeTakenBlindly(source string, s *lossSend) bool {
	return slices.ContainsFunc(r.blind[source], func(asked span) bool { return asked.ended.After(s.first) })
}

// isOver reports whether a delivery may have ended with the message gone for good.
func (r *lossRun) isOver(d *taking) bool {
	if d.verb != "complete" || d.outcome != done && d.outcome != unknown {
		return false
	}
	stays, maybe := r.stays(d.settled)
	return stays || maybe || d.outcome == unknown && d.settled.ended.After(r.lost.began)
}

// checkWhole checks that of what was sent in one call nothing came after a loss, or everything did at some time.
func (r *lossRun) checkWhole(b *lossBatch, taken map[place][]*taking, dead map[place]bool, fail func(string, ...any)) {
	r.t.Helper()
	to := b.sends[0].target
	if to == from {
		to = archive
	}
	isNew := func(d *taking) bool { return d.began.After(r.lost.ended) }
	var missing *lossSend
	came := 0
	for _, s := range b.sends {
		at := place{to, s.text}
		switch {
		case to == news || r.timesSent[s.text] > 1 || r.mayBeTakenBlindly(to, s):
			return
		case slices.ContainsFunc(taken[at], isNew):
			came++
		case len(taken[at]) == 0 && !dead[at]:
			missing = s
		}
	}
	if came > 0 && missing != nil {
		fail("of %d messages that were sent to %s in one call %d came after the loss, but %s never", len(b.sends), to, came, missing.text)
	}
}

// checkCopies checks that exactly those subscriptions have a message that chose it when it was sent.
func (r *lossRun) checkCopies(s *lossSend, taken map[place][]*taking, require func(string), fail func(string, ...any)) {
	r.t.Helper()
	for name := range r.changes {
		path := semantics.SubscriptionPath(news, name)
		chosen, known := r.choice(name, s.color, r.decided(s))
		switch {
		case !known:
		case !chosen && len(taken[place{path, s.text}]) > 0:
			fail("%s, which is %s, was sent %s and came to %s: %s; %s",
				s.text, s.color, r.since(s.span), name, r.story(taken[place{path, s.text}]), r.storyOf(name, s.first))
		case chosen && !r.isDeletedAfter(name, s.first):
			require(path)
		}
	}
}

// decided is when the routes of a message may have been asked.
func (r *round) decided(s *lossSend) span {
	if s.due.IsZero() {
		return span{s.first, s.ended}
	}
	return span{s.first, later(s.ended, r.slow.when(s.due, s.first)).Add(sidecartest.Patience)}
}

// late is by how much upkeep may come late on a machine that is busy with other tests. It is less than the minute after
// which a look at all entities would find what has no alarm.
const late = 40 * time.Second

// mostLate is by how much upkeep may come late in this round.
func (r *round) mostLate() time.Duration {
	if r.killed { // an alarm that a script has asked for may be lost with the sidecar that was to set it
		return late + time.Minute
	}
	return late
}

// checkTime checks that scheduled messages come when they are due, and expired ones when their life is over.
func (r *lossRun) checkTime(s *lossSend, taken []*taking, fail func(string, ...any)) {
	r.t.Helper()
	due, what := s.due, "due"
	if s.life > 0 {
		due, what = s.began.Add(s.life-r.slow.behind(s.began)), "expired"
	}
	if due.IsZero() || len(taken) == 0 {
		return
	}
	due = due.Truncate(time.Millisecond)
	at := r.slow.when(due, s.first)
	first := slices.MinFunc(taken, func(a, b *taking) int { return a.ended.Compare(b.ended) })
	if s.life == 0 && r.sentOnce(s) && first.ended.Before(at) {
		fail("%s came to %s %s before it was due", s.text, s.target, at.Sub(first.ended))
	}
	if stays, _ := r.stays(s.span); !stays {
		return
	}
	if r.forgets() && at.Before(r.lost.ended) && s.began.Before(r.lost.ended) {
		at = r.slow.when(due, r.lost.ended)
	}
	lateness := first.ended.Sub(at)
	r.latest = max(r.latest, lateness)
	if lateness > r.mostLate() {
		fail("%s was %s at %s, and came %s later", s.text, what, at, lateness)
	}
}

func (r *round) sentOnce(s *lossSend) bool {
	return r.timesSent[s.text] == 1
}

// checkDoubles checks that what was stored once is one message, held by one at a time, and that nothing comes again
// after it was completed.
func (r *lossRun) checkDoubles(taken map[place][]*taking, fail func(string, ...any)) {
	r.t.Helper()
	for at, all := range taken {
		slices.SortFunc(all, func(a, b *taking) int { return cmp.Or(a.began.Compare(b.began), a.ended.Compare(b.ended)) })
		numbers := map[int64]bool{}
		for _, d := range all {
			if !r.forgets() || d.began.After(r.lost.ended) { // a number that was given before may be forgotten
				numbers[d.number] = true
			}
		}
		if len(numbers) > 1 && r.isOne(at) {
			fail("%s is several messages of %s: %v", at.text, at.source, slices.Sorted(maps.Keys(numbers)))
		}
		for i, first := range all {
			for _, second := range all[i+1:] {
				r.checkPair(at, first, second, fail)
			}
		}
	}
}

// isOne reports whether the sends of a text may have stored only one message, in the source where it was found.
func (r *lossRun) isOne(at place) bool {
	var before, after int // the loss
	for _, s := range r.sends {
		if s.text != at.text {
			continue
		}
		stays, _ := r.stays(s.span)
		switch {
		case stays && r.forgets() && s.began.Before(r.lost.ended):
			before++
		case stays:
			after++
		default:
			// it may be repeated; what forwarding had done may be forgotten
			return at.source != archive && r.sentOnce(s)
		}
	}
	return at.source != archive && before+after > 0 || before == 0
}

// checkPair checks two deliveries of one message, the second of which began later.
func (r *lossRun) checkPair(at place, first, second *taking, fail func(string, ...any)) {
	r.t.Helper()
	if first.number != second.number || r.forgets() && !first.began.After(r.lost.ended) {
		return
	}
	isSettled := first.verb != "" && (first.outcome == done || first.outcome == unknown)
	switch {
	case isSettled && first.verb == "complete" && first.outcome == done && second.began.After(first.settled.ended):
		fail("%s came again from %s after it was completed: %s", at.text, at.source, r.story([]*taking{first, second}))
	case r.isDeletedDuring(at.source, first.span):
	case r.slow.righted.began.After(first.began) && !r.slow.righted.began.After(second.ended): // it ended the lock
	case second.began.After(first.ended) && second.ended.Before(first.until) && (!isSettled || second.ended.Before(first.settled.began)):
		if at.source != inOrder { // there the session is what is held
			fail("%s was held twice in %s: %s\n%s", at.text, at.source, r.story([]*taking{first, second}), r.changesOf(at))
		}
	}
}

// isDeletedDuring reports whether a subscription may have been deleted in a span of time. A receive of then locks
// messages in one step and reads them in a second, so it may show those of the next subscription of that name, by a
// lock that is lost.
func (r *round) isDeletedDuring(source string, s span) bool {
	_, name, _ := semantics.SplitSubscription(source)
	return slices.ContainsFunc(r.changes[name], func(c *change) bool {
		return !c.isThere && c.began.Before(s.ended) && c.ended.After(s.began)
	})
}

// changesOf returns how a subscription changed, and when a message was sent.
func (r *round) changesOf(at place) string {
	var lines []string
	_, name, _ := semantics.SplitSubscription(at.source)
	for _, c := range r.changes[name] {
		lines = append(lines, fmt.Sprintf("%s to %s: is there %t with %v: %s",
			c.began.Sub(r.lost.ended), c.ended.Sub(r.lost.ended), c.isThere, c.colors, c.outcome))
	}
	for _, s := range r.sends {
		if s.text == at.text {
			lines = append(lines, fmt.Sprintf("sent first %s, last %s to %s, due %s, %s: %s", s.first.Sub(r.lost.ended),
				s.began.Sub(r.lost.ended), s.ended.Sub(r.lost.ended), s.due, s.color, s.outcome))
		}
	}
	return strings.Join(lines, "\n")
}

// story returns the history of a message.
func (r *round) story(all []*taking) (lines []string) {
	for _, d := range all {
		lines = append(lines, d.began.Sub(r.lost.ended).String()+" delivered as "+cmp.Or(d.verb, "never settled")+" "+string(d.outcome)+" at "+
			d.settled.ended.Sub(r.lost.ended).String())
	}
	return lines
}

// since is a span counted from the end of the loss.
func (r *round) since(s span) string {
	return s.began.Sub(r.lost.ended).String() + " to " + s.ended.Sub(r.lost.ended).String()
}

// storyOf is what was done to a subscription in the last changes before an instant and in the first after it.
func (r *round) storyOf(name string, at time.Time) (lines []string) {
	changes := r.changes[name]
	first := slices.IndexFunc(changes, func(c *change) bool { return c.began.After(at) })
	if first < 0 {
		first = len(changes)
	}
	for _, c := range changes[max(first-8, 0):min(first+4, len(changes))] {
		lines = append(lines, fmt.Sprintf("%s: there %t %v %s", r.since(c.span), c.isThere, c.colors, cmp.Or(c.outcome, "done")))
	}
	marked := fmt.Sprintf("marked %s, lost %s", r.since(r.marked), r.since(r.lost))
	return append(lines, marked)
}

// checkKeys checks that all that is kept fits together, as soon as sidecars have done what the loss has left to them.
func (r *lossRun) checkKeys() {
	r.t.Helper()
	client := redis.NewClient(redistest.ClientOptions(r.t, r.server.URL))
	defer client.Close()
	auditor := audit.New(client, r.namespace)
	audit := func(ctx context.Context) error {
		faults := []error{auditor.AuditNames(ctx)}
		for _, path := range []string{work, inOrder, from, archive, shelf, news} {
			faults = append(faults, auditor.Audit(ctx, path))
		}
		return errors.Join(faults...)
	}
	err := auditUntilWhole(r.ctx, r.mostLate(), audit)
	if err != nil {
		r.t.Errorf("round %d, %s: %v", r.number, r.loss, err)
	}
}
