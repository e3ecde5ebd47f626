package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
)

// errStopped is why the context of serve ends.
var errStopped = errors.New("told to stop by a signal or by the application")

// stopSignals returns a context that ends at the first SIGTERM or SIGINT, or when quit is closed. The second signal
// ends the process at once with 128 + its number, after beforeExit, and so does the end of the budget that the stop has
// then, whatever hangs, with cli.Failure. stop returns the signals to the system.
func stopSignals(
	ctx context.Context, logger *slog.Logger, budget time.Duration, quit <-chan struct{}, beforeExit func(),
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	done, watching := make(chan struct{}), sync.WaitGroup{}
	watching.Go(func() {
		overdue := make(<-chan time.Time) // never
		begin := func() {
			if context.Cause(ctx) == nil {
				cancel(errStopped)
				overdue = time.After(budget)
			}
		}
		for first := true; ; {
			select {
			case <-done:
				return
			case <-quit:
				quit = nil // it stays closed
				logger.Info("stopping; the application has ended")
				begin()
			case <-overdue:
				logger.Error("stopped at once: the stop exceeded its budget; remaining locks expire", "budget", budget)
				beforeExit()
				os.Exit(cli.Failure)
			case received := <-signals:
				if first {
					first = false
					logger.Info("stopping; a second signal ends the process at once", "signal", received.String())
					begin()
					continue
				}
				logger.Warn("stopped at once by a second signal; remaining locks expire", "signal", received.String())
				beforeExit()
				os.Exit(cli.CodeOf(received))
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
