package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"

	"github.com/sidebus/sidebus/proxy/amqp"
	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/internal/oneport"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
)

// The listeners of a Proxy.
const (
	httpListener = iota
	grpcListener
	adminListener
	probeListener // nil without Config.ProbeAddr
	listenerCount
)

// Run opens all listeners, serves at once, and checks the store until it is ready. When ctx ends it stops in this
// order, so that no message is lost: readiness fails and new receives are refused; settlements, sends and pushes
// continue until nothing is locked or the drain timeout has elapsed; remaining locks are released uncounted; the
// servers stop, the admin server last. The stop takes StopTime at most, and Run then returns nil.
//
// Run returns an error, after the same stop, if a listener cannot be opened, if the store needs a repair before it can
// be used (PRECONDITION_FAILED, only while starting), or if a server fails. It must be called once.
func (p *Proxy) Run(ctx context.Context) error {
	defer p.certificates.close()
	defer p.amqpCertificates.close()
	listeners, err := p.open(context.WithoutCancel(ctx)) // an early stop must still run in order
	if err != nil {
		p.grpc.Stop() // ends its goroutines
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	run := running{fail: fail}
	run.serve("HTTP server", func() error { return p.http.Serve(listeners[httpListener]) })
	run.serve("gRPC server", func() error { return p.grpc.Serve(listeners[grpcListener]) })
	run.serve("admin server", func() error { return p.admin.Serve(listeners[adminListener]) })
	run.serve("Dapr component", func() error { return p.dapr.Serve(ctx) })
	if listener := listeners[probeListener]; listener != nil {
		run.serve("probe server", func() error { return p.probes.Serve(listener) })
	}
	if p.port != nil {
		run.serve("AMQP addresses", func() error { return p.port.Serve(context.WithoutCancel(ctx)) })
		run.serve("AMQP server", func() error { return p.amqp.Serve(ctx, p.port.AMQP()) })
		overPort := p.admission.HTTP(compat.NewListener(p.port.HTTP()))
		run.serve("HTTP server of AMQP addresses", func() error { return p.http.Serve(overPort) })
	}
	run.serve("store", func() error {
		select {
		case <-p.dapr.Published(): // daprd looks for sockets once, as soon as this sidecar is ready
		case <-ctx.Done():
			return nil
		}
		return watchStore(ctx, p.readiness)
	})

	if p.console != nil {
		run.work.Go(func() { p.console.Run(ctx) })
	}
	pushing, endPushes := context.WithCancel(context.WithoutCancel(ctx))
	defer endPushes()
	run.work.Go(func() {
		select {
		case <-p.Started():
			p.push.Run(pushing)
		case <-pushing.Done():
		}
	})

	<-ctx.Done()
	p.stop(context.WithoutCancel(ctx), endPushes, &run.work)
	return failureOf(ctx)
}

// running are the servers of a Run.
type running struct {
	work sync.WaitGroup
	fail context.CancelCauseFunc // ends the context of the Run
}

// serve runs f, which serves until it is stopped. If it fails, the Run ends.
func (r *running) serve(what string, f func() error) {
	r.work.Go(func() {
		err := f()
		isStop := errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) ||
			errors.Is(err, amqp.ErrStopped) || errors.Is(err, oneport.ErrClosed) ||
			errors.Is(err, net.ErrClosed) // the listeners of a port, which has its own error if it failed
		if err != nil && !isStop {
			r.fail(&serveError{fmt.Errorf("%s: %w", what, err)})
		}
	})
}

// watchStore waits until the store is ready, and watches it until ctx ends.
func watchStore(ctx context.Context, readiness *readiness.Readiness) error {
	if err := readiness.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	readiness.Watch(ctx)
	return nil
}

// serveError marks an error of Run itself, to distinguish it from the end of the caller's context.
type serveError struct{ error }

// failureOf returns the error of the server that ended the context of a Run, nil if none did.
func failureOf(ctx context.Context) error {
	var failed *serveError
	if errors.As(context.Cause(ctx), &failed) {
		return failed.error
	}
	return nil
}

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
		if i == adminListener || i == probeListener {
			opened[i] = &newest{Listener: opened[i], most: maxPageConnections}
		}
		opened[i] = p.certificates.listen(opened[i], i)
	}
	if err := p.openPort(ctx); err != nil {
		return opened, errors.Join(err, closeAll(opened[:]))
	}
	if err := p.dapr.Open(ctx); err != nil {
		if p.port != nil {
			p.port.Close()
		}
		return opened, errors.Join(err, closeAll(opened[:]))
	}
	opened[httpListener] = p.admission.HTTP(compat.NewListener(opened[httpListener]))
	opened[grpcListener] = p.admission.GRPC(opened[grpcListener])
	close(p.opened)
	return opened, nil
}

// closeAll closes all listeners that are not nil.
func closeAll(listeners []net.Listener) (err error) {
	for _, listener := range listeners {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
	}
	return err
}
