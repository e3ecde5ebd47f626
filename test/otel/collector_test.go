// Package otel runs the built binary against a collector of OpenTelemetry, made of the collector's own packages. It is a
// module of its own, because these are large.
package otel

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// collector is a receiver of OTLP that keeps what it gets.
type collector struct {
	t          *testing.T
	grpc, http string // URLs
	traces     consumertest.TracesSink
	metrics    consumertest.MetricsSink
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t}
	overGRPC, overHTTP := freeAddress(t), freeAddress(t)
	c.grpc, c.http = "http://"+overGRPC, "http://"+overHTTP
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	err := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": overGRPC}, "http": map[string]any{"endpoint": overHTTP},
	}}).Unmarshal(config)
	if err != nil {
		t.Fatal(err)
	}
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(t.Context(), settings, config, &c.traces)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := factory.CreateMetrics(t.Context(), settings, config, &c.metrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, receiver := range []component.Component{traces, metrics} { // both are one receiver, which starts once
		if err := receiver.Start(t.Context(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = receiver.Shutdown(context.WithoutCancel(t.Context())) })
	}
	return c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// span is a span with the sidecar it is of.
type span struct {
	ptrace.Span

	service string
}

// spans returns all spans that came, in the order in which they began.
func (c *collector) spans() (all []span) {
	for _, traces := range c.traces.AllTraces() {
		for _, ofResource := range traces.ResourceSpans().All() {
			service, _ := ofResource.Resource().Attributes().Get("service.name")
			for _, ofScope := range ofResource.ScopeSpans().All() {
				for _, s := range ofScope.Spans().All() {
					all = append(all, span{s, service.Str()})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b span) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
	return all
}

// await waits for a span of a name that fits, and returns it.
func (c *collector) await(name string, fits func(span) bool) span {
	c.t.Helper()
	var found span
	sidecartest.Eventually(c.t, "the span "+name, func() bool {
		for _, s := range c.spans() {
			if s.Name() == name && fits(s) {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// of reports whether a span is one of a trace.
func of(trace string) func(span) bool {
	return func(s span) bool { return s.TraceID().String() == trace }
}

// linkedTo reports whether a span has a link to another one.
func linkedTo(other span) func(span) bool {
	return func(s span) bool {
		for _, link := range s.Links().All() {
			if link.TraceID() == other.TraceID() && link.SpanID() == other.SpanID() {
				return true
			}
		}
		return false
	}
}

// text returns an attribute as text, empty if it is missing.
func text(of pcommon.Map, name string) string {
	value, _ := of.Get(name)
	return value.AsString()
}

// metricNames returns the names of all metrics that came.
func (c *collector) metricNames() (names []string) {
	for _, metrics := range c.metrics.AllMetrics() {
		for _, ofResource := range metrics.ResourceMetrics().All() {
			for _, ofScope := range ofResource.ScopeMetrics().All() {
				for _, m := range ofScope.Metrics().All() {
					names = append(names, m.Name())
				}
			}
		}
	}
	return names
}

// texts returns everything of the spans and metrics that is text.
func (c *collector) texts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	spans, metrics := ptrace.JSONMarshaler{}, pmetric.JSONMarshaler{}
	for _, traces := range c.traces.AllTraces() {
		encoded, err := spans.MarshalTraces(traces)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(encoded)
	}
	for _, some := range c.metrics.AllMetrics() {
		encoded, err := metrics.MarshalMetrics(some)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(encoded)
	}
	return all.String()
}
