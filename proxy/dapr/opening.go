package dapr

import (
	"context"
	"sync"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/tap"
)

// opening is a message stream that has started but may not have its subscription yet. The Dapr runtime continues as
// soon as it has opened the stream, so a publish could come before the subscription exists, and its message would not
// reach it. A publish waits for all openings before it on its connection.
type opening struct {
	done chan struct{} // closed when the first attempt to subscribe has ended, even if it failed
	end  func()
}

// openings are the openings of one connection.
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
	context.AfterFunc(ctx, o.end) // the stream may end first
	return o
}

// await blocks until no opening is left, or ctx ends.
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

// trackOpening is a tap handle: grpc-go calls it for each call in the order of arrival, before the handler.
func trackOpening(ctx context.Context, call *tap.Info) (context.Context, error) {
	conn := connOf(ctx)
	if conn == nil || call.FullMethodName != proto.PubSub_PullMessages_FullMethodName {
		return ctx, nil
	}
	return context.WithValue(ctx, openingKey{}, conn.openings.begin(ctx)), nil
}

// finishOpening ends the opening of a stream.
func finishOpening(ctx context.Context) {
	if o, ok := ctx.Value(openingKey{}).(*opening); ok {
		o.end()
	}
}
