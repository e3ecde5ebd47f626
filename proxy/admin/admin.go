// Package admin serves pages for operators and the platform: probes, metrics, settings, drain and profiles. Its address
// must be reachable only for them.
package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// Config configures the pages.
type Config struct {
	Readiness   *readiness.Readiness
	Metrics     *prometheus.Registry
	Hosts       *hosts.Hosts      // names for which requests are served
	BodyTimeout time.Duration     // for request bodies, which are ignored
	Pprof       bool              // serve profiles
	Settings    map[string]string // shown at /config; secrets must be masked
	Logger      *slog.Logger      // gets the audit of drains and quits
	Console     http.Handler      // the web console, for /ui and all below; nil: none

	// Drain starts a drain, blocks until clients hold no messages or sessions or ctx ends, and returns how many they
	// hold.
	Drain func(ctx context.Context) int
	// Quit ends the process as a signal does, or is nil if no client may end it.
	Quit func()
	// DrainTimeout is the default timeout of a drain.
	DrainTimeout time.Duration
}

// New returns the handler of all pages:
//
//	/startup    /healthz/startup   200 once the store has been ready
//	/readiness  /healthz/ready     200 while the sidecar accepts new work, else 503
//	/liveness   /healthz/live      200 always: a restart does not repair a store
//	/metrics                       Prometheus metrics
//	/config                        the current settings
//	/drain                         POST: refuses new receives; responds {"held":n} when n is 0 or after ?timeout=
//	/quitquitquit                  POST, with Quit: ends the process as a signal does
//	/ui/                           the web console, with Console
//	/debug/pprof                   profiles, with Pprof; never the command line, which may contain a password
func New(config Config) http.Handler {
	p := &pages{config}
	mux := p.probes()
	mux.HandleFunc("GET /config", p.settings)
	mux.HandleFunc("POST /drain", p.drain)
	if config.Quit != nil {
		mux.HandleFunc("POST /quitquitquit", p.quit)
	}
	p.addConsole(mux)
	if config.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	hint := "; the API is at --http-addr, 127.0.0.1:7420 by default"
	if config.Console != nil {
		hint += ", the console at /ui/"
	}
	return p.guard(mux, hint)
}

// NewProbes returns the handler of probes and metrics only, for an address that other machines reach. Its pages change
// nothing.
func NewProbes(config Config) http.Handler {
	p := &pages{config}
	return p.guard(p.probes(), "; this address has probes and metrics only")
}

// NewConsole returns the handler of an address that serves the console, probes and metrics.
func NewConsole(config Config) http.Handler {
	p := &pages{config}
	mux := p.probes()
	p.addConsole(mux)
	return p.guard(mux, "; the console is at /ui/")
}

func (p *pages) addConsole(mux *http.ServeMux) {
	if p.Console != nil {
		mux.Handle("/ui", p.Console)
		mux.Handle("/ui/", p.Console)
	}
}

// probes returns a mux with the pages that change nothing and show no settings.
func (p *pages) probes() *http.ServeMux {
	mux := http.NewServeMux()
	for path, page := range map[string]http.HandlerFunc{
		"/startup": p.startup, "/healthz/startup": p.startup,
		"/readiness": p.ready, "/healthz/ready": p.ready,
		"/liveness": p.live, "/healthz/live": p.live,
	} {
		mux.HandleFunc("GET "+path, page)
	}
	metrics := promhttp.HandlerFor(p.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		limit := http.NewResponseController(w)
		_ = limit.SetWriteDeadline(time.Now().Add(scrapeTime)) // fails only in tests without a connection
		defer func() { _ = limit.SetWriteDeadline(time.Time{}) }()
		metrics.ServeHTTP(w, r)
	})
	return mux
}

// Limits of /metrics: a scrape keeps all values in memory until the client has read them.
const (
	maxScrapes = 8 // at a time; further ones are answered with 503
	scrapeTime = 10 * time.Second
)

// guard checks the host and origin of requests, and answers unknown routes with hint.
func (p *pages) guard(mux *http.ServeMux, hint string) http.Handler {
	// A web page in a browser on this machine must not read from this sidecar or drain it.
	protected := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := p.Hosts.Check(r); refused != nil {
			writeFailure(w, 0, refused)
			return
		}
		admission.SetBodyDeadline(w, r, p.BodyTimeout)
		if _, pattern := mux.Handler(r); pattern == "" {
			p.noRoute(w, r, mux, hint)
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// noRoute answers a request for an unknown page or method.
func (p *pages) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux, hint string) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if allowed != nil {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeFailure(w, http.StatusMethodNotAllowed, semantics.Errorf(semantics.RouteNotFound,
			"the route does not accept %s; use %s", semantics.Shorten(r.Method), strings.Join(allowed, ", ")))
		return
	}
	path := semantics.Shorten(r.URL.Path)
	writeFailure(w, 0, semantics.Errorf(semantics.RouteNotFound, "there is no route %s%s", path, hint))
}

// writeFailure writes an error in the format of the API. status 0 means that of the reason.
func writeFailure(w http.ResponseWriter, status int, failure *semantics.Error) {
	usual, body, _ := wireerror.HTTP(failure)
	writeJSON(w, cmp.Or(status, usual), body)
}

type pages struct{ Config }

func (p *pages) startup(w http.ResponseWriter, r *http.Request) {
	p.probe(w, p.Readiness.Report(r.Context()), p.Readiness.HasStarted())
}

func (p *pages) ready(w http.ResponseWriter, r *http.Request) {
	report := p.Readiness.Report(r.Context())
	p.probe(w, report, report.State == readiness.Ready)
}

func (p *pages) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"state": "alive"})
}

func (p *pages) probe(w http.ResponseWriter, report readiness.Report, isOK bool) {
	if isOK {
		writeJSON(w, http.StatusOK, report)
	} else {
		writeJSON(w, http.StatusServiceUnavailable, report)
	}
}

func (p *pages) settings(w http.ResponseWriter, _ *http.Request) {
	settings := p.Settings
	if settings == nil {
		settings = map[string]string{}
	}
	writeJSON(w, http.StatusOK, settings)
}

func (p *pages) drain(w http.ResponseWriter, r *http.Request) {
	timeout := p.DrainTimeout
	if text := r.URL.Query().Get("timeout"); text != "" {
		var err error
		if timeout, err = time.ParseDuration(text); err != nil || timeout < 0 {
			writeFailure(w, 0, semantics.Errorf(semantics.InvalidArgument, "timeout must be a duration of 0s or more, such as 10s").
				With(semantics.DetailField, "timeout"))
			return
		}
	}
	p.audit(r, "Drain")
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	writeJSON(w, http.StatusOK, map[string]int{"held": p.Drain(ctx)})
}

// quit answers before the stop begins, so that the client gets the answer.
func (p *pages) quit(w http.ResponseWriter, r *http.Request) {
	p.audit(r, "Quit")
	writeJSON(w, http.StatusAccepted, map[string]string{"state": "stopping"})
	p.Quit()
}

func (p *pages) audit(r *http.Request, method string) {
	ctx, _ := obs.WithCall(r.Context())
	obs.By(ctx, nil, address(r.RemoteAddr))
	obs.Audit(ctx, p.Logger, obs.Admin, method, nil)
}

// address is where a client connects from.
type address string

func (a address) String() string { return string(a) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // if it fails, the client is gone
}
