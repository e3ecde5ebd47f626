package dapr

import (
	"context"
	"sync"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/tap"
)

// opening is a stream of messages that has begun and whose subscription may not stand yet. Dapr's runtime goes on as
// soon as it has asked for it, so what its app publishes next would find no subscription to go to: a publish waits for
// those that began before it on its connection.
type opening struct {
	done chan struct{} // closed when the first attempt to subscribe has ended, whatever became of it
	end  func()
}

// openings are those of one connection.
type openings struct {
	mu  sync.Mutex
	all map[*opening]bool
}

func (os *openings) begin(ctx context.Context) *opening {
	o := &opening{done: make(chan struct{})}
	o.end = sync.OnceFunc(func() {
		os.mu.Lock()
		defer os.mu.Unlock()
		delete(os.all, o)
		close(o.done)
	})
	os.mu.Lock()
	if os.all == nil {
		os.all = map[*opening]bool{}
	}
	os.all[o] = true
	os.mu.Unlock()
	context.AfterFunc(ctx, o.end) // the stream may end before anything else
	return o
}

// await waits for those that have begun. It ends with ctx too.
func (os *openings) await(ctx context.Context) {
	for {
		os.mu.Lock()
		var one *opening
		for one = range os.all { //nolint:revive // any of them
			break
		}
		os.mu.Unlock()
		if one == nil {
			return
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return
		}
	}
}

type openingKey struct{}

// noteOpening sees each call in the order in which they came on a connection, before it runs.
func trackOpening(ctx context.Context, call *tap.Info) (context.Context, error) {
	conn := connOf(ctx)
	if conn == nil || call.FullMethodName != proto.PubSub_PullMessages_FullMethodName {
		return ctx, nil
	}
	return context.WithValue(ctx, openingKey{}, conn.openings.begin(ctx)), nil
}

// opened ends the opening of a stream.
func finishOpening(ctx context.Context) {
	if o, ok := ctx.Value(openingKey{}).(*opening); ok {
		o.end()
	}
}
