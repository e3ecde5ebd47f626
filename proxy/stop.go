package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// A stop has one budget, Config.DrainTimeout, which all its phases share:
//
//	wait for settlements       from the start, for the budget less the ending
//	give back what is held     at most half of the ending
//	end servers and calls      until three quarters of the ending are over; then clients are cut off
//	close the store            what is left, for the caller of Run
//
// A phase that needs less leaves the rest to those behind it, but the ending is never longer than mostEnding.
const (
	maxShutdown = 5 * time.Second
	minShutdown = 3 * time.Second // however small the budget is
)

// StopTime is the most that a stop takes in all, of which Run leaves a part for the store to close in.
func StopTime(budget time.Duration) time.Duration { return max(budget, minShutdown) }

// split divides the budget of a stop.
func splitBudget(budget time.Duration) (settling, ending time.Duration) {
	ending = min(max(budget/2, minShutdown), maxShutdown)
	return max(budget-ending, 0), ending
}

func (p *Proxy) stop(ctx context.Context, endPushes func(), work *sync.WaitGroup) {
	began := time.Now()
	settling, ending := splitBudget(p.config.DrainTimeout)
	p.broker.BeginDrain()
	p.logger.InfoContext(
		ctx, "draining", "held", p.broker.Held(), "timeout", settling, "budget", StopTime(p.config.DrainTimeout),
	)
	wait, cancel := context.WithTimeout(ctx, settling)
	held := p.Drain(wait)
	cancel()
	end := time.Now().Add(ending)
	if held > 0 {
		p.releaseHeld(ctx, held, end.Add(-ending/2))
	}
	close(p.stopping)
	endPushes()
	p.logger.InfoContext(ctx, "ending servers and calls", "after", time.Since(began))
	ctx, cancel = context.WithDeadline(ctx, end.Add(-ending/4))
	defer cancel()
	p.stopServers(ctx, work)
	p.logger.InfoContext(ctx, "ended servers and calls", "after", time.Since(began))
}

func (p *Proxy) releaseHeld(ctx context.Context, held int, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := p.broker.ReleaseHeld(ctx)
	p.logger.WarnContext(ctx, "gave back messages that were not settled in time", "held", held, slog.Any("error", err))
}

// cutAt is the part of the time for servers after which clients that do not end are cut off; the rest is for their
// calls to notice.
const gracefulShare = 3.0 / 4

// endServers lets calls end, then cuts off what is left, then waits for all that serves, the admin server last. When
// ctx ends it comes back, whatever still hangs: the process is about to end.
func (p *Proxy) stopServers(ctx context.Context, work *sync.WaitGroup) {
	deadline, _ := ctx.Deadline()
	calm, cancel := context.WithTimeout(ctx, time.Duration(float64(time.Until(deadline))*gracefulShare))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var servers sync.WaitGroup
		servers.Go(func() { stopHTTP(calm, p.http) })
		servers.Go(func() { p.dapr.Stop(calm) })
		servers.Go(func() {
			cut := context.AfterFunc(calm, p.grpc.Stop)
			defer cut()
			p.admission.CloseUnused()
			p.grpc.GracefulStop()
		})
		servers.Wait()
		p.responses.Wait()
		stopHTTP(calm, p.admin)
		stopHTTP(calm, p.probes)
		work.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		p.logger.WarnContext(
			ctx, "some calls did not end in time and are left; what they hold comes back when its locks end",
		)
	}
}

// stopHTTP lets running requests end, and cuts them off when ctx ends.
func stopHTTP(ctx context.Context, server *http.Server) {
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close() // it reports the listeners that Shutdown has closed already
	}
}
