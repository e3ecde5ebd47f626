package observe

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/test/syncbuf"
)

// Each orphan is counted; however many there are, the log has one line a minute.
func TestRECV_4_OrphansAreCountedAndLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log syncbuf.Buffer
		registry := prometheus.NewRegistry()
		observe := Orphans(registry, slog.New(slog.NewTextHandler(&log, nil)))
		observe("orders", []int64{7, 9})
		observe("orders", []int64{10})
		<-time.After(orphansInterval + time.Second)
		observe("tales", []int64{1})
		<-time.After(orphansInterval)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "sidebus_orphans_total" || families[0].GetMetric()[0].GetCounter().GetValue() != 4 {
			t.Errorf("%v, %v", families, err)
		}
		text := log.String()
		if strings.Count(text, orphansLine) != 3 || !strings.Contains(text, "entity=orders messages=2 first=7") ||
			!strings.Contains(text, "first=10") || !strings.Contains(text, "entity=tales") {
			t.Error(text)
		}
	})
}
