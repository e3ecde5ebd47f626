package dapr

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/test/apptest"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// Over a real Redis the app gets messages of all sizes through Dapr's runtime and answers in all ways; at whatever
// moment the sidecar stops, nothing is lost, nothing comes twice that may not, and what is locked was handed out.
func TestDAPR_6_AnswersAndStopsOnRedis(t *testing.T) {
	t.Parallel()
	apptest.Run(t, apptest.Wire{
		Verbs: []apptest.Verb{apptest.Complete, apptest.Complete, apptest.Abandon, apptest.DeadLetter},
		Start: startOnRedis,
	})
}

func startOnRedis(t *testing.T, broker *broker.Broker, queue string, atATime int, app *apptest.App) (stop func()) {
	t.Helper()
	r, end := beginOn(t, broker, atATime)
	a := &answering{feed: r.subscribe(queue), app: app, queue: queue}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case response := <-a.comes:
				work.Go(func() { a.answer(response) })
			case <-a.ended: //nolint:errcheck // with what may be left in the feed
				return
			}
		}
	})
	return func() {
		end()
		app.LetGo()
		_ = r.conn.Close() // else a call waits for a sidecar that never comes
		work.Wait()
	}
}

// beginOn runs a component on a Broker that has the queue.
func beginOn(t *testing.T, broker *broker.Broker, atATime int) (r *fakeRuntime, end func()) {
	t.Helper()
	b := &bed{Broker: broker, t: t, log: &syncbuf.Buffer{}}
	b.config = Config{Socket: filepath.Join(folder(t), "sidebus.sock"), MaxMessage: 16 << 20}
	b.build()
	end = b.serve()
	return b.begin("entityKind", "queue", "disableEntityManagement", "true", "redeliverInterval", "1ms",
		"maxConcurrentHandlers", fmt.Sprint(atATime), "maxConcurrentSessions", fmt.Sprint(atATime)), end
}

// answering is Dapr's runtime with an app behind it.
type answering struct {
	*feed

	app   *apptest.App
	queue string
	mu    sync.Mutex // of the stream
}

// answer answers a message as the app says. That the sidecar stops meanwhile is not the app's fault.
func (a *answering) answer(response *proto.PullMessagesResponse) {
	request := &proto.PullMessagesRequest{AckMessageId: response.GetId()}
	switch a.app.Take(response.GetMetadata()["metadata.MessageId"], response.GetData()) {
	case apptest.None:
		return
	case apptest.Abandon:
		request.AckError = &proto.AckMessageError{Message: "no luck"}
	case apptest.DeadLetter:
		_, err := a.Publish(a.ctx, &proto.PublishRequest{Topic: a.queue + "/$DeadLetterQueue", Metadata: response.GetMetadata()})
		if err != nil {
			request.AckError = &proto.AckMessageError{Message: err.Error()} // as the runtime does
		}
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.stream.Send(request)
}

// A sidecar or its Redis fails in the turn that completes a message of a session and takes the next one.
func TestSESS_25_FailuresInTurnsOfDapr(t *testing.T) {
	t.Parallel()
	apptest.FailInTurns(t, func(t *testing.T, on semantics.Store, queue string, take func(string, int) bool) (stop func()) {
		t.Helper()
		b := broker.New(on)
		r, end := beginOn(t, b, 1)
		f := r.subscribe(queue)
		var work sync.WaitGroup
		work.Go(func() {
			for {
				select {
				case response := <-f.comes:
					count, err := strconv.Atoi(response.GetMetadata()["metadata.DeliveryCount"])
					if err != nil {
						t.Error(err)
					}
					if take(string(response.GetData()), count) {
						_ = f.stream.Send(&proto.PullMessagesRequest{AckMessageId: response.GetId()})
					}
				case <-f.ended: //nolint:errcheck // it stops
					return
				}
			}
		})
		return func() {
			end()
			_ = r.conn.Close()
			work.Wait()
			b.Close()
		}
	})
}
