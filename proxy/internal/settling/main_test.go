package settling

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series returns the values of the gauges or counters of a name.
func series(t *testing.T, registry *prometheus.Registry, name string) (values []float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			values = append(values, m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return values
}
