package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// The phases of a stop share one budget, Config.DrainTimeout:
//
//	wait for settlements      the budget less the shutdown time
//	release locked messages   at most half of the shutdown time
//	stop servers and calls    until 3/4 of the shutdown time have elapsed; then connections are closed
//	close the store           the rest, for the caller of Run
//
// Time that a phase does not need is left to the next ones. The shutdown time is at most maxShutdown.
const (
	maxShutdown = 5 * time.Second
	minShutdown = 3 * time.Second // even if the budget is smaller
)

// StopTime returns the longest time that a stop takes, including the time for the caller of Run to close the store.
func StopTime(budget time.Duration) time.Duration { return max(budget, minShutdown) }

// splitBudget divides the budget of a stop.
func splitBudget(budget time.Duration) (settling, shutdown time.Duration) {
	shutdown = min(max(budget/2, minShutdown), maxShutdown)
	return max(budget-shutdown, 0), shutdown
}

func (p *Proxy) stop(ctx context.Context, endPushes func(), work *sync.WaitGroup) {
	began := time.Now()
	settling, shutdown := splitBudget(p.config.DrainTimeout)
	p.broker.BeginDrain()
	p.logger.InfoContext(
		ctx, "draining", "held", p.broker.Held(), "timeout", settling, "budget", StopTime(p.config.DrainTimeout),
	)
	wait, cancel := context.WithTimeout(ctx, settling)
	held := p.Drain(wait)
	cancel()
	end := time.Now().Add(shutdown)
	if held > 0 {
		p.releaseHeld(ctx, held, end.Add(-shutdown/2))
	}
	close(p.stopping)
	endPushes()
	p.logger.InfoContext(ctx, "stopping servers", "after", time.Since(began))
	ctx, cancel = context.WithDeadline(ctx, end.Add(-shutdown/4))
	defer cancel()
	p.stopServers(ctx, work)
	p.logger.InfoContext(ctx, "servers stopped", "after", time.Since(began))
}

func (p *Proxy) releaseHeld(ctx context.Context, held int, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := p.broker.ReleaseHeld(ctx)
	p.logger.WarnContext(ctx, "released messages that were not settled in time", "held", held, slog.Any("error", err))
}

// gracefulShare is the share of the time for servers after which connections are closed. The rest is for their calls to
// notice.
const gracefulShare = 3.0 / 4

// stopServers waits for calls to end, closes the connections that remain, and waits for all servers, the admin server
// last. It returns when ctx ends even if calls are still running: the process is about to exit.
func (p *Proxy) stopServers(ctx context.Context, work *sync.WaitGroup) {
	deadline, _ := ctx.Deadline()
	graceful, cancel := context.WithTimeout(ctx, time.Duration(float64(time.Until(deadline))*gracefulShare))
	defer cancel()
	if p.port != nil {
		p.port.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var servers sync.WaitGroup
		servers.Go(func() { stopHTTP(graceful, p.http) })
		servers.Go(func() { p.dapr.Stop(graceful) })
		servers.Go(func() { p.amqp.Stop(graceful) })
		servers.Go(func() {
			cut := context.AfterFunc(graceful, p.grpc.Stop)
			defer cut()
			p.admission.CloseUnused()
			p.grpc.GracefulStop()
		})
		servers.Wait()
		p.responses.Wait()
		stopHTTP(graceful, p.admin)
		stopHTTP(graceful, p.probes)
		work.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		p.logger.WarnContext(
			ctx, "some calls did not end in time; messages they have locked become available when the locks expire",
		)
	}
}

// stopHTTP lets running requests end, and closes their connections when ctx ends.
func stopHTTP(ctx context.Context, server *http.Server) {
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close() // the listeners are closed already
	}
}
