package daprtest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// Outcome is what an app says of a message.
type Outcome string

// The outcomes Dapr knows.
const (
	Success Outcome = "SUCCESS"
	Retry   Outcome = "RETRY"
	Drop    Outcome = "DROP"
)

// Subscription is one subscription that an app requests of daprd.
type Subscription struct {
	Component       string // "bus" when empty
	Topic           string
	DeadLetterTopic string
	Metadata        map[string]string
	IsBulk          bool // apps over HTTP alone can
}

// App is an app that daprd calls. It hands each message to the test, which answers it.
type App struct {
	Port        int
	Unsubscribe func() // ends the subscription of a Stream

	protocol   string
	deliveries chan *Delivery
	ended      chan struct{} // closed with the test
}

// Delivery is one message in the hands of the app.
type Delivery struct {
	ID, Topic, ContentType string // of the event
	Data                   []byte
	Metadata               map[string]string // of the message, names in small letters and without "metadata."
	Batch                  int               // how many came with it

	answer chan Outcome
}

// Answer sends the app's answer to daprd.
func (d *Delivery) Answer(o Outcome) { d.answer <- o }

func newApp(t testing.TB, protocol string) *App {
	t.Helper()
	a := &App{protocol: protocol, deliveries: make(chan *Delivery), ended: make(chan struct{})}
	t.Cleanup(func() { close(a.ended) })
	return a
}

// listen opens the app's port.
func (a *App) listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.Port = listener.Addr().(*net.TCPAddr).Port
	return listener
}

// handle waits for the test's answer, and returns Retry when there is none before ctx or the test ends.
func (a *App) handle(ctx context.Context, d *Delivery) Outcome {
	d.answer = make(chan Outcome, 1)
	select {
	case a.deliveries <- d:
	case <-ctx.Done():
		return Retry
	case <-a.ended:
		return Retry
	}
	select {
	case outcome := <-d.answer:
		return outcome
	case <-ctx.Done():
	case <-a.ended:
	}
	return Retry
}

// Next waits for the next message.
func (a *App) Next(t testing.TB) *Delivery {
	t.Helper()
	d := a.Within(t, sidecartest.Patience)
	if d == nil {
		t.Fatalf("nothing came in %s", sidecartest.Patience)
	}
	return d
}

// Within waits that long for a message; nil when none comes.
func (a *App) Within(t testing.TB, wait time.Duration) *Delivery {
	t.Helper()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case d := <-a.deliveries:
		return d
	case <-timer.C:
		return nil
	}
}

// Deliveries returns the messages, for tests that wait for other things too.
func (a *App) Deliveries() <-chan *Delivery { return a.deliveries }

// Merge returns an app that has the messages of several.
func Merge(t testing.TB, apps ...*App) *App {
	t.Helper()
	merged := newApp(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for _, a := range apps {
		work.Go(func() {
			for {
				select {
				case d := <-a.deliveries:
					select {
					case merged.deliveries <- d:
					case <-ctx.Done():
						return
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	return merged
}
