package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// Locks that share one settle script.
const (
	fullSettle = 64
	mostSettle = 256
)

// settleCall is one Complete or Release, or one Abandon without changes, on its way to its script.
type settleCall struct {
	verb   *settleVerb
	source semantics.Source
	delay  int64 // of abandon, in ms; ownDelay is the queue's
	tokens []semantics.LockToken
	codes  []semantics.Code
	err    error
}

// ownDelay is the redelivery delay of the queue.
const ownDelay = -1

// settleVerb is a settlement of which calls share scripts.
type settleVerb struct {
	script string
	args   func(first *settleCall, calls []*settleCall) []any
}

var (
	completeVerb = settleVerb{script: "complete"}
	abandonVerb  = settleVerb{script: "abandon", args: argsOfAbandons}
	releaseVerb  = settleVerb{script: "release", args: argsOfReleases}
)

// batchKey returns what calls that share a script have in common.
func (c *settleCall) batchKey() string {
	return c.verb.script + " " + c.source.Fold().String() + " " + sessionToken(c.source) + " " +
		strconv.FormatInt(c.delay, 10)
}

// weight also counts the bytes of messages that may become dead letters, so that no script copies much more than
// mostDeadLetterBytes.
func (c *settleCall) weight() int {
	n := len(c.tokens)
	if c.verb == &completeVerb {
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
	if !source.SessionLock.IsZero() {
		return s.completeInSession(ctx, source, tokens)
	}
	return s.settle(ctx, settleCall{verb: &completeVerb, source: source, tokens: tokens})
}

// Release implements semantics.Settler.
func (s *Store) Release(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.settle(ctx, settleCall{verb: &releaseVerb, source: source, tokens: tokens})
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions,
) ([]semantics.Code, error) {
	delayMs := int64(ownDelay)
	if options.Delay != nil {
		delayMs = options.Delay.Milliseconds()
	}
	return inSlices(tokens, func(some []semantics.LockToken) ([]semantics.Code, error) {
		if len(options.Properties) == 0 && !options.SkipOrder {
			return s.settle(ctx, settleCall{verb: &abandonVerb, source: source, delay: delayMs, tokens: some})
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

func (s *Store) settle(ctx context.Context, call settleCall) ([]semantics.Code, error) {
	if err := s.settles.do(ctx, call.batchKey(), &call); err != nil {
		return nil, err
	}
	return call.codes, call.err
}

func (s *Store) runSettles(ctx context.Context, calls []*settleCall) {
	first := calls[0]
	if first.verb == &completeVerb {
		s.runCompletes(ctx, calls)
		return
	}
	source, verb := first.source, first.verb
	args := append([]any{s.now()}, verb.args(first, calls)...)
	if verb == &abandonVerb { // a release that is forgotten comes about when the lock ends
		ctx = s.lasting(ctx)
	}
	r, err := s.runOn(ctx, source, verb.script, s.keysOf(source), args...)
	if err == nil && r.status == "OK" {
		s.apply(ctx, keptAt(source), r)
	}
	for _, c := range calls {
		if c.err = s.settleFailure(ctx, c.source, r, err); c.err == nil {
			c.codes, c.err = readSettled(r, len(c.tokens))
			r.confirm(c.codes)
		}
	}
}

// settleFailure returns why a script of several calls settled nothing, nil if it did.
func (s *Store) settleFailure(ctx context.Context, source semantics.Source, r *reply, err error) error {
	switch {
	case err != nil:
		return err
	case r.status == string(semantics.EntityNotFound):
		return s.notFound(ctx, source.Path)
	case r.status == string(semantics.SessionRequired), r.status == string(semantics.SessionNotSupported):
		return semantics.SessionFailure(semantics.Code(r.status), source.Path)
	default:
		return nil
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
	r, err := s.runOn(s.lasting(ctx), source, script, s.keysOf(source), args...)
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
	r.confirm(codes)
	return codes, r.failure()
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

func argsOfAbandons(first *settleCall, calls []*settleCall) []any {
	var locks []any
	for _, c := range calls {
		locks = appendLocks(locks, c.tokens)
	}
	args := []any{prefixOf(first.source.SubQueue), first.delay, flag(false), sessionToken(first.source), len(locks)}
	return append(args, locks...)
}

func argsOfReleases(first *settleCall, calls []*settleCall) []any {
	args := []any{prefixOf(first.source.SubQueue), sessionToken(first.source)}
	for _, c := range calls {
		args = appendLocks(args, c.tokens)
	}
	return args
}

func appendLocks(args []any, tokens []semantics.LockToken) []any {
	for _, t := range tokens {
		args = append(args, lockText(t))
	}
	return args
}
