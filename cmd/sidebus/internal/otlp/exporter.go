package otlp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	metricsdk "go.opentelemetry.io/otel/sdk/metric"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
)

// signal is what is exported, by its name in variables.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
)

// Protocols of OTLP.
const (
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// exports reports whether a signal has an endpoint and is not switched off.
func exports(endpoint string, s signal) bool {
	to := cmp.Or(
		endpoint, os.Getenv("OTEL_EXPORTER_OTLP_"+string(s)+"_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
	)
	return to != "" && os.Getenv("OTEL_"+string(s)+"_EXPORTER") != "none"
}

// protocolOf returns the protocol of a signal.
func protocolOf(s signal) (string, error) {
	name := "OTEL_EXPORTER_OTLP_" + string(s) + "_PROTOCOL"
	protocol := cmp.Or(os.Getenv(name), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), overGRPC)
	if protocol != overGRPC && protocol != overHTTP {
		return "", fmt.Errorf("the protocol of OTLP is %q, must be %s or %s; see OTEL_EXPORTER_OTLP_PROTOCOL",
			protocol, overGRPC, overHTTP)
	}
	return protocol, nil
}

func newTraceExporter(ctx context.Context, endpoint string) (tracesdk.SpanExporter, error) {
	protocol, err := protocolOf(traces)
	switch {
	case err != nil:
		return nil, err
	case protocol == overHTTP && endpoint == "":
		return otlptracehttp.New(ctx)
	case protocol == overHTTP:
		return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(below(endpoint, "/v1/traces")))
	case endpoint == "":
		return otlptracegrpc.New(ctx)
	default:
		return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint))
	}
}

func newMetricExporter(ctx context.Context, endpoint string) (metricsdk.Exporter, error) {
	protocol, err := protocolOf(metrics)
	switch {
	case err != nil:
		return nil, err
	case protocol == overHTTP && endpoint == "":
		return otlpmetrichttp.New(ctx)
	case protocol == overHTTP:
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(below(endpoint, "/v1/metrics")))
	case endpoint == "":
		return otlpmetricgrpc.New(ctx)
	default:
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(endpoint))
	}
}

func below(endpoint, path string) string { return strings.TrimSuffix(endpoint, "/") + path }
