package settling

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

func TestSourceStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		registry, stalled := prometheus.NewRegistry(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "stalled"})
		registry.MustRegister(stalled)
		s := NewSourceStatus(slog.New(slog.NewTextHandler(&log, nil)), stalled)
		want := func(failed, recovered int, gauge float64) {
			t.Helper()
			synctest.Wait()
			if n := strings.Count(log.String(), "cannot be received from"); n != failed {
				t.Errorf("%d lines about failures, want %d\n%s", n, failed, &log)
			}
			if n := strings.Count(log.String(), "can be received from again"); n != recovered {
				t.Errorf("%d lines about the end of failures, want %d\n%s", n, recovered, &log)
			}
			if got := series(t, registry, "stalled")[0]; got != gauge {
				t.Errorf("%v stalled, want %v", got, gauge)
			}
		}
		s.Received()
		want(0, 0, 0)
		for range 8 {
			s.Failed(errDown)
		}
		want(1, 0, 1)
		s.Failed(semantics.Errorf(semantics.EntityNotFound, "there is no queue"))
		want(2, 0, 1)
		s.Received()
		want(2, 1, 0)
		if pause := s.Failed(errDown); pause < MaxBackoff/2 {
			t.Errorf("a subscription that failed soon again pauses for %s", pause)
		}
		want(3, 1, 1)
		s.Subscribed()()
		<-time.After(HealthyAfter)
		want(3, 1, 1)
		defer s.Subscribed()()
		<-time.After(HealthyAfter)
		want(3, 2, 0)
		if pause := s.Failed(errDown); pause >= MinBackoff {
			t.Errorf("after a subscription that lasted the pause is %s", pause)
		}
		s.Ended()
		want(4, 2, 0)
	})
}

func TestSourceStatusWithoutAMetric(t *testing.T) {
	t.Parallel()
	s := NewSourceStatus(slog.New(slog.DiscardHandler), nil)
	s.Failed(errDown)
	s.Received()
	s.Ended()
}
