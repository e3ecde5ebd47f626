package audit

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
)

var runText = regexp.MustCompile(`^\d+-\d+(,\d+-\d+)*$`)

// singleLocks returns the locks of a side with their ends, one for each message: those of runs as if each message had
// a lock of its own.
func (q *audit) singleLocks(side string) map[string]float64 {
	locks := maps.Clone(q.zsets[side+"locks"])
	if side != "" {
		return locks
	}
	if locks == nil {
		locks = map[string]float64{}
	}
	for nonce, run := range q.hashes["runs"] {
		for _, position := range positionsOf(run) {
			locks[strconv.FormatInt(position, 10)+":"+nonce] = q.zsets["run_locks"][nonce]
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

// checkRuns checks that each run has a lock and each such lock a run, that their positions ascend, and that the number
// of their messages is known.
func (q *audit) checkRuns() {
	messages := int64(0)
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
		if _, has := q.zsets["run_locks"][nonce]; !has {
			q.fault("run %s has no lock", nonce)
		}
		messages += int64(len(positions))
	}
	for nonce := range q.zsets["run_locks"] {
		if _, has := q.hashes["runs"][nonce]; !has {
			q.fault("run_locks has %s without a run", nonce)
		}
	}
	if got := q.number("run_messages"); got != messages {
		q.fault("run_messages is %d, runs have %d", got, messages)
	}
}
