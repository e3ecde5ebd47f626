package audit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkSide checks the main queue or the dead letters and returns the first instant at which something is due on it.
func (q *audit) checkSide(side string) int64 {
	log := q.logs[side+"log"]
	cursor, sequence := q.number(side+"cursor"), q.number(side+"sequence")
	inGap := q.checkGaps(side, cursor, sequence)
	locked := map[string]bool{}
	first := int64(0)
	for lock, end := range q.singleLocks(side) {
		position, _, _ := strings.Cut(lock, ":")
		if side == "" && q.sessions != nil {
			position = q.lockInSession(lock, end)
		}
		if locked[position] {
			q.fault("%s has two locks", side+position)
		}
		locked[position] = true
		if end != noEnd {
			first = earlier(first, int64(end))
		}
	}
	for position, visible := range q.zsets[side+"delayed"] {
		_ = position
		first = earlier(first, int64(visible))
	}
	bytes := int64(0)
	for position, e := range log {
		bytes += e.size + q.more(side, position)
		if side == "" && q.sessions != nil {
			q.checkPlace(position, e, locked[position], sequence)
		} else {
			q.checkState(side, position, cursor, sequence, inGap[position], locked[position])
		}
		first = earlier(first, q.checkExpiry(side, position, e, locked[position]))
	}
	if side == "" {
		for _, e := range q.logs["scheduled"] {
			bytes += e.size
		}
	}
	if got := q.number(side + "bytes"); got != bytes {
		q.fault("%sbytes is %d, the messages are %d", side, got, bytes)
	}
	q.checkOrphans(side, log, locked)
	return first
}

// checkGaps returns the positions in gaps, which must lie apart and above the cursor.
func (q *audit) checkGaps(side string, cursor, sequence int64) map[string]bool {
	type span struct{ first, last int64 }
	var spans []span
	for member, score := range q.zsets[side+"gaps"] {
		var s span
		if _, err := fmt.Sscanf(member, "%d-%d", &s.first, &s.last); err != nil || float64(s.first) != score {
			q.fault("%sgaps has %s at %v", side, member, score)
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.first - b.first) })
	in, before := map[string]bool{}, cursor
	for _, s := range spans {
		if s.first <= before+1 || s.last < s.first || s.last > sequence {
			q.fault("%sgaps has %d-%d after %d, cursor %d, sequence %d", side, s.first, s.last, before, cursor, sequence)
		}
		for n := s.first; n <= s.last; n++ {
			in[strconv.FormatInt(n, 10)] = true
		}
		before = s.last
	}
	return in
}

// checkState checks that a message is in exactly one state (I6 of reliability: no orphans).
func (q *audit) checkState(side, position string, cursor, sequence int64, inGap, locked bool) {
	n, _ := strconv.ParseInt(position, 10, 64)
	deferred, isDeferred := q.zsets[side+"deferred"][position]
	_, ready := q.zsets[side+"ready"][position]
	_, delayed := q.zsets[side+"delayed"][position]
	if isDeferred && (deferred < 0) != locked {
		q.fault("%s is deferred with %v, locked is %v", side+position, deferred, locked)
	}
	states := []string{}
	for name, is := range map[string]bool{
		"fresh": n > cursor && !inGap, "ready": ready, "delayed": delayed, "locked": locked, "deferred": isDeferred && !locked,
	} {
		if is {
			states = append(states, name)
		}
	}
	if len(states) != 1 || n > sequence {
		q.fault("%s is in the states %v, cursor %d, sequence %d", side+position, states, cursor, sequence)
	}
}

// checkExpiry checks the entry of one message among the lifetimes: with the sign turned while it is locked, and there
// unless it is deferred.
func (q *audit) checkExpiry(side, position string, e logEntry, locked bool) int64 {
	expires, has := q.zsets[side+"expiry"][position]
	if has && (expires < 0) != locked {
		q.fault("%s expires at %v, locked is %v", side+position, expires, locked)
	}
	_, deferred := q.zsets[side+"deferred"][position]
	_, end, _ := strings.Cut(e.times, ":")
	if side == "" && end != "0" {
		if !has && !deferred {
			q.fault("%s expires at %s and is not in expiry", position, end)
		}
		if has && strconv.FormatInt(int64(max(expires, -expires)), 10) != end {
			q.fault("%s expires at %s, expiry has %v", position, end, expires)
		}
	}
	if has && expires > 0 {
		return int64(expires)
	}
	return 0
}

// checkOrphans checks that nothing is kept for messages that are not there.
func (q *audit) checkOrphans(side string, log map[string]logEntry, locked map[string]bool) {
	members := map[string][]string{"locks": slices.Collect(maps.Keys(locked))}
	for _, part := range []string{"ready", "delayed", "deferred", "expiry"} {
		members[part] = slices.Collect(maps.Keys(q.zsets[side+part]))
	}
	for _, part := range []string{"deliveries", "modified"} {
		members[part] = slices.Collect(maps.Keys(q.hashes[side+part]))
	}
	for part, positions := range members {
		for _, position := range positions {
			if _, there := log[position]; !there {
				q.fault("%s has %s, which is not in the log", side+part, position)
			}
		}
	}
}

func (q *audit) checkDeadNumbers() {
	numbers, log := q.zsets["dead_numbers"], q.logs["dead_log"]
	if len(numbers) != len(log) {
		q.fault("dead_numbers has %d, dead_log %d", len(numbers), len(log))
	}
	for position, e := range log {
		if got := strconv.FormatInt(int64(numbers[position]), 10); got != e.fields["n"] {
			q.fault("dead_numbers has %s for %s, whose number is %s", got, position, e.fields["n"])
		}
	}
}

// more is by how many bytes its changes make a message larger.
func (q *audit) more(side, position string) int64 {
	number, _, _ := strings.Cut(q.hashes[side+"modified"][position], ":")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}
