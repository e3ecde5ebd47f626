package redistest

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	runMember = regexp.MustCompile(`^:(\d+)$`)
	runText   = regexp.MustCompile(`^\d+-\d+(,\d+-\d+)*$`)
)

// singleLocks returns the locks of a side with their ends, one for each message: those of runs as if each message had
// a lock of its own.
func (q *audit) singleLocks(side string) map[string]float64 {
	locks := map[string]float64{}
	for lock, end := range q.zsets[side+"locks"] {
		m := runMember.FindStringSubmatch(lock)
		if m == nil {
			locks[lock] = end
			continue
		}
		for _, position := range positionsOf(q.hashes["runs"][m[1]]) {
			locks[strconv.FormatInt(position, 10)+lock] = end
		}
	}
	return locks
}

// positionsOf returns the positions of a run.
func positionsOf(run string) []int64 {
	var positions []int64
	for part := range strings.SplitSeq(run, ",") {
		from, to, _ := strings.Cut(part, "-")
		first, _ := strconv.ParseInt(from, 10, 64)
		last, _ := strconv.ParseInt(to, 10, 64)
		for position := first; position <= last && position > 0; position++ {
			positions = append(positions, position)
		}
	}
	return positions
}

// checkRuns checks that each run has one lock and each such lock a run, that their positions ascend, and that the number
// of messages they lock beyond their own number is known.
func (q *audit) checkRuns() {
	more := int64(0)
	for nonce, run := range q.hashes["runs"] {
		positions := positionsOf(run)
		if !runText.MatchString(run) || len(positions) == 0 {
			q.fault("run %s is %q", nonce, run)
			continue
		}
		for i := range positions[1:] {
			if positions[i] >= positions[i+1] {
				q.fault("run %s is not in order: %s", nonce, run)
			}
		}
		if _, has := q.zsets["locks"][":"+nonce]; !has {
			q.fault("run %s has no lock", nonce)
		}
		more += int64(len(positions)) - 1
	}
	for side, runs := range map[string]map[string]string{"": q.hashes["runs"], "dead_": nil} {
		for lock := range q.zsets[side+"locks"] {
			if m := runMember.FindStringSubmatch(lock); m != nil && runs[m[1]] == "" {
				q.fault("%slocks has %s without a run", side, lock)
			}
		}
	}
	if got := q.number("locked_more"); got != more {
		q.fault("locked_more is %d, runs lock %d messages beyond their number", got, more)
	}
}
