// Package loop has what the goroutines of streams and requests share: wake-ups, pauses after failures, and calls side
// by side.
package loop

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Pauses after failures that pass, each twice the last.
const (
	FirstPause = 100 * time.Millisecond
	LastPause  = 5 * time.Second
)

// Poke wakes the one goroutine that reads c, which has a buffer of one, now or as soon as it looks.
func Poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// mostSideBySide is how many calls Each makes at a time.
const mostSideBySide = 32

// Each does something for each item, for some at the same time, and waits for all. A panic of one is that of the
// caller.
func Each[T any](items []T, do func(T)) {
	if len(items) == 1 {
		do(items[0])
		return
	}
	var work sync.WaitGroup
	var panicked atomic.Pointer[string]
	places := make(chan struct{}, mostSideBySide)
	for _, item := range items {
		places <- struct{}{}
		work.Go(func() {
			defer func() {
				if value := recover(); value != nil {
					text := fmt.Sprintf("%v\n%s", value, debug.Stack())
					panicked.Store(&text)
				}
				<-places
			}()
			do(item)
		})
	}
	work.Wait()
	if text := panicked.Load(); text != nil {
		panic(*text)
	}
}
