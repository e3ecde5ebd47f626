package amqp

import (
	"context"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/wireerror"
)

// webSocketPath is where Service Bus serves AMQP over WebSockets. Some SDKs add a slash.
const webSocketPath = "/$servicebus/websocket"

// subprotocols are the names that SDKs have for AMQP over WebSockets.
var subprotocols = []string{"AMQPWSB10", "amqp"}

// WebSockets returns a handler that serves connections over WebSockets, and passes all other requests on. A web page of
// another origin gets none.
func (s *Server) WebSockets(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(strings.TrimSuffix(r.URL.Path, "/"), webSocketPath) {
			next.ServeHTTP(w, r)
			return
		}
		if refused := admission.Refusal(r.Context()); refused != nil {
			status, _, _ := wireerror.HTTP(refused)
			http.Error(w, refused.Message, status)
			return
		}
		peer := admission.PeerOf(r.Context())
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: subprotocols})
		if err != nil {
			return // it has answered
		}
		conn := websocket.NetConn(context.WithoutCancel(r.Context()), socket, websocket.MessageBinary)
		if run := s.admit(conn, func() access.Peer { return peer }); run != nil {
			run()
		}
	})
}
