package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// api returns the API for the pages.
func (c *Console) api() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.config.ReadOnly && !isReading(r) {
			refuse(w, semantics.Errorf(
				semantics.PermissionDenied, "this console is read-only; start it with --ui on to permit changes",
			))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		ctx, _ := obs.WithCall(r.Context()) // for the audit
		answer := &answered{ResponseWriter: w}
		c.config.API.ServeHTTP(answer, r.WithContext(ctx))
		if path, changes := changedBy(r); changes && !answer.isRefusal() {
			c.watch.refresh(ctx, path, c.config.Broker.GetEntity)
		}
	})
}

// answered notes the status of an answer. A call that is refused must not make the watch read.
type answered struct {
	http.ResponseWriter

	status int
}

// WriteHeader writes the header of the answer.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns what is wrapped, for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answered) isRefusal() bool {
	return a.status == http.StatusUnauthorized || a.status == http.StatusForbidden ||
		a.status == http.StatusMisdirectedRequest
}

// isReading reports whether a call changes nothing.
func isReading(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages:peek")
}

// refuse answers a request with an error in the form of the API.
func refuse(w http.ResponseWriter, err error) {
	status, body, retryAfter := wireerror.HTTP(wireerror.Of(err))
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeJSON(w, status, body)
}

// writeJSON writes an answer. A client that does not read it must not keep what others wait for.
func writeJSON(w http.ResponseWriter, status int, v any) {
	limit := http.NewResponseController(w)
	_ = limit.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only in tests without a connection
	defer func() { _ = limit.SetWriteDeadline(time.Time{}) }()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // if it fails, the client is gone
}
