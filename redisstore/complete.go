package redisstore

import (
	"cmp"
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
		return cmp.Or(cmp.Compare(a.lock.nonce, b.lock.nonce), cmp.Compare(a.lock.position, b.lock.position))
	})
	return slices.CompactFunc(all, func(next, first completion) bool {
		isSame := first.lock.nonce == next.lock.nonce && first.lock.position == next.lock.position
		if isSame {
			*next.code = semantics.MessageLockLost
		}
		return isSame
	})
}

// args returns the arguments of complete.lua from the number of nonces on.
func (all completions) args() []any {
	args, nonces := make([]any, 1, 3+len(all)), 0
	for rest := all; len(rest) > 0; nonces++ {
		n := 1
		for n < len(rest) && rest[n].lock.nonce == rest[0].lock.nonce {
			n++
		}
		args = append(args, strconv.FormatUint(rest[0].lock.nonce, 10), rest[:n].run())
		rest = rest[n:]
	}
	args[0] = nonces
	for i := range all {
		args = append(args, all[i].lock.id())
	}
	return args
}

// run returns the positions of messages with the same nonce: "<first>-<last>,<first>-<last>,...".
func (all completions) run() string {
	var run []byte
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].lock.position == all[n-1].lock.position+1 {
			n++
		}
		if len(run) > 0 {
			run = append(run, ',')
		}
		run = strconv.AppendInt(run, all[0].lock.position, 10)
		run = append(run, '-')
		run = strconv.AppendInt(run, all[n-1].lock.position, 10)
		all = all[n:]
	}
	return string(run)
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
