package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Locks that share one settle script.
const (
	fullSettle = 64
	mostSettle = 256
)

// settleCall is one Complete, Abandon or Release on its way to its script.
type settleCall struct {
	source semantics.Source
	script string
	tokens []semantics.LockToken
	codes  []semantics.Code
	err    error
}

func (c *settleCall) weight() int { return len(c.tokens) }

// Complete implements semantics.Settler.
func (s *Store) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, "complete", tokens)
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, "abandon", tokens)
}

// Release implements semantics.Settler.
func (s *Store) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, "release", tokens)
}

func (s *Store) settle(ctx context.Context, source semantics.Source, script string, tokens []semantics.LockToken) ([]semantics.Code, error) {
	call := &settleCall{source: source, script: script, tokens: tokens}
	if err := s.settles.do(ctx, script+" "+source.Fold().String(), call); err != nil {
		return nil, err
	}
	return call.codes, call.err
}

func (s *Store) runSettles(ctx context.Context, calls []*settleCall) {
	source, script := calls[0].source, calls[0].script
	args := []any{s.now(), prefixOf(source.SubQueue)}
	keys := s.keys(source.Path)
	named := keys.of(source.SubQueue)
	if script == "complete" {
		named = []string{keys.entity, named[1], named[3], keys.deliveries, keys.lockedExpiry, keys.deadNumbers}
		args = appendCompletes(args, calls)
	} else {
		for _, c := range calls {
			args = appendLocks(args, c.tokens)
		}
	}
	r, err := s.run(ctx, script, named, args...)
	for _, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case r.status == string(semantics.EntityNotFound):
			c.err = semantics.NotFound(c.source.Path)
		case script == "complete" && r.status == "OK": // all of them, without a row for each
			c.codes = make([]semantics.Code, len(c.tokens))
		default:
			c.codes, c.err = readSettled(r, len(c.tokens))
		}
	}
}

// DeadLetter implements semantics.Settler. Reasons differ from call to call, so these calls do not share a script.
func (s *Store) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, reason, description string) ([]semantics.Code, error) {
	r, err := s.run(ctx, "dead_letter", s.keys(source.Path).of(source.SubQueue), appendLocks([]any{s.now(), reason, description}, tokens)...)
	if err != nil {
		return nil, err
	}
	if err := sourceError(source, r); err != nil {
		return nil, err
	}
	return readSettled(r, len(tokens))
}

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	keys := s.keys(source.Path)
	r, err := s.run(ctx, "renew_locks", []string{keys.entity, keys.of(source.SubQueue)[3], keys.lockedExpiry},
		appendLocks([]any{s.now(), prefixOf(source.SubQueue)}, tokens)...)
	if err != nil {
		return nil, err
	}
	if err := sourceError(source, r); err != nil {
		return nil, err
	}
	return readRenewals(r, r.instant(), len(tokens))
}

func readRenewals(r *reply, until time.Time, n int) ([]semantics.Renewal, error) {
	renewals := make([]semantics.Renewal, n)
	for i := range renewals {
		switch r.number() {
		case 0:
			renewals[i].Code = semantics.MessageLockLost
		case 2:
			renewals[i] = semantics.Renewal{LockedUntil: until, ExpiredInHand: true}
		default:
			renewals[i].LockedUntil = until
		}
	}
	return renewals, r.failure()
}

func readSettled(r *reply, n int) ([]semantics.Code, error) {
	codes := make([]semantics.Code, n)
	for i := range codes {
		if r.number() == 0 {
			codes[i] = semantics.MessageLockLost
		}
	}
	return codes, r.failure()
}

// appendCompletes adds the sum of the sizes, all locks, then all ids.
func appendCompletes(args []any, calls []*settleCall) []any {
	var bytes int64
	var locks, ids []any
	for _, c := range calls {
		for _, t := range c.tokens {
			l, ok := lockOf(t)
			text, id := l.text(), l.id()
			if !ok {
				text, id = foreignLock, "0-0"
			}
			locks, ids = append(locks, text), append(ids, id)
			bytes += l.size
		}
	}
	return append(append(append(args, bytes), locks...), ids...)
}

func appendLocks(args []any, tokens []semantics.LockToken) []any {
	for _, t := range tokens {
		args = append(args, lockText(t))
	}
	return args
}
