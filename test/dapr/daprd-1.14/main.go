// Command daprd-1.14 is a daprd of an older release, 1.14.0, of the kind that hands all it has received
// to the app at once. (Those from 1.16.0 to 1.18.3 hand over one message at a time of each subscription.)
package main

import (
	"context"
	"os"

	"github.com/dapr/components-contrib/pubsub/redis"
	"github.com/dapr/dapr/cmd/daprd/options"
	bindingsloader "github.com/dapr/dapr/pkg/components/bindings"
	configurationloader "github.com/dapr/dapr/pkg/components/configuration"
	cryptoloader "github.com/dapr/dapr/pkg/components/crypto"
	lockloader "github.com/dapr/dapr/pkg/components/lock"
	middlewareloader "github.com/dapr/dapr/pkg/components/middleware/http"
	nameresolutionloader "github.com/dapr/dapr/pkg/components/nameresolution"
	pubsubloader "github.com/dapr/dapr/pkg/components/pubsub"
	secretstoresloader "github.com/dapr/dapr/pkg/components/secretstores"
	stateloader "github.com/dapr/dapr/pkg/components/state"
	wfbackendloader "github.com/dapr/dapr/pkg/components/wfbackend"
	"github.com/dapr/dapr/pkg/healthz"
	"github.com/dapr/dapr/pkg/metrics"
	"github.com/dapr/dapr/pkg/modes"
	"github.com/dapr/dapr/pkg/runtime"
	"github.com/dapr/dapr/pkg/runtime/registry"
	"github.com/dapr/dapr/pkg/security"
	"github.com/dapr/kit/concurrency"
	"github.com/dapr/kit/logger"
	"github.com/dapr/kit/signals"
)

var log = logger.NewLogger("dapr.runtime")

func main() {
	opts, err := options.New(os.Args[1:])
	if err != nil {
		log.Fatalf("flags: %v", err)
	}
	opts.Logger.SetAppID(opts.AppID)
	if err := logger.ApplyOptionsToLoggers(&opts.Logger); err != nil {
		log.Fatal(err)
	}
	pubsubloader.DefaultRegistry.Logger = logger.NewLogger("dapr.contrib")
	pubsubloader.DefaultRegistry.RegisterComponent(redis.NewRedisStreams, "redis")
	if err := run(signals.Context(), opts); err != nil {
		log.Fatalf("Fatal error from runtime: %s", err)
	}
}

// run runs the runtime until ctx ends or it is told to stop over its API.
func run(ctx context.Context, opts *options.Options) error {
	health := healthz.New()
	identity, err := security.New(ctx, security.Options{
		AppID: opts.AppID, Mode: modes.StandaloneMode, Healthz: health,
		ControlPlaneTrustDomain: opts.ControlPlaneTrustDomain, ControlPlaneNamespace: opts.ControlPlaneNamespace,
	})
	if err != nil {
		return err
	}
	return concurrency.NewRunnerManager(identity.Run, func(ctx context.Context) error {
		handler, err := identity.Handler(ctx)
		if err != nil {
			return err
		}
		r, err := runtime.FromConfig(ctx, config(opts, handler, health))
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}).Run(ctx)
}

// config takes over the flags that a runtime without a control plane has a use for.
func config(opts *options.Options, handler security.Handler, health healthz.Healthz) *runtime.Config {
	return &runtime.Config{
		AppID:                         opts.AppID,
		Mode:                          opts.Mode,
		Config:                        opts.Config,
		ResourcesPath:                 opts.ResourcesPath,
		AllowedOrigins:                opts.AllowedOrigins,
		DaprAPIListenAddresses:        opts.DaprAPIListenAddresses,
		DaprHTTPPort:                  opts.DaprHTTPPort,
		DaprAPIGRPCPort:               opts.DaprAPIGRPCPort,
		DaprInternalGRPCPort:          opts.DaprInternalGRPCPort,
		DaprInternalGRPCListenAddress: opts.DaprInternalGRPCListenAddress,
		DaprPublicPort:                opts.DaprPublicPort,
		DaprPublicListenAddress:       opts.DaprPublicListenAddress,
		UnixDomainSocket:              opts.UnixDomainSocket,
		MaxRequestSize:                opts.MaxRequestSize,
		ReadBufferSize:                opts.ReadBufferSize,
		EnableAPILogging:              opts.EnableAPILogging,
		ProfilePort:                   opts.ProfilePort,
		EnableProfiling:               opts.EnableProfiling,
		DaprGracefulShutdownSeconds:   opts.DaprGracefulShutdownSeconds,
		DaprBlockShutdownDuration:     opts.DaprBlockShutdownDuration,
		ApplicationPort:               opts.AppPort,
		AppProtocol:                   opts.AppProtocol,
		AppChannelAddress:             opts.AppChannelAddress,
		AppMaxConcurrency:             opts.AppMaxConcurrency,
		EnableAppHealthCheck:          opts.EnableAppHealthCheck,
		AppHealthCheckPath:            opts.AppHealthCheckPath,
		AppHealthProbeInterval:        opts.AppHealthProbeInterval,
		AppHealthProbeTimeout:         opts.AppHealthProbeTimeout,
		AppHealthThreshold:            opts.AppHealthThreshold,
		Metrics:                       metrics.Options{Log: log, Healthz: health},
		Registry:                      components(),
		Security:                      handler,
		Healthz:                       health,
	}
}

// components are registries in which only pubsub has something.
func components() *registry.Options {
	return registry.NewOptions().
		WithBindings(bindingsloader.DefaultRegistry).
		WithConfigurations(configurationloader.DefaultRegistry).
		WithCryptoProviders(cryptoloader.DefaultRegistry).
		WithHTTPMiddlewares(middlewareloader.DefaultRegistry).
		WithLocks(lockloader.DefaultRegistry).
		WithNameResolutions(nameresolutionloader.DefaultRegistry).
		WithPubSubs(pubsubloader.DefaultRegistry).
		WithSecretStores(secretstoresloader.DefaultRegistry).
		WithStateStores(stateloader.DefaultRegistry).
		WithWorkflowBackends(wfbackendloader.DefaultRegistry)
}
