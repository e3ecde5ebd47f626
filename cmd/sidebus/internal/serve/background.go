package serve

import (
	"context"
	"sync"
)

// background runs what a sidecar does beside serving: the store's sweeper and the lines about dead letters.
type background struct {
	stop context.CancelFunc
	done sync.WaitGroup
}

func startBackground(ctx context.Context, tasks ...func(context.Context)) *background {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // also while the sidecar drains
	b := &background{stop: stop}
	for _, task := range tasks {
		b.done.Go(func() { task(ctx) })
	}
	return b
}

func (b *background) end() {
	b.stop()
	b.done.Wait()
}
