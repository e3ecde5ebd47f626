package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// loss is a message that was acknowledged and never came.
type loss struct {
	id    id
	place int
	acked time.Time
}

// missing returns what was acknowledged and never came, when nothing is left to be received.
func (l *ledger) missing() (all []loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for to, books := range l.books {
		for sender, b := range books {
			for number, got := range b.sent {
				for place, places := range b.seen {
					if got == stored && places[number].number == 0 {
						acked := l.began.Add(time.Duration(b.at[number]) * time.Millisecond)
						all = append(all, loss{id{target(to), sender, number}, place, acked})
					}
				}
			}
		}
	}
	return all
}

// halfCopied returns the messages that came to some of their subscriptions and not to others.
func (l *ledger) halfCopied() (all []id) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sender, b := range l.books[news] {
		for number := range b.sent {
			came := 0
			for _, places := range b.seen {
				if places[number].number != 0 {
					came++
				}
			}
			if came > 0 && came < len(b.seen) {
				all = append(all, id{news, sender, number})
			}
		}
	}
	return all
}

// disorder returns the messages that are not behind those that were sent before them with the same partition key, or
// not in the same partition (PART-2, PART-3). Such sends are repeated until they are known to be stored.
func (l *ledger) disorder() (all []id) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sender, b := range l.books[spread] {
		last := map[uint8]int64{}
		for number, key := range b.key {
			place := b.seen[0][number].number
			if key == 0 || place == 0 {
				continue
			}
			_, partition := semantics.PartitionOf(place)
			_, before := semantics.PartitionOf(last[key])
			if last[key] != 0 && (place < last[key] || partition != before) {
				all = append(all, id{spread, sender, number})
			}
			last[key] = place
		}
	}
	return all
}

// outage is when a Redis was gone or changed its role, and may have forgotten.
type outage struct{ began, ended time.Time }

// check returns what may not be, when nothing is left to be received. Redis may have forgotten in the outages, and
// window is how long before one of them what it acknowledged may be gone.
func (l *ledger) check(outages []outage, window time.Duration) (faults []string, lost int, longest time.Duration) {
	faults = l.news()
	if l.found > len(l.faults) {
		faults = append(faults, fmt.Sprintf("%d more", l.found-len(l.faults)))
	}
	missing := l.missing()
	for _, one := range missing {
		before, known := nextOutage(one.acked, outages)
		longest = max(longest, before)
		if !known || before > window {
			faults = append(faults, fmt.Sprintf("%s is lost in place %d; it was acknowledged %s before Redis forgot", one.id, one.place, before))
		}
	}
	if half := l.halfCopied(); !l.forgetful && len(half) > 0 {
		faults = append(faults, fmt.Sprintf("%d messages came to some of their subscriptions only, among them %s", len(half), half[0]))
	}
	if wrong := l.disorder(); !l.forgetful && len(wrong) > 0 {
		faults = append(faults, fmt.Sprintf("%d messages are not in the order of their partition keys, among them %s", len(wrong), wrong[0]))
	}
	return faults[:min(len(faults), 40)], len(missing), longest
}

// news returns the faults that were found since it was called last.
func (l *ledger) news() (faults []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	faults = slices.Clone(l.faults[l.told:])
	l.told = len(l.faults)
	return faults
}

// nextOutage returns how long after an instant the next outage began, zero if one was under way, and reports whether
// there was any.
func nextOutage(at time.Time, outages []outage) (time.Duration, bool) {
	for _, one := range outages {
		if !one.ended.Before(at) {
			return max(0, one.began.Sub(at)), true
		}
	}
	return 0, false
}
