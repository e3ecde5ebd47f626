package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// writeFailure answers a call that failed, for the gateway.
func (h *Handler) writeFailure(
	ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error,
) {
	x := exchangeOf(ctx)
	x.method, _ = runtime.RPCMethod(ctx)
	failure := x.refused
	if failure == nil {
		failure = failureOf(err)
	}
	writeError(w, x, failure)
}

// failureOf returns the semantics.Error of a failure. The services return no gRPC status, so a status is from the
// gateway, about a request that it could not parse.
func failureOf(err error) *semantics.Error {
	var own *semantics.Error
	var malformed *runtime.HTTPStatusError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &malformed):
		return semantics.Errorf(semantics.InvalidArgument, "the path is malformed: %v", malformed.Err)
	case status.Code(err) == codes.InvalidArgument:
		return semantics.Errorf(
			semantics.InvalidArgument, "the request is malformed: %s", status.Convert(err).Message(),
		)
	default:
		return wireerror.Of(err)
	}
}

// writeRoutingFailure answers a request that matches no route, for the gateway.
func (h *Handler) writeRoutingFailure(
	ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request,
	statusCode int,
) {
	x := exchangeOf(ctx)
	if statusCode == http.StatusMethodNotAllowed {
		writeWrongMethod(w, x, r.Method, h.methodsFor(r))
		return
	}
	if isOfAdminAddress(r.URL.Path) {
		writeError(w, x, semantics.Errorf(semantics.RouteNotFound,
			"there is no route %s; probes, metrics and the console are at --admin-addr, 127.0.0.1:7422 by default",
			semantics.Shorten(r.URL.Path)))
		return
	}
	slash := ""
	if strings.Count(r.URL.EscapedPath(), "/") > len("///") { // beyond /v1/queues/orders
		slash = "; write \"/\" in a name as %2F"
	}
	writeError(w, x, semantics.Errorf(semantics.RouteNotFound,
		"there is no route %s; the nearest is %s%s; /openapi.json lists all",
		semantics.Shorten(r.URL.Path), nearestRoute(r.URL.EscapedPath()), slash))
}

func writeWrongMethod(w http.ResponseWriter, x *exchange, method string, allowed []string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	x.failure = semantics.Errorf(
		semantics.RouteNotFound, "the route does not accept %s; use %s", semantics.Shorten(method),
		strings.Join(allowed, ", "),
	)
	writeBody(w, http.StatusMethodNotAllowed, x.failure)
}

func writeError(w http.ResponseWriter, x *exchange, failure *semantics.Error) {
	x.failure = failure
	statusCode, _, retryAfter := wireerror.HTTP(failure)
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	if failure.Code == semantics.Unauthenticated {
		w.Header().Set("WWW-Authenticate", sas.Scheme)
	}
	writeBody(w, statusCode, failure)
}

func writeBody(w http.ResponseWriter, statusCode int, failure *semantics.Error) {
	_, body, _ := wireerror.HTTP(failure)
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // encoding strings and numbers cannot fail
	}
	text = append(text, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(statusCode)
	_, _ = w.Write(text) // if it fails, the client is gone
}

// probe tests whether a route accepts a method.
type probe struct{ found bool }

type probeKey struct{}

// stopProbes records a probe instead of serving it.
func stopProbes(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		if p, ok := r.Context().Value(probeKey{}).(*probe); ok {
			p.found = true
			return
		}
		next(w, r, params)
	}
}

// methodsFor returns the methods that the route of r accepts. The gateway does not export its routes, so each method is
// probed.
func (h *Handler) methodsFor(r *http.Request) []string {
	if _, ok := r.Context().Value(probeKey{}).(*probe); ok {
		return nil // r is a probe itself
	}
	var allowed []string
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete,
	} {
		p := &probe{}
		probed := r.Clone(context.WithValue(r.Context(), probeKey{}, p))
		probed.Method = method
		h.mux.ServeHTTP(discardResponse{}, probed)
		if p.found {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// discardResponse discards the response to a probe.
type discardResponse struct{}

func (discardResponse) Header() http.Header         { return http.Header{} }
func (discardResponse) Write(b []byte) (int, error) { return len(b), nil }
func (discardResponse) WriteHeader(int)             {}
