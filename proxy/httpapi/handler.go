// Package httpapi serves sidebus.v1 as JSON over HTTP: the routes of proto/http.yaml through grpc-gateway, on the same
// objects that serve gRPC, and /openapi.json. It contains only what is specific to JSON over HTTP.
package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	protofiles "github.com/sidebus/sidebus/proto"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

// MaxBody is the maximum size of a request body in bytes. The largest message of HTTP, 1 MiB (MSG-21), fits with any
// JSON escaping.
const MaxBody = 8 << 20

// Handler handles HTTP requests. It is safe for concurrent use.
type Handler struct {
	mux        *runtime.ServeMux
	responses  *response.Tracker
	calls      *obs.Calls
	authorizer access.Authorizer
}

// New returns a Handler over the services. The authorizer authorizes every call, except of the description of the API.
// messages must have the size limit of HTTP (MSG-21).
func New(messages sidebusv1.MessagesServer, sessions sidebusv1.SessionsServer,
	transactions sidebusv1.TransactionsServer, admin sidebusv1.AdminServer, responses *response.Tracker,
	calls *obs.Calls, authorizer access.Authorizer,
) (*Handler, error) {
	h := &Handler{responses: responses, calls: calls, authorizer: authorizer}
	h.mux = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, codec{}),
		// A name is one path segment and is unescaped as a whole. Only this mode keeps an escaped "/" in its segment.
		runtime.WithUnescapingMode(runtime.UnescapingModeAllExceptReserved),
		runtime.WithErrorHandler(h.writeFailure),
		runtime.WithRoutingErrorHandler(h.writeRoutingFailure),
		runtime.WithForwardResponseOption(rememberMethod),
		runtime.WithMiddlewares(stopProbes),
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithWriteContentLength(), // so that the response is complete when it is flushed
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
	)
	conn := local{}
	conn.add(sidebusv1.Messages_ServiceDesc, messages)
	conn.add(sidebusv1.Sessions_ServiceDesc, sessions)
	conn.add(sidebusv1.Transactions_ServiceDesc, transactions)
	conn.add(sidebusv1.Admin_ServiceDesc, admin)
	unused := context.TODO() // only a gateway that dials needs it
	if err := sidebusv1.RegisterMessagesHandlerClient(unused, h.mux, sidebusv1.NewMessagesClient(conn)); err != nil {
		return nil, err
	}
	if err := sidebusv1.RegisterSessionsHandlerClient(unused, h.mux, sidebusv1.NewSessionsClient(conn)); err != nil {
		return nil, err
	}
	if err := sidebusv1.RegisterTransactionsHandlerClient(
		unused, h.mux, sidebusv1.NewTransactionsClient(conn),
	); err != nil {
		return nil, err
	}
	return h, sidebusv1.RegisterAdminHandlerClient(unused, h.mux, sidebusv1.NewAdminClient(conn))
}

// exchange is the state of one request that the gateway does not have.
type exchange struct {
	keys     []string         // of the header with a request id
	method   string           // full gRPC name; empty before a route was found
	refused  *semantics.Error // why the body was refused
	failure  *semantics.Error // the error response; nil for success
	inAnswer *semantics.Error // a failure in the answer of a call that succeeded
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// ServeHTTP handles one request. The messages or session of a call are confirmed if the response was flushed to the
// socket, and released otherwise (RECV-7). A client that disconnects before the response is detected by the handlers,
// through the context. Checking the context again after the flush would release messages that the client has read
// before it closed the connection.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := &exchange{keys: r.Header.Values(keyHeader)}
	ctx, resp := h.responses.Begin(context.WithValue(r.Context(), exchangeKey{}, x))
	ctx = h.calls.Traces().FromHTTP(ctx, r.Header)
	r = r.WithContext(ctx)
	if r.Method == http.MethodHead { // handled as GET; the server omits the body
		r.Method = http.MethodGet
	}
	h.serve(w, r, x)
	err := http.NewResponseController(w).Flush()
	resp.Finish(ctx, err == nil && x.failure == nil)
	h.calls.Done(ctx, obs.HTTP, obs.Method(x.method), start, cmp.Or(x.failure, x.inAnswer))
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, x *exchange) {
	defer func() {
		if recovered := recover(); recovered != nil {
			writeError(w, x, h.calls.Recovered(r.Context(), obs.Method(x.method), recovered))
		}
	}()
	if refused := admission.RefusalOfRequest(r); refused != nil {
		writeError(w, x, refused)
		return
	}
	if r.URL.Path == "/openapi.json" {
		serveOpenAPI(w, r, x)
		return
	}
	obs.About(r.Context(), r.URL.Path) // until it is known what it is about
	ctx, denied := admission.Authenticate(r.Context(), h.authorizer, r.Header.Values("Authorization"))
	if denied != nil {
		writeError(w, x, wireerror.Of(denied))
		return
	}
	r = r.WithContext(ctx)
	query, err := checkQuery(r)
	if err != nil {
		writeError(w, x, err)
		return
	}
	data, err := admission.ReadBody(w, r, "body", MaxBody)
	if err != nil {
		writeError(w, x, err)
		return
	}
	if r.Method == http.MethodPatch && !query.Has("updateMask") && !query.Has("update_mask") {
		if keys := wirejson.MemberNames(data); len(keys) > 0 {
			query.Set("updateMask", strings.Join(keys, ","))
		}
	}
	r.URL = &url.URL{
		Path: r.URL.Path, RawQuery: query.Encode(),
		RawPath: r.URL.EscapedPath(), // without it, the gateway unescapes some paths twice
	}
	r.Body = newBody(data, x)
	r.Header.Del("Te") // trailers would delay the end of the response
	h.mux.ServeHTTP(w, r)
}

func serveOpenAPI(w http.ResponseWriter, r *http.Request, x *exchange) {
	if r.Method != http.MethodGet {
		writeWrongMethod(w, x, r.Method, []string{http.MethodGet, http.MethodHead})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(protofiles.OpenAPI)))
	_, _ = w.Write(protofiles.OpenAPI) // if it fails, the client is gone
}

func rememberMethod(ctx context.Context, _ http.ResponseWriter, _ proto.Message) error {
	exchangeOf(ctx).method, _ = runtime.RPCMethod(ctx)
	return nil
}
