// Package console serves the web console: pages in a browser that show queues, topics and subscriptions as they are
// now, and the API with which the pages act. Nothing here decides a rule: acts are calls of the API, with its checks
// and its audit.
package console

import (
	"context"
	"net/http"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Prefix is the path below which everything is served.
const Prefix = "/ui/"

// Entities is the part of the store that the console reads. Reading does not count as use of an entity.
type Entities interface {
	ListEntities(
		ctx context.Context, kind semantics.Kind, topic, after string, limit int,
	) (entities []semantics.Entity, more bool, err error)
	Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error)
}

// Broker is what the pages ask of the broker other than by the API. Its calls have the limits of the API.
type Broker interface {
	GetEntity(ctx context.Context, kind semantics.Kind, name string) (semantics.Entity, error)
	Peek(
		ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show,
	) ([]*semantics.Received, error)
	// Receiving returns how many receives of this process wait on a queue or subscription, and how many of its messages
	// and sessions the clients of this process hold.
	Receiving(path string) (waiting, held int)
	// MeasureLatency begins or ends to measure what TakeLatency returns of a queue or subscription: how long its
	// messages have waited for this process, and how long their receivers took, since the last call.
	MeasureLatency(on bool)
	TakeLatency(path string) (waits, takes broker.Latency)
}

// Config configures a Console.
type Config struct {
	Entities   Entities
	Broker     Broker
	API        http.Handler // the JSON API, for the pages
	Authorizer access.Authorizer
	Readiness  *readiness.Readiness

	// ReadOnly refuses calls of the API that change something.
	ReadOnly bool
	// Always reads the entities from the start on, not only while someone watches.
	Always bool

	Namespace, Version string
}

// Console serves the pages. Use New, then Run. It is safe for concurrent use.
type Console struct {
	http.Handler

	config   Config
	watch    *watch
	stopping chan struct{} // closed when the streams must end
	past     past
	finds    chan struct{} // has an element for each call that looks at messages
}

// New returns a Console.
//
//	/ui/              the pages
//	/ui/live          a stream of events: the entities, and what changes of them
//	/ui/explain       what a rule does with a message
//	/ui/find          messages that a filter selects
//	/ui/letters       dead letters by reason
//	/ui/resubmit      sends some of them again
//	/ui/api/v1/...    the JSON API
func New(config Config) *Console {
	c := &Console{
		config: config, watch: newWatch(config.Entities, config.Broker, config.Readiness.StoreUp, config.Always),
		stopping: make(chan struct{}), finds: make(chan struct{}, findsAtOnce),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"live", c.live)
	mux.HandleFunc("POST "+Prefix+"explain", c.explain)
	mux.HandleFunc("POST "+Prefix+"find", c.find)
	mux.HandleFunc("POST "+Prefix+"letters", c.group)
	mux.HandleFunc("POST "+Prefix+"resubmit", c.resubmit)
	mux.Handle(Prefix+"api/", http.StripPrefix(Prefix+"api", c.api()))
	mux.Handle(Prefix, http.StripPrefix(Prefix, http.HandlerFunc(servePages)))
	mux.HandleFunc("/ui", toPages)
	c.Handler = secured(mux)
	return c
}

// Run reads the entities while pages are open, until ctx ends, and then ends the streams. Call it once.
func (c *Console) Run(ctx context.Context) {
	defer close(c.stopping)
	c.watch.run(ctx)
}

// toPages redirects to the pages by a relative address, which is right below any base path of a proxy.
func toPages(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "ui/")
	w.WriteHeader(http.StatusPermanentRedirect)
}

// policy permits the browser only what is of this origin, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// secured sets the headers by which a browser protects the pages.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=()",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}
