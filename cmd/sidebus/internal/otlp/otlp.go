// Package otlp exports spans and metrics to a collector of OpenTelemetry. What is exported is not decided here: spans
// are those of the proxy, metrics those of /metrics. Exporting never blocks a call, and a collector that is away costs
// only spans.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	metricsdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/proxy/lograte"
	"github.com/sidebus/sidebus/semantics"
)

const (
	closeTimeout = 500 * time.Millisecond // of what is left of a stop when the servers have stopped
	logInterval  = time.Minute            // between two lines about failures
	mostOfError  = 500                    // characters: it may quote what the collector has answered
)

// Config is what to export, where to, and as whom.
type Config struct {
	Endpoint           string // http://host:port or https://host:port; empty: that of the variables, if there is one
	Namespace, Version string
	Metrics            prometheus.Gatherer
	Spans              func(outcome string, n int) // counts spans by outcome
	Logger             *slog.Logger
}

// Exporter exports. A nil *Exporter exports nothing.
type Exporter struct {
	tracing *tracesdk.TracerProvider // nil: no spans
	metrics *metricsdk.MeterProvider // nil: no metrics
}

// IsOn reports whether there is an endpoint, by flag or variable, and the variables do not switch all off.
func IsOn(endpoint string) bool {
	isOff := strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true")
	return !isOff && (exports(endpoint, traces) || exports(endpoint, metrics))
}

// Open starts to export, and returns nil if nothing is to be exported. It does not wait for the collector. It fails if
// a variable asks for what is not supported. The caller must call Close.
func Open(ctx context.Context, config Config) (*Exporter, error) {
	if !IsOn(config.Endpoint) {
		return nil, nil
	}
	failures := lograte.New(config.Logger, "telemetry cannot be exported", logInterval)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { failures.Warn("error", semantics.ShortenTo(err.Error(), mostOfError)) }))
	otel.SetLogger(logr.New(complaints{config.Logger}))
	who, err := resource.New(
		ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "sidebus"), attribute.String("service.version", config.Version),
			attribute.String("sidebus.namespace", config.Namespace),
		),
		resource.WithFromEnv(), // last, so that it decides
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	e := &Exporter{}
	if exports(config.Endpoint, traces) {
		exporter, err := newTraceExporter(ctx, config.Endpoint)
		if err != nil {
			return nil, err
		}
		e.tracing = tracesdk.NewTracerProvider(
			tracesdk.WithResource(who), tracesdk.WithSpanProcessor(newQueue(exporter, config.Spans)),
		)
	}
	if exports(config.Endpoint, metrics) {
		exporter, err := newMetricExporter(ctx, config.Endpoint)
		if err != nil {
			e.Close()
			return nil, err
		}
		producer := metricsdk.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(config.Metrics)))
		e.metrics = metricsdk.NewMeterProvider(
			metricsdk.WithResource(who), metricsdk.WithReader(metricsdk.NewPeriodicReader(exporter, producer)),
		)
	}
	config.Logger.InfoContext(ctx, "exporting telemetry", "traces", e.tracing != nil, "metrics", e.metrics != nil)
	return e, nil
}

// Tracing returns what records spans, nil if nothing does.
func (e *Exporter) Tracing() trace.TracerProvider {
	if e == nil || e.tracing == nil {
		return nil
	}
	return e.tracing
}

// Close exports what is left, for half a second at most.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	//nolint:forbidigo // also when the sidecar was told to stop
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var work sync.WaitGroup
		if e.tracing != nil {
			work.Go(func() { _ = e.tracing.Shutdown(ctx) }) // the handler of errors has logged it
		}
		if e.metrics != nil {
			work.Go(func() { _ = e.metrics.Shutdown(ctx) })
		}
		work.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done(): // the last reading of metrics may wait for Redis
	}
}
