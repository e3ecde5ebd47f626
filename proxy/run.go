package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"

	"github.com/sidebus/sidebus/proxy/compat"
)

// The listeners of a Proxy.
const (
	httpListener = iota
	grpcListener
	adminListener
	probeListener // nil without Config.ProbeAddr
	listenerCount
)

// Run opens all listeners and serves at once, looks at the store until it is fit, and goes on until ctx ends. Then it
// stops in this order, so that nothing in hand is lost: readiness fails and no new receives are taken; settlements and
// sends are served, and calls of the app go on, until nothing is held or the time for that is over; what is still held
// is given back uncounted; the servers stop, the admin one last. All that takes StopTime at most. It returns nil after
// such a stop.
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
				fail(&serveError{fmt.Errorf("%s: %w", what, err)})
			}
		})
	}
	serve("the HTTP server", func() error { return p.http.Serve(listeners[httpListener]) })
	serve("the gRPC server", func() error { return p.grpc.Serve(listeners[grpcListener]) })
	serve("the admin server", func() error { return p.admin.Serve(listeners[adminListener]) })
	serve("the Dapr component", func() error { return p.dapr.Serve(ctx) })
	if listener := listeners[probeListener]; listener != nil {
		serve("the probe server", func() error { return p.probes.Serve(listener) })
	}
	serve("the store", func() error {
		select {
		case <-p.dapr.Published(): // daprd looks for sockets once, when this sidecar has started
		case <-ctx.Done():
			return nil
		}
		if err := p.readiness.Start(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		p.readiness.Watch(ctx)
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
	p.stop(context.WithoutCancel(ctx), endPushes, &work)
	var failed *serveError
	if errors.As(context.Cause(ctx), &failed) {
		return failed.error
	}
	return nil
}

// failure tells the end that Run came to by itself from the end of the caller's context.
type serveError struct{ error }

func (p *Proxy) open(ctx context.Context) (opened [listenerCount]net.Listener, err error) {
	addresses := [listenerCount]struct{ name, addr string }{
		httpListener:  {"--http-addr", p.config.HTTPAddr},
		grpcListener:  {"--grpc-addr", p.config.GRPCAddr},
		adminListener: {"--admin-addr", p.config.AdminAddr},
		probeListener: {"--probe-addr", p.config.ProbeAddr},
	}
	for i, a := range addresses {
		if a.addr == "" {
			continue
		}
		if opened[i], err = listen(ctx, a.name, a.addr, p.config.SocketMode); err != nil {
			return opened, errors.Join(err, closeAll(opened[:i]))
		}
		p.bound[i] = opened[i].Addr()
	}
	if err := p.dapr.Open(ctx); err != nil {
		return opened, errors.Join(err, closeAll(opened[:]))
	}
	opened[httpListener] = p.admission.HTTP(compat.NewListener(opened[httpListener]))
	opened[grpcListener] = p.admission.GRPC(opened[grpcListener])
	close(p.opened)
	return opened, nil
}

// closeAll closes the listeners that are open.
func closeAll(listeners []net.Listener) (err error) {
	for _, listener := range listeners {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
	}
	return err
}
