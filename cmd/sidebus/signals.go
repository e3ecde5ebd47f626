package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errStopped is why the context of serve ends.
var errStopped = errors.New("told to stop by a signal")

// stopSignals returns a context that ends at the first SIGTERM or SIGINT. The second one ends the process at once
// with 128 + its number, after beforeExit; stop gives the signals back to the system.
func stopSignals(ctx context.Context, logger *slog.Logger, beforeExit func()) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	done, watching := make(chan struct{}), sync.WaitGroup{}
	watching.Go(func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case received := <-signals:
				if first {
					logger.Info("stopping; a second signal ends the process at once", "signal", received.String())
					cancel(errStopped)
					continue
				}
				logger.Warn("ended at once by a second signal; locks still held run out by themselves", "signal", received.String())
				beforeExit()
				os.Exit(exitCodeOf(received))
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		watching.Wait()
		cancel(nil)
	}
}

// exitCodeOf is what a shell reports for a process that a signal ended: 130 for SIGINT, 143 for SIGTERM.
func exitCodeOf(received os.Signal) int {
	if number, ok := received.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}

// lastWill is what must still be done before an exit at once; it becomes known after the signals are watched.
type lastWill struct {
	mu sync.Mutex
	do func()
}

func (w *lastWill) set(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.do = do
}

func (w *lastWill) carryOut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.do != nil {
		w.do()
	}
}
