package redisstore

import (
	"context"
	"slices"

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

// args returns the arguments of complete.lua from the number of nonces on.
func (all completions) args() []any {
	args := appendRuns(make([]any, 0, 3+len(all)), len(all), func(i int) lock { return all[i].lock })
	for i := range all {
		args = append(args, all[i].lock.id())
	}
	return args
}

// runCompletes runs the script for the calls and fills their rows.
func (s *Store) runCompletes(ctx context.Context, calls []*settleCall) {
	source, all := calls[0].source, completionsOf(calls)
	keys := s.keysOf(source).of(source.SubQueue)
	r, err := s.runOn(ctx, source, "complete", keys, append([]any{s.now(), prefixOf(source.SubQueue)}, all.args()...)...)
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
		}
	}
}
