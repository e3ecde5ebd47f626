package store

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/observe"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What is removed because nobody used it is logged and counted.
func TestIDLE_1_LogLineAndMetric(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		metrics, logger := prometheus.NewRegistry(), slog.New(slog.NewTextHandler(&log, nil))
		s := settings.Settings{StoreSettings: settings.StoreSettings{Store: settings.Memory}}
		store, err := Open(t.Context(), &s, Observer{Removed: observe.Removals(metrics, logger)}, logger)
		if err != nil {
			t.Fatal(err)
		}
		options := semantics.DefaultOptions()
		options.AutoDeleteOnIdle = semantics.MinAutoDeleteOnIdle
		for name, kind := range map[string]semantics.Kind{"replies": semantics.QueueKind, "news": semantics.TopicKind} {
			if _, _, err := store.CreateEntity(t.Context(), kind, name, options); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { store.Sweep(ctx, broker.New(store)) })
		<-time.After(semantics.MinAutoDeleteOnIdle + time.Minute)
		cancel()
		work.Wait()
		for _, want := range []string{`msg="deleted because idle" kind=queue entity=replies`, `msg="deleted because idle" kind=topic entity=news`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, log.String())
			}
		}
		families, err := metrics.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "sidebus_removed_entities_total" || len(families[0].GetMetric()) != 2 {
			t.Fatalf("the metrics are %v (%v)", families, err)
		}
		for _, m := range families[0].GetMetric() {
			if kind := m.GetLabel()[0].GetValue(); m.GetCounter().GetValue() != 1 || kind != "queue" && kind != "topic" {
				t.Errorf("%s: %v were counted, want one", kind, m.GetCounter().GetValue())
			}
		}
	})
}
