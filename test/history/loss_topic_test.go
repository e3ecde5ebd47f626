package history

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Of the subscriptions of news some are made before a round and stay, others come and go, and so do their rules.
var (
	steady = []string{"one", "two"}
	fickle = []string{"north", "south"}
)

// change is one change of a subscription. Then it is there with rules for some colors, or it is not.
type change struct {
	span
	isThere bool
	colors  []string
	builds  bool // on the change before: it adds or deletes one rule
	outcome outcome
}

func ruleFor(color string) semantics.Rule {
	return semantics.Rule{Name: color, Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{Subject: &color}}}
}

// alter makes one change and records it. What was to be deleted and is not there is as if it was deleted.
func (r *lossRun) alter(name string, c *change, do func(path string) error) bool {
	c.began = time.Now()
	err := do(semantics.SubscriptionPath(news, name))
	c.ended, c.outcome = time.Now(), lossOutcome(err)
	r.unexpected("change "+name, err)
	r.add(func() { r.changes[name] = append(r.changes[name], c) })
	return err == nil
}

func (r *lossRun) makeSubscription(m member, name string, chosen []string) bool {
	var rules []semantics.Rule
	for _, color := range chosen {
		rules = append(rules, ruleFor(color))
	}
	for range 20 { // old connections fail once each
		if r.alter(name, &change{isThere: true, colors: chosen}, func(path string) error {
			isNew, err := m.createSubscription(r.ctx, path, rules)
			if err == nil && !isNew && slices.Contains(fickle, name) { // its rules are unknown
				return semantics.Errorf(semantics.EntityAlreadyExists, "its deletion is forgotten")
			}
			return err
		}) {
			return true
		}
		if slices.Contains(fickle, name) {
			break // it is deleted first
		}
	}
	return false
}

// changeAll makes and deletes a subscription and its rules, again and again, through any sidecar.
func (r *lossRun) changeAll(name string, rng *rand.Rand) {
	for r.changing.Load() {
		r.alter(name, &change{}, func(path string) error {
			err := r.any(rng).deleteSubscription(r.ctx, path)
			if semantics.CodeOf(err) == semantics.EntityNotFound {
				return nil
			}
			return err
		})
		now := []string{colors[rng.IntN(len(colors))]}
		fine := r.makeSubscription(r.any(rng), name, now)
		for range rng.IntN(4) {
			if !fine || !r.changing.Load() {
				break
			}
			r.rest(time.Duration(2+rng.IntN(20)) * time.Millisecond)
			color := colors[rng.IntN(len(colors))]
			if i := slices.Index(now, color); i >= 0 {
				now = slices.Delete(slices.Clone(now), i, i+1)
				fine = r.alter(name, &change{isThere: true, colors: now, builds: true}, func(path string) error {
					return r.any(rng).deleteRule(r.ctx, path, color)
				})
			} else {
				now = append(slices.Clone(now), color)
				fine = r.alter(name, &change{isThere: true, colors: now, builds: true}, func(path string) error {
					return r.any(rng).createRule(r.ctx, path, ruleFor(color))
				})
			}
		}
		r.rest(time.Duration(2+rng.IntN(20)) * time.Millisecond)
	}
}

// choice returns whether a subscription must get a message that was sent in a span of time, if that can be known.
func (r *round) choice(name string, color string, sent span) (chosen, known bool) {
	changes := r.changes[name]
	next := slices.IndexFunc(changes, func(c *change) bool { return !c.ended.Before(sent.began) })
	if next < 0 {
		next = len(changes)
	}
	if next == 0 || next < len(changes) && changes[next].began.Before(sent.ended) {
		return false, false
	}
	last := changes[next-1]
	for i := next - 1; ; i-- { // what a change has built on must be as certain as the change
		if i < 0 || !r.isCertain(changes[i], sent) {
			return false, false
		}
		if !changes[i].builds {
			return last.isThere && slices.Contains(last.colors, color), true
		}
	}
}

// isCertain reports whether a change was made, and is not forgotten when a message is sent in a span of time.
func (r *round) isCertain(c *change, sent span) bool {
	if c.outcome != done {
		return false
	}
	if !r.forgets() || !sent.ended.After(r.lost.began) {
		return true
	}
	stays, _ := r.stays(c.span)
	return stays && !sent.began.Before(r.lost.ended)
}

// isDeletedAfter reports whether a subscription may have been deleted after an instant, with what it had.
func (r *round) isDeletedAfter(name string, at time.Time) bool {
	return slices.ContainsFunc(r.changes[name], func(c *change) bool { return !c.isThere && c.ended.After(at) })
}

// What was changed after a loss is not certain if it builds on a change that was forgotten.
func TestChoiceBuildsOnWhatIsKept(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(second int) span {
		began := start.Add(time.Duration(second) * time.Second)
		return span{began, began.Add(time.Millisecond)}
	}
	r := &round{loss: redistest.Failover, marked: at(10), lost: at(20), changes: map[string][]*change{}}
	for second, certain := range map[int]bool{5: true, 15: false, 25: true} {
		r.changes["south"] = []*change{
			{span: at(1), isThere: true, colors: []string{"green", "blue"}},
			{span: at(second), isThere: true, colors: []string{"green"}, builds: true},
			{span: at(26), isThere: true, colors: []string{"green", "red"}, builds: true},
		}
		if chosen, known := r.choice("south", "blue", at(30)); chosen || known != certain {
			t.Errorf("changed at %d: got chosen %t, known %t; want false, %t", second, chosen, known, certain)
		}
	}
}
