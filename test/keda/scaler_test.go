package keda

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	autoscaling "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// pair is a sidecar and a scaler on one Redis.
type pair struct {
	t       *testing.T
	sidecar *sidecartest.Sidecar
	scaler  *sidecartest.Scaler
}

func start(t *testing.T) *pair {
	t.Helper()
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	return &pair{t, sidecartest.Start(t, store...), sidecartest.LaunchScaler(t, store...)}
}

// trigger is KEDA's side of a trigger: what its operator makes of one in a ScaledObject.
func (p *pair) trigger(index int, of kedav1alpha1.ScaleTriggers) scalers.PushScaler {
	p.t.Helper()
	metadata := maps.Clone(of.Metadata)
	metadata["scalerAddress"] = p.scaler.Addr
	scaler, err := scalers.NewExternalPushScaler(&scalersconfig.ScalerConfig{
		ScalableObjectName: "app", ScalableObjectNamespace: "shop", ScalableObjectType: "ScaledObject",
		TriggerType: of.Type, TriggerMetadata: metadata, TriggerIndex: index, MetricType: of.MetricType,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return scaler
}

// by is the trigger of a source.
func (p *pair) by(source string, metadata map[string]string) scalers.PushScaler {
	p.t.Helper()
	metadata = maps.Clone(metadata)
	metadata["source"] = source
	return p.trigger(0, kedav1alpha1.ScaleTriggers{Type: "external-push", Metadata: metadata})
}

// reading is what KEDA gets of a trigger: by metric, what a replica is for and what there is.
type reading struct {
	targets, values map[string]float64
	isActive        bool
}

func read(ctx context.Context, t *testing.T, of scalers.Scaler) reading {
	t.Helper()
	got := reading{targets: map[string]float64{}, values: map[string]float64{}}
	specs := of.GetMetricSpecForScaling(ctx)
	if len(specs) == 0 {
		t.Fatal("KEDA got no metrics")
	}
	for _, spec := range specs {
		name, target := spec.External.Metric.Name, spec.External.Target.AverageValue
		if spec.External.Target.Type == autoscaling.ValueMetricType {
			target = spec.External.Target.Value
		}
		got.targets[name] = target.AsApproximateFloat64()
		values, isActive, err := of.GetMetricsAndActivity(ctx, name)
		if err != nil || len(values) != 1 {
			t.Fatalf("%s: got %v, %v", name, values, err)
		}
		got.values[name], got.isActive = values[0].Value.AsApproximateFloat64(), isActive
	}
	return got
}

func TestCOMP_16_KEDAReadsMessages(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.sidecar.Queue(t, "orders", `{}`)
	of := p.by("queues/orders", map[string]string{"messages": "5", "maxAge": "1m"})
	empty := read(t.Context(), t, of)
	if empty.isActive || !maps.Equal(empty.targets, map[string]float64{"s0-messages": 5, "s0-age": 60}) ||
		!maps.Equal(empty.values, map[string]float64{"s0-messages": 0, "s0-age": 0}) {
		t.Errorf("an empty queue: got %+v", empty)
	}
	for range 3 {
		p.sidecar.Send(t, "orders", "a")
	}
	p.sidecar.Must(t, http.MethodPost, "/v1/queues/orders/messages:send",
		`{"messages":[{"text":"later","scheduledEnqueueTime":"2100-01-01T00:00:00Z"}]}`)
	sidecartest.Eventually(t, "KEDA sees what was sent", func() bool {
		got := read(t.Context(), t, of)
		return got.isActive && got.values["s0-messages"] == 3 && got.values["s0-age"] > 0
	})
}

func TestCOMP_16_KEDAIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := start(t)
	if specs := p.by("queues/orders", map[string]string{"mesages": "5"}).GetMetricSpecForScaling(t.Context()); len(specs) != 0 {
		t.Errorf("got %v", specs)
	}
	_, _, err := p.by("queues/none", map[string]string{"messages": "5"}).GetMetricsAndActivity(t.Context(), "s0-messages")
	if err == nil || !strings.Contains(err.Error(), `"none" does not exist`) {
		t.Errorf("got %v", err)
	}
}

// The operator of KEDA wakes the first pod when the stream says so, and opens another stream when one ends.
func TestCOMP_8_KEDAIsWoken(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.sidecar.Queue(t, "orders", `{}`)
	active := make(chan bool)
	ctx, stop := context.WithCancel(t.Context())
	go p.by("queues/orders", map[string]string{"messages": "5"}).Run(ctx, active)
	want := func(want bool) {
		t.Helper()
		if got, open := <-active; got != want || !open {
			t.Fatalf("got %t, want %t", got, want)
		}
	}
	want(false)
	p.sidecar.Send(t, "orders", "a")
	want(true)
	p.sidecar.Must(t, http.MethodPost, "/v1/queues/orders/messages:purge", `{}`)
	want(false)
	stop()
	for range active { //nolint:revive // until KEDA closes it
	}
}

// The examples are what KEDA would accept, and their triggers what the scaler does.
func TestCOMP_16_Examples(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.sidecar.Queue(t, "orders", `{}`)
	p.sidecar.Queue(t, "carts", `{"requiresSession":true}`)
	p.sidecar.Must(t, http.MethodPut, "/v1/topics/news", `{}`)
	p.sidecar.Must(t, http.MethodPut, "/v1/topics/news/subscriptions/billing", `{}`)
	want := map[string][]string{
		"messages.yaml": {"s0-messages"}, "sessions.yaml": {"s0-sessions"}, "age.yaml": {"s0-age", "s1-messages"},
	}
	for file, metrics := range want {
		text, err := os.ReadFile(filepath.Join("../../examples/keda", file))
		if err != nil {
			t.Fatal(err)
		}
		var object kedav1alpha1.ScaledObject
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var got []string
		for i, trigger := range object.Spec.Triggers {
			if !strings.HasPrefix(trigger.Metadata["scalerAddress"], "sidebus-scaler.") {
				t.Errorf("%s: it asks %q", file, trigger.Metadata["scalerAddress"])
			}
			got = slices.AppendSeq(got, maps.Keys(read(t.Context(), t, p.trigger(i, trigger)).values))
		}
		if !slices.Equal(got, metrics) {
			t.Errorf("%s: got %q, want %q", file, got, metrics)
		}
	}
}
