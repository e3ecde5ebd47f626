package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// refusals are the first words of the errors with which Redis rejects a command and changes nothing, with their cause
// in the details and whether a repetition can succeed without an operator.
var refusals = map[string]struct {
	cause  string
	passes bool
}{
	"OOM":         {"redis_oom", false},
	"LOADING":     {"redis_loading", true},
	"BUSY":        {"redis_busy", true},
	"READONLY":    {"redis_readonly", true},
	"MASTERDOWN":  {"redis_masterdown", true},
	"CLUSTERDOWN": {"redis_clusterdown", true},
	"TRYAGAIN":    {"redis_tryagain", true},
	"MOVED":       {"redis_moved", true},
	"ASK":         {"redis_moved", true},
	"NOREPLICAS":  {"redis_noreplicas", true},
	"MISCONF":     {"redis_misconf", false},
	"NOAUTH":      {"redis_noauth", false},
	"WRONGPASS":   {"redis_wrongpass", false},
	"NOPERM":      {"redis_noperm", false},
}

// passing is the RetryAfter of failures that changed nothing and can pass without an operator.
const passing = 800 * time.Millisecond

// isFull reports whether Redis has rejected a call because it has no memory left.
func isFull(err error) bool {
	return err != nil && semantics.AsError(err).Details[semantics.DetailCause] == refusals["OOM"].cause
}

// storeError returns the failure of a Redis call with its Code. changes reports whether the call could have changed
// something; a lost answer then means an unknown outcome (ERR-6, ERR-7).
func storeError(err error, changes bool) error {
	var reply redis.Error
	if errors.As(err, &reply) {
		err = withoutArguments(err)
		word, _, _ := strings.Cut(reply.Error(), " ")
		if refusal, known := refusals[word]; known {
			e := unavailable(err, "Redis rejected the request; nothing changed").
				With(semantics.DetailCause, refusal.cause)
			if refusal.passes {
				e.RetryAfter = passing
			}
			return e
		}
		return &semantics.Error{Code: semantics.Internal, Message: "Redis failed the call", Err: err}
	}
	// The client checks the context of a call only before it sends, so this call was not sent.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &semantics.Error{Code: semantics.Cancelled, Message: "the caller went away", Err: err}
	}
	if !isUnknown(err, changes) {
		e := unavailable(err, notReached(err)).With(semantics.DetailCause, unsentCause(err))
		e.RetryAfter = passing
		return e
	}
	return unavailable(err, "the answer of Redis was lost; the call may have taken effect").
		With(semantics.DetailCause, causeUnreachable).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
}

// notReached returns why a server was not reached: Sentinels answer, and do not name a primary.
func notReached(err error) string {
	switch {
	case errors.Is(err, redis.Nil):
		return "the Sentinels have no primary of the name in --store; nothing was changed"
	case strings.Contains(err.Error(), "unknown command 'sentinel'"):
		return "the server that --store names is not a Sentinel; nothing was changed"
	default:
		return "Redis cannot be reached; nothing was changed"
	}
}

// isUnknown reports whether a call that could have changed something may have run, although it failed.
func isUnknown(err error, changes bool) bool {
	var reply redis.Error
	switch {
	case err == nil, !changes, errors.As(err, &reply):
		return false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false // of a call that was not sent: see storeError
	case errors.Is(err, errUnsent), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted),
		errors.Is(err, redis.ErrClosed):
		return false
	default:
		return true
	}
}

// mayHaveRun returns the failure of a step behind the one that decided, which has run.
func mayHaveRun(err error) error {
	if err == nil || semantics.CodeOf(err) != semantics.StoreUnavailable || semantics.IsOutcomeUnknown(err) {
		return err
	}
	return unavailable(err, "Redis failed before the call was complete; the call may have taken effect").
		With(semantics.DetailCause, semantics.AsError(err).Details[semantics.DetailCause]).
		With(semantics.DetailOutcome, semantics.OutcomeUnknown)
}

// isTimeout reports whether a server did not answer, or take a connection, in time.
func isTimeout(err error) bool {
	var failure net.Error
	return errors.As(err, &failure) && failure.Timeout()
}

// withoutArguments removes from an error the arguments that Redis repeats of an unknown command: those of AUTH and
// HELLO contain the password.
func withoutArguments(err error) error {
	if text, _, repeats := strings.Cut(err.Error(), ", with args beginning with"); repeats {
		return errors.New(text)
	}
	return err
}

func unavailable(err error, text string) *semantics.Error {
	return &semantics.Error{Code: semantics.StoreUnavailable, Message: text, Err: err}
}
