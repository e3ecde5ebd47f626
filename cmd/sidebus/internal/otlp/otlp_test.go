package otlp

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
)

// stuck is an exporter that does not return until it may.
type stuck struct{ release chan struct{} }

func (s stuck) ExportSpans(context.Context, []tracesdk.ReadOnlySpan) error {
	<-s.release
	return nil
}

func (stuck) Shutdown(context.Context) error { return nil }

// A collector that does not answer holds up no call; what does not fit into the queue is counted.
func TestCOMP_22_AFullQueueDropsAndCounts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	counts := map[string]int{}
	exporter := stuck{make(chan struct{})}
	provider := tracesdk.NewTracerProvider(tracesdk.WithSpanProcessor(newQueue(exporter, func(outcome string, n int) {
		mu.Lock()
		defer mu.Unlock()
		counts[outcome] += n
	})))
	tracer := provider.Tracer("test")
	const more = 100
	for range maxQueue + more {
		_, span := tracer.Start(t.Context(), "span")
		span.End() // which must not block
	}
	mu.Lock()
	if counts[dropped] != more || counts[exported] != 0 {
		t.Errorf("while the collector is stuck: %v", counts)
	}
	mu.Unlock()
	close(exporter.release)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if counts[exported] != maxQueue || counts[dropped] != more {
		t.Errorf("in the end: %v", counts)
	}
}

func TestVariablesDecideWhatIsExported(t *testing.T) {
	for _, c := range []struct {
		endpoint, variables  string
		traces, metrics, bad bool
	}{
		{"", "", false, false, false},
		{"http://127.0.0.1:1", "", true, true, false},
		{"", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", true, true, false},
		{"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1", true, false, false},
		{"http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=none", false, true, false},
		{"http://127.0.0.1:1", "OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", true, false, false},
		{"http://127.0.0.1:1", "OTEL_SDK_DISABLED=true", false, false, false},
		{"http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", false, false, true},
	} {
		t.Run(c.endpoint+" "+c.variables, func(t *testing.T) {
			for variable := range strings.FieldsSeq(c.variables) {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			e, err := Open(t.Context(), Config{
				Endpoint: c.endpoint, Metrics: prometheus.NewRegistry(), Spans: func(string, int) {}, Logger: slog.New(slog.DiscardHandler),
			})
			if (err != nil) != c.bad {
				t.Fatal(err)
			}
			if got := e.Tracing() != nil; got != c.traces {
				t.Errorf("traces: %t", got)
			}
			if got := e != nil && e.metrics != nil; got != c.metrics {
				t.Errorf("metrics: %t", got)
			}
			began := time.Now()
			e.Close() // although no collector answers
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the end took %s", took)
			}
		})
	}
}
