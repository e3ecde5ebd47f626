package obs_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// account has counted something of everything.
type account struct{}

func (account) Held() int            { return 7 }
func (account) OrphanReplies() int64 { return 3 }
func (account) PrefetchesCut() int64 { return 2 }
func (account) Forwarded() (forwarded, refused int64) {
	return 5, 4
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Names and labels of metrics are API: dashboards and alerts use them.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := obs.NewMetrics(registry, account{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	obs.NewCalls(m, slog.New(slog.DiscardHandler)).Done(t.Context(), obs.GRPC, "Messages.Send", time.Now(), nil)
	source := semantics.Source{Path: "Orders", SubQueue: semantics.DeadLetterQueue}
	short := []*semantics.Message{{TimeToLive: new(time.Millisecond)}, {}}
	m.Sent(semantics.ToQueue("Orders"), short, []semantics.SendResult{{}, {Stored: semantics.Stored{Deduplicated: true}}})
	m.Received(t.Context(), source, []*semantics.Received{{}})
	m.CountSettled(source, obs.Complete, []semantics.Code{"", semantics.MessageLockLost, ""})
	m.Removed("orders", obs.Purge, 1)
	m.Resubmitted(source, 1)
	m.Connections.WithLabelValues(obs.HTTP).Inc()
	m.ConnectionsRefused.WithLabelValues(obs.HTTP).Inc()
	m.Pushes.WithLabelValues("queues/orders", obs.Complete).Inc()
	m.PushDuration.WithLabelValues("queues/orders").Observe(1)
	m.HandlerReachable.WithLabelValues("queues/orders").Set(1)
	m.DaprDeliveries.WithLabelValues(obs.Complete).Inc()
	m.DaprHeals.WithLabelValues("restarted").Inc()

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "sidebus_") {
			continue
		}
		labels := []string{}
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName()+"="+label.GetValue())
		}
		got = append(got, family.GetName()+"{"+strings.Join(labels, ",")+"}")
	}
	want := []string{
		"sidebus_answer_memory_bytes{}",
		"sidebus_answers_late_total{}",
		"sidebus_answers_refused_total{}",
		"sidebus_connections{wire=http}",
		"sidebus_connections_refused_total{wire=http}",
		"sidebus_dapr_bad_metadata_total{}",
		"sidebus_dapr_deliveries_total{outcome=complete}",
		"sidebus_dapr_heals_total{outcome=restarted}",
		"sidebus_dapr_streams{}",
		"sidebus_dapr_streams_stalled{}",
		"sidebus_forwards_refused_total{}",
		"sidebus_handler_reachable{handler=queues/orders}",
		"sidebus_locks_lost_total{entity=orders/$deadletterqueue,outcome=complete}",
		"sidebus_messages_deduplicated_total{entity=orders}",
		"sidebus_messages_forwarded_total{}",
		"sidebus_messages_held{}",
		"sidebus_messages_received_total{entity=orders/$deadletterqueue}",
		"sidebus_messages_removed_total{entity=orders,verb=purge}",
		"sidebus_messages_resubmitted_total{entity=orders/$deadletterqueue}",
		"sidebus_messages_sent_total{entity=orders}",
		"sidebus_messages_settled_total{entity=orders/$deadletterqueue,outcome=complete}",
		"sidebus_messages_short_lived_total{entity=orders}",
		"sidebus_orphan_replies_total{}",
		"sidebus_panics_total{}",
		"sidebus_prefetches_cut_total{}",
		"sidebus_push_duration_seconds{handler=queues/orders}",
		"sidebus_pushes_total{handler=queues/orders,outcome=complete}",
		"sidebus_request_memory_bytes{}",
		"sidebus_requests_late_total{}",
		"sidebus_requests_refused_total{}",
		"sidebus_rpc_duration_seconds{code=OK,method=Messages.Send,wire=grpc}",
		"sidebus_rpcs_total{code=OK,method=Messages.Send,wire=grpc}",
		"sidebus_waits_ended_total{}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := obs.NewMetrics(registry, account{}, 10); err == nil {
		t.Error("the same names were registered twice")
	}
}

func TestMethodLabels(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]string{"/sidebus.v1.Messages/Send": "Messages.Send", "": "none"} {
		if got := obs.Method(full); got != want {
			t.Errorf("%q: got %q, want %q", full, got, want)
		}
	}
}

// A caller without rights does not fill the disk with refusals, and none goes uncounted.
func TestAUTH_4_RefusalsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log syncbuf.Buffer
		m, err := obs.NewMetrics(prometheus.NewRegistry(), account{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		calls := obs.NewCalls(m, slog.New(slog.NewTextHandler(&log, nil)))
		refused := semantics.Errorf(semantics.Unauthenticated, "no token")
		call := func(err *semantics.Error) { calls.Done(t.Context(), obs.GRPC, "Admin.DeleteQueue", time.Now(), err) }
		for range 250 {
			call(refused)
		}
		call(nil) // changes are logged whatever others are refused
		if got := strings.Count(log.String(), "code=UNAUTHENTICATED"); got != 100 {
			t.Errorf("got %d lines of refusals, want 100", got)
		}
		if !strings.Contains(log.String(), "code=OK") {
			t.Error("a change is not in the audit")
		}
		<-time.After(time.Second)
		call(refused)
		call(refused)
		if got := strings.Count(log.String(), "suppressed=150"); got != 1 {
			t.Errorf("got %d lines with the number of those that are not there:\n%s", got, log.String())
		}
	})
}
