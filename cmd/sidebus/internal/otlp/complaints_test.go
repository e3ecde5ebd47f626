package otlp

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/test/syncbuf"
)

// The SDK quotes what it cannot read of its variables, which may be the credentials of the collector.
func TestCOMP_21_NoSecretOfAVariableIsLogged(t *testing.T) {
	secret := "s3cret%zz"
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20"+secret+","+secret)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:"+secret+"@127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/none.pem")
	log := &syncbuf.Buffer{}
	e, err := Open(t.Context(), Config{
		Endpoint: "http://127.0.0.1:1", Metrics: prometheus.NewRegistry(), Spans: func(string, int) {},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("a secret is logged:\n%s", log)
	}
	for _, want := range []string{"parse headers", "escape header value", "/none.pem"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not logged:\n%s", want, log)
		}
	}
}
