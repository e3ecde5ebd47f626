package redisstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Locks that share one settle script.
const (
	fullSettle = 64
	mostSettle = 256
)

// settleCall is one Complete or Release, or one Abandon without changes, on its way to its script.
type settleCall struct {
	source semantics.Source
	script string
	delay  int64 // of abandon, in ms; -1 is the queue's own
	tokens []semantics.LockToken
	codes  []semantics.Code
	err    error
}

// weight also counts the bytes of messages that may become dead letters, so that no script copies much more than
// mostDeadLetterBytes.
func (c *settleCall) weight() int {
	n := len(c.tokens)
	if c.script != "abandon" && c.script != "release" {
		return n
	}
	for _, t := range c.tokens {
		l, _ := lockOf(t)
		n += int(l.size / (mostDeadLetterBytes / mostSettle))
	}
	return n
}

// Complete implements semantics.Settler.
func (s *Store) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, "complete", 0, tokens)
}

// Release implements semantics.Settler.
func (s *Store) Release(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, "release", 0, tokens)
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions,
) ([]semantics.Code, error) {
	delayMs := int64(-1)
	if options.Delay != nil {
		delayMs = options.Delay.Milliseconds()
	}
	return inSlices(tokens, func(some []semantics.LockToken) ([]semantics.Code, error) {
		if len(options.Properties) == 0 && !options.SkipOrder {
			return s.settle(ctx, source, "abandon", delayMs, some)
		}
		return s.settleChanged(
			ctx, source, "abandon", []any{prefixOf(source.SubQueue), delayMs, flag(options.SkipOrder)}, some,
			options.Properties,
		)
	})
}

// Defer implements semantics.Settler.
func (s *Store) Defer(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.settleChanged(ctx, source, "defer", []any{prefixOf(source.SubQueue)}, tokens, properties)
}

// DeadLetter implements semantics.Settler.
func (s *Store) DeadLetter(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, texts semantics.DeadLetterTexts,
	properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return inSlices(tokens, func(some []semantics.LockToken) ([]semantics.Code, error) {
		return s.settleChanged(
			ctx, source, "dead_letter", []any{textOrNone(texts.Reason), textOrNone(texts.Description)}, some,
			properties,
		)
	})
}

// A message that becomes a dead letter is copied. So one script settles at most this many messages and bytes that may
// become dead letters, or one message.
const (
	mostDeadLetters     = 250
	mostDeadLetterBytes = 4 << 20
)

// inSlices settles messages that may become dead letters, with as many scripts as that takes, in order of position as
// one script does (DLQ-16). Only a script is atomic: each message has an answer of its own.
func inSlices(
	tokens []semantics.LockToken, settle func([]semantics.LockToken) ([]semantics.Code, error),
) ([]semantics.Code, error) {
	locks, order := make([]lock, len(tokens)), make([]int, len(tokens))
	for i, token := range tokens {
		locks[i], _ = lockOf(token)
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(locks[a].position, locks[b].position) })
	codes := make([]semantics.Code, len(tokens))
	for len(order) > 0 {
		n, bytes := 0, int64(0)
		var some []semantics.LockToken
		for n < len(order) && n < mostDeadLetters && (n == 0 || bytes+locks[order[n]].size <= mostDeadLetterBytes) {
			bytes += locks[order[n]].size
			some = append(some, tokens[order[n]])
			n++
		}
		found, err := settle(some)
		if err != nil && len(order) < len(tokens) { // a part is settled
			err = semantics.AsError(err).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
		}
		if err != nil {
			return nil, err
		}
		for i, code := range found {
			codes[order[i]] = code
		}
		order = order[n:]
	}
	return codes, nil
}

func textOrNone(text *string) string {
	if text == nil {
		return ""
	}
	return "=" + *text
}

func (s *Store) settle(
	ctx context.Context, source semantics.Source, script string, delay int64, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	call := &settleCall{source: source, script: script, delay: delay, tokens: tokens}
	batchKey := script + " " + source.Fold().String()
	switch {
	case source.SessionLock.IsZero():
	case script == "complete":
		call.script = "complete_in_sessions" // of all sessions together
		batchKey = call.script + " " + source.Fold().String()
	default:
		batchKey += " " + sessionToken(source)
	}
	if delay != 0 {
		batchKey = time.Duration(delay).
			String() +
			" " + batchKey // those with the same delay go together, and those with the queue's own
	}
	if err := s.settles.do(ctx, batchKey, call); err != nil {
		return nil, err
	}
	return call.codes, call.err
}

