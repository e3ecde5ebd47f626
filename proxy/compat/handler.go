// Package compat implements the runtime REST API of Service Bus: send, receive, complete, unlock and renew, with raw
// bodies, so that curl is sufficient as a client (spec section 19). Its Handler takes the paths of that API and passes
// all others to the native API. The rules are in package semantics.
package compat

import (
	"errors"
	"net/http"
	"strconv"
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

	Next http.Handler // handles all other paths

	Authorizer access.Authorizer // authorizes calls (AUTH-5)
}

// Handler handles HTTP requests. It is safe for concurrent use.
type Handler struct {
	Config

	locks  locks
	topics topics
}

// New returns a Handler.
func New(config Config) *Handler {
	return &Handler{
		Config: config, locks: locks{issued: map[semantics.LockToken]issuedLock{}, pruneAt: firstLockPrune},
		topics: topics{known: map[string]bool{}},
	}
}

// exchange is one request and its response.
type exchange struct {
	*Handler
	http.ResponseWriter

	request  *http.Request
	route    route
	spelling map[string]string // of header names
	failure  *semantics.Error  // the error response; nil for success
	written  func()            // called after writing the response, also if that failed
}

// ServeHTTP handles one request. The messages of a receive are confirmed if the response was flushed to the socket, and
// released otherwise (RECV-7).
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
	obs.About(ctx, route.entity)
	ctx = h.Calls.Traces().FromHTTP(ctx, r.Header)
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
	if refused := admission.RefusalOfRequest(x.request); refused != nil {
		x.fail(refused)
		return
	}
	if !isKnown {
		x.failure = WriteWrongMethod(x, x.request.Method, x.route.verbs)
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

// authorize checks the claims of the corresponding RPC.
func (x *exchange) authorize(what verb) error {
	ctx, err := admission.Authenticate(x.request.Context(), x.Authorizer, x.request.Header.Values("Authorization"))
	if err != nil {
		return err
	}
	if err := access.CheckPath(ctx, rpcs[what], x.route.entity, x.route.below); err != nil {
		return err
	}
	listen := access.Right{Claims: access.Listen, Path: x.route.entity, Below: x.route.below}
	x.request = x.request.WithContext(access.WhileWaitingWith(ctx, listen)) // only a receive waits
	return nil
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
		return x.settle(source, obs.Abandon, x.abandon)
	default:
		return x.renew(source)
	}
}

func (x *exchange) fail(err error) {
	x.failure = obs.Failure(err)
	writeFailure(x, x.failure)
}

// Limits of the timeout parameter in seconds (REST-8).
const (
	defaultTimeout = 60
	maxTimeout     = 300
)

// timeout returns how long to wait for a message. Values over maxTimeout are reduced to it.
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

// readBody reads a body of at most limit bytes. what names it in errors.
func (x *exchange) readBody(what string, limit int64) ([]byte, error) {
	body, err := admission.ReadBody(x.ResponseWriter, x.request, what, limit)
	if err != nil {
		return nil, err
	}
	return body, nil
}

// topics caches which targets are topics. The cache may be wrong: it only decides what to try first.
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
