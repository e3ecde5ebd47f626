package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/admin"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/proxy/scaler"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// ScalerConfig configures a Scaler. An address is "host:port", with port 0 for any free one, or "unix:///path".
type ScalerConfig struct {
	Addr      string // KEDA's external scaler over gRPC, with health and reflection
	ProbeAddr string // probes and metrics; empty: not served

	TLS        TLS
	Authorizer access.Authorizer // nil permits all calls

	Version, Commit string
	MetricsEntities int // with gauges; 0: none
}

// Limits of a Scaler.
const (
	maxScalerMessage     = 1 << 20
	maxScalerConnections = 1000
	maxScalerMemory      = 16 << 20
	scalerRequestTime    = 10 * time.Second

	// ScalerStopTime is the longest time that a Scaler takes to stop.
	ScalerStopTime = 3 * time.Second
)

// Scaler serves KEDA's external scaler. Use NewScaler, then Run.
type Scaler struct {
	config       ScalerConfig
	logger       *slog.Logger
	broker       *broker.Broker // for readiness and metrics
	readiness    *readiness.Readiness
	certificates *certificates // nil: no TLS
	admission    *admission.Controller
	grpc         *grpc.Server
	probes       *http.Server

	opened            chan struct{} // closed when all listeners are open
	addr, probeAddr   net.Addr      // set before opened is closed
	stopping          chan struct{}
	listener, probing net.Listener
}

// NewScaler returns a Scaler of a store, and of its broker, and registers its metrics. It opens nothing and does not
// block; Run must follow, and the caller closes broker after it. Without a sharer it reads the entities for its gauges
// itself.
func NewScaler(
	config ScalerConfig, store semantics.Store, broker *broker.Broker, checker semantics.Checker,
	sharer semantics.Sharer, logger *slog.Logger, metrics *prometheus.Registry,
) (*Scaler, error) {
	if config.Authorizer == nil {
		config.Authorizer = access.AllowAll{}
	}
	s := &Scaler{
		config: config, logger: logger, broker: broker, opened: make(chan struct{}), stopping: make(chan struct{}),
	}
	s.readiness = readiness.New(checker, s.broker, logger)
	measures, calls, err := measure(metrics, s.broker, 0, obs.Sidecar{
		Version: config.Version, Commit: config.Commit, Entities: store, Sharer: sharer,
		MaxEntities: config.MetricsEntities,
	}, s.readiness, logger)
	if err != nil {
		return nil, fmt.Errorf("scaler: %w", err)
	}
	s.admission = admission.New(admission.Config{
		MaxConnections: maxScalerConnections, MaxMemory: maxScalerMemory, ReadTimeout: scalerRequestTime,
	}, measures, logger)
	s.probes = newHTTPServer(admin.NewProbes(admin.Config{
		Readiness: s.readiness, Metrics: metrics, Hosts: hosts.New(config.ProbeAddr, nil),
		BodyTimeout: scalerRequestTime,
	}), logger)
	if s.certificates, err = openCertificates(config.TLS); err != nil {
		return nil, fmt.Errorf("scaler: %w", err)
	}
	s.grpc = newGRPCServer(maxScalerMessage) // last: it starts goroutines, which Run ends
	grpcapi.RegisterScaler(s.grpc, scaler.New(store, s.stopping), calls, config.Authorizer)
	healthpb.RegisterHealthServer(s.grpc, &health{readiness: s.readiness, stopping: s.stopping})
	reflection.Register(s.grpc)
	return s, nil
}

// Opened returns a channel that is closed when all listeners are open.
func (s *Scaler) Opened() <-chan struct{} { return s.opened }

// Started returns a channel that is closed when the store was ready for the first time.
func (s *Scaler) Started() <-chan struct{} { return s.readiness.Started() }

// Addr returns the address of the external scaler. It blocks until Opened.
func (s *Scaler) Addr() net.Addr {
	<-s.opened
	return s.addr
}

// ProbeAddr returns the address of probes and metrics, nil if there is none. It blocks until Opened.
func (s *Scaler) ProbeAddr() net.Addr {
	<-s.opened
	return s.probeAddr
}

// Run serves until ctx ends, and then stops within ScalerStopTime and returns nil. It returns an error if a listener
// cannot be opened, if the store needs a repair before it can be used (PRECONDITION_FAILED, only while starting), or if
// a server fails. It must be called once.
func (s *Scaler) Run(ctx context.Context) error {
	defer s.certificates.close()
	if err := s.open(ctx); err != nil {
		s.grpc.Stop() // ends its goroutines
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	run := running{fail: fail}
	run.serve("gRPC server", func() error { return s.grpc.Serve(s.listener) })
	if s.probing != nil {
		run.serve("probe server", func() error { return s.probes.Serve(s.probing) })
	}
	run.serve("store", func() error { return watchStore(ctx, s.readiness) })
	<-ctx.Done()
	s.stop(context.WithoutCancel(ctx))
	run.work.Wait()
	return failureOf(ctx)
}

func (s *Scaler) open(ctx context.Context) (err error) {
	const mode = fs.FileMode(0o600)
	if s.listener, err = listen(ctx, "--addr", s.config.Addr, mode); err != nil {
		return err
	}
	s.addr = s.listener.Addr()
	s.listener = s.admission.GRPC(s.certificates.listen(s.listener, grpcListener))
	if s.config.ProbeAddr != "" {
		if s.probing, err = listen(ctx, "--probe-addr", s.config.ProbeAddr, mode); err != nil {
			return errors.Join(err, s.listener.Close())
		}
		s.probeAddr = s.probing.Addr()
		s.probing = s.certificates.listen(&newest{Listener: s.probing, most: maxPageConnections}, probeListener)
	}
	close(s.opened)
	return nil
}

// stop ends streams and lets calls end. Nothing is lost with a call that does not.
func (s *Scaler) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ScalerStopTime/2)
	defer cancel()
	s.broker.BeginDrain() // readiness says so
	close(s.stopping)
	cut := context.AfterFunc(ctx, s.grpc.Stop)
	defer cut()
	s.admission.CloseUnused()
	s.grpc.GracefulStop()
	stopHTTP(ctx, s.probes)
}