func (s *Store) runSettles(ctx context.Context, calls []*settleCall) {
	first := calls[0]
	source, script := first.source, first.script
	args, keys := []any{s.now()}, s.keysOf(source)
	locks := 0
	for _, c := range calls {
		locks += len(c.tokens)
	}
	switch script {
	case "complete":
		keys = keys.of(source.SubQueue)
		args = appendCompletes(append(args, prefixOf(source.SubQueue)), calls)
	case "complete_in_sessions":
		keys = keys.of(source.SubQueue)
		args = appendCompletesInSessions(args, calls)
	case "abandon":
		args = append(args, prefixOf(source.SubQueue), first.delay, 0, sessionToken(source), locks)
	default: // release
		args = append(args, prefixOf(source.SubQueue), sessionToken(source))
	}
	if script == "abandon" || script == "release" {
		for _, c := range calls {
			args = appendLocks(args, c.tokens)
		}
	}
	r, err := s.runOn(ctx, source, script, keys, args...)
	if err == nil && (script == "abandon" || script == "release") && r.status == "OK" {
		s.apply(ctx, keptAt(source), r)
	}
	for _, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case r.status == string(semantics.EntityNotFound):
			c.err = s.notFound(ctx, c.source.Path)
		case r.status == string(semantics.SessionRequired), r.status == string(semantics.SessionNotSupported):
			c.err = semantics.SessionFailure(semantics.Code(r.status), c.source.Path)
		case script == "complete" && r.status == "OK": // all of them, without a row for each
			c.codes = make([]semantics.Code, len(c.tokens))
		default:
			c.codes, c.err = readSettled(r, len(c.tokens))
		}
	}
}

// settleChanged runs one settle script for one call, whose properties are merged into those of each message. args are
// the arguments of the script between the instant and the number of locks.
func (s *Store) settleChanged(
	ctx context.Context, source semantics.Source, script string, args []any, tokens []semantics.LockToken,
	properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	var outcomes []merged
	args = appendLocks(append(append([]any{s.now()}, args...), sessionToken(source), len(tokens)), tokens)
	if len(properties) > 0 {
		var err error
		if outcomes, err = s.merge(ctx, source, tokens, properties); err != nil {
			return nil, err
		}
		for _, o := range outcomes {
			args = append(args, o.argument())
		}
	}
	r, err := s.runOn(ctx, source, script, s.keysOf(source), args...)
	if err != nil {
		return nil, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, err
	}
	codes := make([]semantics.Code, len(tokens))
	for i := range codes {
		switch r.number() {
		case 0:
			codes[i] = semantics.MessageLockLost
		case 2:
			codes[i] = outcomes[i].code
		case 3:
			codes[i] = semantics.SessionLockLost
		}
	}
	return codes, r.failure()
}

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Renewal, error) {
	r, err := s.runOn(ctx, source, "renew_locks", s.keysOf(source).of(source.SubQueue),
		appendLocks([]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, tokens)...)
	if err != nil {
		return nil, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
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
		switch r.number() {
		case 0:
			codes[i] = semantics.MessageLockLost
		case 3:
			codes[i] = semantics.SessionLockLost
		}
	}
	return codes, r.failure()
}

// appendCompletesInSessions adds for each message the token of its session, its lock and its id.
func appendCompletesInSessions(args []any, calls []*settleCall) []any {
	for _, c := range calls {
		session := sessionToken(c.source)
		for _, t := range c.tokens {
			l, ok := lockOf(t)
			text, id := l.text(), l.id()
			if !ok {
				text, id = foreignLock, "0-0"
			}
			args = append(args, session, text, id)
		}
	}
	return args
}

// appendCompletes adds all locks, then all ids.
func appendCompletes(args []any, calls []*settleCall) []any {
	var locks, ids []any
	for _, c := range calls {
		for _, t := range c.tokens {
			l, ok := lockOf(t)
			text, id := l.text(), l.id()
			if !ok {
				text, id = foreignLock, "0-0"
			}
			locks, ids = append(locks, text), append(ids, id)
		}
	}
	return append(append(args, locks...), ids...)
}

func appendLocks(args []any, tokens []semantics.LockToken) []any {
	for _, t := range tokens {
		args = append(args, lockText(t))
	}
	return args
}
