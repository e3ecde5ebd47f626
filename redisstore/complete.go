package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// completion is one message of a Complete, on its way to the script.
type completion struct {
	lock lock
	code *semantics.Code // its row in the answer of its call
}

// completions are the messages of several Completes. Messages that were received together share a nonce, and the script
// gets their positions as a run: docs/decisions/0023.
type completions []completion

// completionsOf returns the messages of the calls by nonce and position. The rows of those that no script need see are
// final: of tokens that this package did not create, and of all but the first of equal ones (SETTLE-14).
func completionsOf(calls []*settleCall) completions {
	n := 0
	for _, c := range calls {
		n += len(c.tokens)
		c.codes = make([]semantics.Code, len(c.tokens))
	}
	all := make(completions, 0, n)
	for _, c := range calls {
		for i, token := range c.tokens {
			l, ok := lockOf(token)
			if !ok {
				c.codes[i] = semantics.MessageLockLost
				continue
			}
			all = append(all, completion{lock: l, code: &c.codes[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b completion) int {
		return a.lock.compare(b.lock)
	})
	return slices.CompactFunc(all, func(next, first completion) bool {
		isSame := first.lock.compare(next.lock) == 0
		if isSame {
			*next.code = semantics.MessageLockLost
		}
		return isSame
	})
}

// args returns the arguments of complete.lua from the number of locks on.
func (all completions) args() []any {
	args := append(make([]any, 0, 8), len(all), all.sizes())
	return appendRuns(args, len(all), func(i int) lock { return all[i].lock })
}

// sizes returns the sizes of the messages: "<size>*<messages>,<size>*<messages>,...".
func (all completions) sizes() []byte {
	var sizes []byte
	for first, end := 0, 0; first < len(all); first = end {
		for end = first; end < len(all) && all[end].lock.size == all[first].lock.size; end++ {
		}
		if first > 0 {
			sizes = append(sizes, ',')
		}
		sizes = append(strconv.AppendInt(sizes, all[first].lock.size, 10), '*')
		sizes = strconv.AppendInt(sizes, int64(end-first), 10)
	}
	return sizes
}

// runCompletes runs the script for the calls and fills their rows.
func (s *Store) runCompletes(ctx context.Context, calls []*settleCall) {
	source, all := calls[0].source, completionsOf(calls)
	keys := s.keysOf(source).of(source.SubQueue)
	args := append([]any{s.now(), prefixOf(source.SubQueue)}, all.args()...)
	r, err := s.runOn(s.lasting(ctx), source, "complete", keys, args...)
	if err == nil && r.status == "SOME" {
		for i := range all {
			if r.number() == 0 {
				*all[i].code = semantics.MessageLockLost
			}
		}
		err = r.failure()
	}
	for _, c := range calls {
		if c.err = s.settleFailure(ctx, c.source, r, err); c.err != nil {
			c.codes = nil
			continue
		}
		r.confirm(c.codes)
	}
}
