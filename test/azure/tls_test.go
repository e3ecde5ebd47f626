package azure

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// roundTrip sends and receives over a client.
func roundTrip(t *testing.T, s *sidecartest.Sidecar, client *azservicebus.Client) {
	t.Helper()
	name := queue(t, s, `{}`)
	sender, err := client.NewSender(name, nil)
	must(t, err)
	receiver, err := client.NewReceiverForQueue(name, nil)
	must(t, err)
	l := link{client, sender, receiver}
	body := strings.Repeat("x", 200_000) // several frames
	l.put(t, body)
	m := l.one(t)
	if string(m.Body) != body {
		t.Errorf("got %d bytes", len(m.Body))
	}
	must(t, receiver.CompleteMessage(patient(t), m, nil))
	must(t, client.Close(patient(t)))
}

func TestOverTLS(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	// the port of the endpoint would be part of the name that the certificate must have
	client, err := azservicebus.NewClientFromConnectionString(
		"Endpoint=sb://localhost;SharedAccessKeyName=app;SharedAccessKey=secret",
		&azservicebus.ClientOptions{TLSConfig: s.trust(t), CustomEndpoint: s.AMQP},
	)
	must(t, err)
	roundTrip(t, s.Sidecar, client)
	roundTrip(t, s.Sidecar, connect(t, connectionString(s.Sidecar))) // and without TLS at the same address
}

func TestOverWebSockets(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	transport := &http.Transport{TLSClientConfig: s.trust(t)}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := azservicebus.NewClientFromConnectionString(s.connectionString("localhost"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			socket, response, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{
				Subprotocols: []string{"amqp"}, HTTPClient: &http.Client{Transport: transport},
			})
			if err != nil {
				return nil, err
			}
			if response.Body != nil {
				_ = response.Body.Close()
			}
			return websocket.NetConn(context.WithoutCancel(t.Context()), socket, websocket.MessageBinary), nil
		},
	})
	must(t, err)
	roundTrip(t, s.Sidecar, client)
}

// TestJavaScriptOverTLS runs a program over TLS, and over WebSockets within TLS, at one address.
func TestJavaScriptOverTLS(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	s.Must(t, "PUT", "/v1/queues/js", `{}`)
	for _, way := range []string{"tls", "websocket"} {
		command := exec.CommandContext(patient(t), "node", "js/secure.js", s.connectionString("localhost"), way)
		command.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+s.authority)
		if out, err := command.CombinedOutput(); err != nil || string(out) != "all checked\n" {
			t.Fatalf("%s: %v\n%s", way, err, out)
		}
	}
}
