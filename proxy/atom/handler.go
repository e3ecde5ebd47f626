// Package atom implements the management REST API of Service Bus, in Atom and XML, so that the administration clients
// of its SDKs need no change (REST-10). It only translates: what an entity is, and who may change it, others decide.
// Its Handler takes the requests of that API and passes all others on.
package atom

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Config is what a Handler needs.
type Config struct {
	Broker     *broker.Broker
	Responses  *response.Tracker
	Calls      *obs.Calls
	Authorizer access.Authorizer
	Namespace  string // of the store, which $namespaceinfo and the author of entries name

	Next http.Handler // handles all other requests
}

// Handler handles HTTP requests. It is safe for concurrent use.
type Handler struct{ Config }

// New returns a Handler.
func New(config Config) *Handler { return &Handler{Config: config} }

// exchange is one request and its response.
type exchange struct {
	*Handler
	http.ResponseWriter

	request *http.Request
	route   route
	failure *semantics.Error // the error response; nil for success
}

// ServeHTTP handles one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, isOurs := routeOf(r.URL)
	if !isOurs {
		h.Next.ServeHTTP(w, r)
		return
	}
	start, name := time.Now(), "none"
	call, isKnown := route.calls()[r.Method]
	if isKnown {
		name = "Atom." + call.name
	}
	ctx, resp := h.Responses.Begin(r.Context())
	obs.About(ctx, route.path)
	ctx = h.Calls.Traces().FromHTTP(ctx, r.Header)
	x := &exchange{Handler: h, ResponseWriter: w, request: r.WithContext(ctx), route: route}
	x.serve(call, isKnown, name)
	err := http.NewResponseController(w).Flush()
	resp.Finish(ctx, err == nil && x.failure == nil)
	h.Calls.Done(ctx, obs.Compat, name, start, x.failure)
}

func (x *exchange) serve(call call, isKnown bool, name string) {
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
		x.failure = compat.WriteWrongMethod(x, x.request.Method, x.route.calls())
		return
	}
	ctx, err := x.authorize(x.request.Context(), call)
	if err != nil {
		x.fail(refusal(err, call))
		return
	}
	status, body, err := call.run(x, ctx)
	if err != nil {
		x.fail(err)
		return
	}
	x.write(status, body)
}

// authorize checks the claims of the corresponding RPC. For what a request forwards to, see checkDestinations.
func (x *exchange) authorize(ctx context.Context, call call) (context.Context, error) {
	var credentials []string
	for _, token := range x.request.Header.Values("Authorization") {
		credentials = append(credentials, access.CredentialsOf(token))
	}
	ctx, err := admission.Authenticate(ctx, x.Authorizer, credentials)
	if err != nil {
		return ctx, err
	}
	return ctx, access.CheckPath(ctx, call.rpc, x.route.path, x.route.below)
}

func (x *exchange) write(status int, body []byte) {
	if body != nil {
		x.Header().Set("Content-Type", "application/atom+xml; charset=utf-8")
	}
	x.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	_, _ = x.Write(body) // if it fails, the client is gone
}

// maxBody is the most bytes of a request: a rule with as many properties as a message may have, and its markup.
const maxBody = 256 << 10

// read reads a PUT: the description in its body, which is in the content of an entry, and whether it changes what
// exists.
func (x *exchange) read() (description *element, isUpdate bool, err error) {
	match := strings.TrimSpace(x.request.Header.Get("If-Match"))
	if match != "" && match != "*" {
		return nil, false, semantics.InvalidField("If-Match", "must be * or absent; entities have no tags")
	}
	body, failed := admission.ReadBody(x.ResponseWriter, x.request, "entry", maxBody)
	if failed != nil {
		return nil, false, failed
	}
	root, err := parse(body)
	if err != nil {
		return nil, false, err
	}
	content := root.child("content")
	if root.name != "entry" || content == nil || len(content.children) != 1 {
		return nil, false, semantics.InvalidField("entry", "must be an entry of Atom whose content is one description")
	}
	return content.children[0], match == "*", nil
}
