package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// shared carries messages through one queue by several sidecars. Each sends an equal part and receives what it gets,
// until all have come.
func shared(ctx context.Context, all []*sidecar, queue string, messages int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	part := messages / len(all)
	var left atomic.Int64
	left.Store(int64(part * len(all)))
	complete := make(chan struct{})
	count := func(n int) {
		if left.Add(-int64(n)) == 0 {
			close(complete)
		}
	}
	ended := make(chan error, len(all))
	for _, s := range all {
		go func() {
			err := s.takePart(ctx, queue, part, count, complete)
			if err != nil {
				cancel()
			}
			ended <- err
		}()
	}
	var failed error
	for range all {
		failed = cmp.Or(failed, <-ended)
	}
	return failed
}

// takePart sends a part of the messages, and receives and completes what comes until all of them have come.
func (s *sidecar) takePart(
	ctx context.Context, queue string, part int, count func(int), complete <-chan struct{},
) error {
	subscription, err := subscribe(ctx, s.messages, queue)
	if err != nil {
		return err
	}
	published := make(chan error, 1)
	go func() { published <- publish(ctx, s.messages, queue, part, 0) }()
	var sending sync.Mutex // the end comes from another goroutine than the settlements
	go func() {
		select {
		case <-complete:
			sending.Lock()
			defer sending.Unlock()
			_ = subscription.CloseSend()
		case <-ctx.Done():
		}
	}()
	for {
		answer, err := subscription.Recv()
		if errors.Is(err, io.EOF) {
			return <-published
		}
		if err != nil {
			return err
		}
		tokens := tokensOf(answer)
		if len(tokens) == 0 {
			continue
		}
		sending.Lock()
		err = subscription.Send(completion(tokens))
		sending.Unlock()
		if err != nil {
			return err
		}
		count(len(tokens))
	}
}
