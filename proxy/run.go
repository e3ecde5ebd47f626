package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// The listeners of a Proxy.
const (
	httpListener = iota
	grpcListener
	adminListener
	listenerCount
)

// Bounds of the last steps of a stop, when nobody is meant to be waiting any more.
const (
	releaseTimeout = 5 * time.Second
	closeTimeout   = 5 * time.Second
)

// Run opens all listeners and serves at once, looks at the store until it is fit, and goes on until ctx ends. Then it
// stops in this order, so that nothing in hand is lost: readiness fails and no new receives are taken; settlements and
// sends are served, and calls of the app go on, until nothing is held or DrainTimeout is over; what is still held is given back
// uncounted; the servers stop, the admin one last. It returns nil after such a stop.
//
// It returns an error, after the same stop, when a listener cannot be opened, when the store is unfit in a way that
// somebody must mend (PRECONDITION_FAILED, only while starting), or when a server fails. It must be called once.
func (p *Proxy) Run(ctx context.Context) error {
	listeners, err := p.open(context.WithoutCancel(ctx)) // a stop that came early is served in order
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	var work sync.WaitGroup
	serve := func(what string, f func() error) {
		work.Go(func() {
			err := f()
			isStop := errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped)
			if err != nil && !isStop {
				fail(&failure{fmt.Errorf("%s: %w", what, err)})
			}
		})
	}
	serve("the HTTP server", func() error { return p.http.Serve(listeners[httpListener]) })
	serve("the gRPC server", func() error { return p.grpc.Serve(listeners[grpcListener]) })
	serve("the admin server", func() error { return p.admin.Serve(listeners[adminListener]) })
	serve("the Dapr component", func() error { return p.dapr.Serve(ctx) })
	serve("the store", func() error {
		select {
		case <-p.dapr.Published(): // daprd looks for sockets once, when this sidecar has started
		case <-ctx.Done():
			return nil
		}
		if err := p.readiness.Start(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})

	pushing, endPushes := context.WithCancel(context.WithoutCancel(ctx))
	defer endPushes()
	work.Go(func() {
		select {
		case <-p.Started():
			p.push.Run(pushing)
		case <-pushing.Done():
		}
	})

	<-ctx.Done()
	p.stop(context.WithoutCancel(ctx), endPushes)
	work.Wait()
	var failed *failure
	if errors.As(context.Cause(ctx), &failed) {
		return failed.error
	}
	return nil
}

// failure tells the end that Run came to by itself from the end of the caller's context.
type failure struct{ error }

func (p *Proxy) open(ctx context.Context) (opened [listenerCount]net.Listener, err error) {
	addresses := [listenerCount]struct{ name, addr string }{
		httpListener:  {"the HTTP address", p.config.HTTPAddr},
		grpcListener:  {"the gRPC address", p.config.GRPCAddr},
		adminListener: {"the admin address", p.config.AdminAddr},
	}
	for i, a := range addresses {
		if opened[i], err = listen(ctx, a.name, a.addr); err != nil {
			for _, earlier := range opened[:i] {
				err = errors.Join(err, earlier.Close())
			}
			return opened, err
		}
		p.bound[i] = opened[i].Addr()
	}
	if err := p.dapr.Open(ctx); err != nil {
		for _, listener := range opened {
			err = errors.Join(err, listener.Close())
		}
		return opened, err
	}
	opened[httpListener] = p.conns.limited(compat.NewListener(opened[httpListener]), obs.HTTP, true)
	opened[grpcListener] = p.conns.limited(opened[grpcListener], obs.GRPC, false)
	close(p.opened)
	return opened, nil
}

func (p *Proxy) stop(ctx context.Context, endPushes func()) {
	p.broker.BeginDrain()
	p.logger.InfoContext(ctx, "draining", "held", p.broker.Held(), "timeout", p.config.DrainTimeout)
	wait, cancel := context.WithTimeout(ctx, p.config.DrainTimeout)
	held := p.Drain(wait)
	cancel()
	if held > 0 {
		release, cancel := context.WithTimeout(ctx, releaseTimeout)
		err := p.broker.ReleaseHeld(release)
		cancel()
		p.logger.WarnContext(ctx, "gave back messages that were not settled in time", "held", held, slog.Any("error", err))
	}
	close(p.stopping)
	endPushes()

	var work sync.WaitGroup
	work.Go(func() { p.stopHTTP(ctx, p.http) })
	work.Go(func() { p.dapr.Stop(ctx) })
	work.Go(func() {
		cut := time.AfterFunc(closeTimeout, p.grpc.Stop)
		defer cut.Stop()
		p.grpc.GracefulStop()
	})
	work.Wait()
	p.desk.Wait()
	p.stopHTTP(ctx, p.admin)
}

// stopHTTP lets running requests end, and cuts them off when they take too long.
func (p *Proxy) stopHTTP(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close() // it reports the listeners that Shutdown has closed already
	}
}
