// Package compat serves the runtime REST API of Service Bus: send, receive under lock or for good, complete, unlock and
// renew, with raw bodies, so that a shell with curl is a full client (spec section 19). It stands before the native API
// and takes the paths that have its forms. There are no rules here; what is particular to the surface is, and nothing
// else.
package compat

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Config is what a Handler needs.
type Config struct {
	Broker    *broker.Broker
	Responses *response.Tracker
	Calls     *obs.Calls
	Metrics   *obs.Metrics

	Next http.Handler // serves all other paths

	Authorizer access.Authorizer // decides who may do what (AUTH-5)
}

// Handler answers HTTP requests. It is safe for concurrent use.
type Handler struct {
	Config

	locks  locks
	topics topics

	// crossOrigin keeps web pages that a browser on this machine shows from reaching the sidecar at its loopback
	// address.
	crossOrigin http.CrossOriginProtection
}

// New makes a Handler.
func New(config Config) *Handler {
	return &Handler{
		Config: config, locks: locks{issued: map[semantics.LockToken]issuedLock{}, pruneAt: firstLockPrune},
		topics: topics{known: map[string]bool{}},
	}
}

// exchange is one request on its way.
type exchange struct {
	*Handler
	http.ResponseWriter

	request  *http.Request
	route    route
	spelling map[string]string // of names of headers
	failure  *semantics.Error  // what was answered, nil when it went well
	written  func()            // is called when the answer was written or could not be
}

// ServeHTTP answers one request. What a receive took is confirmed once the answer was flushed to the socket without
// error, else given back (RECV-7).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, isOurs := routeOf(r.URL)
	if !isOurs {
		h.Next.ServeHTTP(w, r)
		return
	}
	start, name := time.Now(), "none"
	what, isKnown := route.verbs[r.Method]
	if isKnown {
		name = names[what]
	}
	ctx, resp := h.Responses.Begin(r.Context())
	x := &exchange{
		Handler:        h,
		ResponseWriter: w,
		request:        r.WithContext(ctx),
		route:          route,
		spelling:       spellingOf(r),
		written:        func() {},
	}
	x.serve(what, isKnown, name)
	err := http.NewResponseController(w).Flush()
	x.written()
	resp.Finish(ctx, err == nil && x.failure == nil)
	h.Calls.Done(ctx, obs.Compat, name, start, x.failure)
}

func (x *exchange) serve(what verb, isKnown bool, name string) {
	defer func() {
		if recovered := recover(); recovered != nil {
			x.fail(x.Calls.Recovered(x.request.Context(), name, recovered))
		}
	}()
	if refused := admission.Refusal(x.request.Context()); refused != nil {
		x.fail(refused)
		return
	}
	if x.crossOrigin.Check(x.request) != nil {
		x.fail(semantics.Errorf(semantics.PermissionDenied, "requests of web pages from elsewhere are not served"))
		return
	}
	if !isKnown {
		x.failMethod()
		return
	}
	if err := x.authorize(what); err != nil {
		x.fail(err)
		return
	}
	if err := x.dispatch(what); err != nil {
		x.fail(err)
	}
}

// authorize asks for the rights of the RPC that does the same.
func (x *exchange) authorize(what verb) error {
	ctx, err := access.Authenticate(x.request.Context(), x.Authorizer, x.request.Header.Values("Authorization"))
	if err != nil {
		return err
	}
	return access.CheckPath(ctx, rpcs[what], x.route.entity, x.route.below)
}

func (x *exchange) dispatch(what verb) error {
	if what == send {
		return x.send()
	}
	source := x.route.source()
	switch what {
	case receive:
		return x.receive(source, semantics.PeekLock)
	case receiveAndDelete:
		return x.receive(source, semantics.ReceiveAndDelete)
	case complete:
		return x.settle(source, obs.Complete, x.Broker.Complete)
	case unlock:
		return x.settle(
			source,
			obs.Abandon,
			func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
				return x.Broker.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
			},
		)
	default:
		return x.renew(source)
	}
}

func (x *exchange) fail(err error) {
	x.failure = obs.Failure(err)
	writeFailure(x, x.failure)
}

func (x *exchange) failMethod() {
	allowed := strings.Join(slices.Sorted(maps.Keys(x.route.verbs)), ", ")
	x.Header().Set("Allow", allowed)
	x.failure = semantics.Errorf(
		semantics.RouteNotFound, "the route does not accept %s; use %s", cut(x.request.Method), allowed,
	)
	writeStatus(x, http.StatusMethodNotAllowed, x.failure)
}

// Bounds of waiting (REST-8).
const (
	defaultTimeout = 60
	maxTimeout     = 300
)

// timeout reads how long to wait for a message, in seconds. More than there may be is cut.
func (x *exchange) timeout() (time.Duration, error) {
	query := x.request.URL.Query()
	if !query.Has("timeout") {
		return defaultTimeout * time.Second, nil
	}
	n, err := strconv.ParseUint(query.Get("timeout"), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, semantics.Errorf(semantics.InvalidArgument, "timeout must be a whole number of seconds").
			With(semantics.DetailField, "timeout")
	}
	return time.Duration(min(n, maxTimeout)) * time.Second, nil //nolint:gosec // at most maxTimeout
}

// readBody reads a body of at most limit bytes. what is the thing that would be larger.
func (x *exchange) readBody(what string, limit int64) ([]byte, error) {
	body, err := admission.ReadBody(x.ResponseWriter, x.request, what, limit)
	if err != nil {
		return nil, err
	}
	return body, nil
}

// cut shortens a text from outside for an error message.
func cut(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// topics remembers which targets are topics, of the paths sent to. It only says what to try first, so it may be wrong.
type topics struct {
	mu    sync.Mutex
	known map[string]bool
}

const maxTopics = 10_000

func (t *topics) has(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[semantics.Fold(path)]
}

func (t *topics) note(path string, isTopic bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !isTopic {
		delete(t.known, semantics.Fold(path))
		return
	}
	if len(t.known) >= maxTopics {
		clear(t.known)
	}
	t.known[semantics.Fold(path)] = true
}
