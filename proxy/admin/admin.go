// Package admin serves what operators and the platform need: probes, metrics, settings, drain and profiles. It belongs on
// an address that only they can reach.
package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sidebus/sidebus/proxy/internal/readiness"
)

// Config is what the pages show and do.
type Config struct {
	Readiness *readiness.Readiness
	Metrics   *prometheus.Registry
	Settings  map[string]string // shown at /config as they are: whoever gives them has masked secrets

	// Drain begins a drain and blocks until nothing is held or ctx ends; it returns how many messages are still held.
	Drain func(ctx context.Context) int
	// DrainTimeout bounds a drain that names no timeout.
	DrainTimeout time.Duration
}

// New gives the handler of all pages:
//
//	/startup    /healthz/startup   200 once the store was seen fit to serve, which then stays
//	/readiness  /healthz/ready     200 while new work should be sent here, else 503
//	/liveness   /healthz/live      200 always, whatever the store does: a restart does not mend a store
//	/metrics                       Prometheus
//	/config                        the settings in force
//	/drain                         POST: no new receives; answers {"held":n} when nothing is held or after ?timeout=
//	/debug/pprof                   profiles
func New(config Config) http.Handler {
	p := &pages{config}
	mux := http.NewServeMux()
	for path, page := range map[string]http.HandlerFunc{
		"/startup": p.startup, "/healthz/startup": p.startup,
		"/readiness": p.ready, "/healthz/ready": p.ready,
		"/liveness": p.live, "/healthz/live": p.live,
		"/config": p.settings,
	} {
		mux.HandleFunc("GET "+path, page)
	}
	mux.HandleFunc("POST /drain", p.drain)
	mux.Handle("GET /metrics", promhttp.HandlerFor(config.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.NewCrossOriginProtection().Handler(mux) // no web page may drain this sidecar through a browser on its machine
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
			writeJSON(w, http.StatusBadRequest, map[string]string{"message": `timeout must be a duration such as "10s"`})
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	writeJSON(w, http.StatusOK, map[string]int{"held": p.Drain(ctx)})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // nothing can be done for a reader that is gone
}
