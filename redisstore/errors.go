package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// refusals are the first words of Redis errors that mean "not now" and that it did nothing.
var refusals = map[string]string{
	"OOM":         "redis_oom",
	"LOADING":     "redis_loading",
	"BUSY":        "redis_busy",
	"READONLY":    "redis_readonly",
	"MASTERDOWN":  "redis_masterdown",
	"CLUSTERDOWN": "redis_clusterdown",
	"TRYAGAIN":    "redis_tryagain",
	"NOREPLICAS":  "redis_noreplicas",
	"MISCONF":     "redis_misconf",
	"NOAUTH":      "redis_noauth",
	"WRONGPASS":   "redis_wrongpass",
	"NOPERM":      "redis_noperm",
}

// storeError gives the failure of a Redis call its Code. changes says whether the call could have changed something, in
// which case a lost answer means an unknown outcome (ERR-6, ERR-7).
func storeError(err error, changes bool) error {
	if cause, refused := refusalOf(err); refused {
		return unavailable(err, "Redis refused the call: "+strings.ReplaceAll(cause, "_", " ")).With(semantics.DetailCause, cause)
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		return &semantics.Error{Code: semantics.Internal, Message: "Redis failed the call", Err: err}
	}
	// The client looks at a call's context only before it sends, so this one never left.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &semantics.Error{Code: semantics.Cancelled, Message: "the caller went away", Err: err}
	}
	var network *net.OpError
	unsent := errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) ||
		errors.As(err, &network) && network.Op == "dial"
	if unsent || !changes {
		return unavailable(err, "Redis cannot be reached; nothing was changed").With(semantics.DetailCause, "redis_unreachable")
	}
	return unavailable(err, "the answer of Redis was lost; the call may have taken effect").
		With(semantics.DetailCause, "redis_unreachable").With(semantics.DetailOutcome, semantics.OutcomeUnknown)
}

func unavailable(err error, text string) *semantics.Error {
	return &semantics.Error{Code: semantics.StoreUnavailable, Message: text, Err: err}
}

func refusalOf(err error) (cause string, refused bool) {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return "", false
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	cause, refused = refusals[word]
	return cause, refused
}
