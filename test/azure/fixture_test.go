package azure

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) { sidecartest.Main(m) }

// start starts a sidecar on Redis that serves AMQP.
func start(t *testing.T, more ...string) *sidecartest.Sidecar {
	t.Helper()
	url := redistest.URL(t)
	return sidecartest.Start(t, append([]string{
		"--store", url, "--namespace", redistest.NamespaceUntil(t, url), "--amqp-addr", "127.0.0.1:0",
	}, more...)...)
}

// connectionString is what a program changes to use Sidebus.
func connectionString(s *sidecartest.Sidecar) string {
	return "Endpoint=sb://" + s.AMQP + ";SharedAccessKeyName=app;SharedAccessKey=secret;UseDevelopmentEmulator=true"
}

// connect returns a client, which the test closes.
func connect(t *testing.T, connection string) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(connection, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// patient returns a context that ends a test that hangs.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// briefly returns a context for a receive that is to find nothing.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func pointer[T any](v T) *T { return &v }

var names atomic.Int64

// queue creates a queue of its own for a test.
func queue(t *testing.T, s *sidecartest.Sidecar, options string) string {
	t.Helper()
	name := fmt.Sprintf("orders/q-%d", names.Add(1))
	s.Must(t, "PUT", "/v1/queues/"+escape(name), options)
	return name
}

// link is a sender and a receiver of a queue.
type link struct {
	*azservicebus.Client

	send    *azservicebus.Sender
	receive *azservicebus.Receiver
}

func open(t *testing.T, s *sidecartest.Sidecar, queue string, options *azservicebus.ReceiverOptions) link {
	t.Helper()
	client := connect(t, connectionString(s))
	sender, err := client.NewSender(queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := client.NewReceiverForQueue(queue, options)
	if err != nil {
		t.Fatal(err)
	}
	return link{client, sender, receiver}
}

// put sends messages with these bodies.
func (l link) put(t *testing.T, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := l.send.SendMessage(patient(t), &azservicebus.Message{Body: []byte(body)}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// get receives exactly n messages.
func get(t *testing.T, receiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}, n int,
) []*azservicebus.ReceivedMessage {
	t.Helper()
	var all []*azservicebus.ReceivedMessage
	for len(all) < n {
		messages, err := receiver.ReceiveMessages(patient(t), n-len(all), nil)
		if err != nil {
			t.Fatalf("after %d messages: %v", len(all), err)
		}
		all = append(all, messages...)
	}
	return all
}

// one receives one message.
func (l link) one(t *testing.T) *azservicebus.ReceivedMessage {
	t.Helper()
	return get(t, l.receive, 1)[0]
}

// must fails the test if a call failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
