package redisstore

import (
	"cmp"
	"strconv"
)

// compare orders locks by nonce and position, as appendRuns needs them.
func (l lock) compare(other lock) int {
	return cmp.Or(cmp.Compare(l.nonce, other.nonce), cmp.Compare(l.position, other.position))
}

// appendRuns appends the locks of a call in the form of runs (docs/decisions/0023): how many nonces they have, and for
// each nonce itself and its positions. The locks are in order, and none comes twice.
func appendRuns(args []any, locks int, at func(i int) lock) []any {
	count := len(args)
	args = append(args, 0)
	nonces := 0
	for first := 0; first < locks; nonces++ {
		last := first
		for last+1 < locks && at(last+1).nonce == at(first).nonce {
			last++
		}
		args = append(args, strconv.FormatUint(at(first).nonce, 10), runOf(first, last, at))
		first = last + 1
	}
	args[count] = nonces
	return args
}

// runOf returns the positions of some of the locks: "<first>-<last>,<first>-<last>,...".
func runOf(first, last int, at func(i int) lock) string {
	var run []byte
	for first <= last {
		end := first
		for end < last && at(end+1).position == at(end).position+1 {
			end++
		}
		if len(run) > 0 {
			run = append(run, ',')
		}
		run = strconv.AppendInt(run, at(first).position, 10)
		run = append(run, '-')
		run = strconv.AppendInt(run, at(end).position, 10)
		first = end + 1
	}
	return string(run)
}
