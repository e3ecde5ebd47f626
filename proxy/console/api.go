package console

import (
	"encoding/json"
	"net/http"
	"strings"

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
		c.config.API.ServeHTTP(w, r.WithContext(ctx))
		if path, changes := changedBy(r); changes {
			c.watch.refresh(ctx, path, c.config.Broker.GetEntity)
		}
	})
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

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // if it fails, the client is gone
}
