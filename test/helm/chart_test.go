// Package helm tests the Helm chart and the manifests that are rendered from it, with the packages of Helm, Kustomize and
// Kubernetes. It is a module of its own, because these are large.
package helm

import (
	"bytes"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

const (
	sidebus = "../../deploy/helm/sidebus"
	orders  = "../../examples/kubernetes/orders"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the loader logs each symbolic link that it follows
	os.Exit(m.Run())
}

func load(t *testing.T, folder string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render returns the documents of each template, by its name, as "helm template" prints them.
func render(loaded *chart.Chart, release string, values chartutil.Values) (map[string]string, error) {
	if err := chartutil.ProcessDependenciesWithMerge(loaded, values); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(loaded, values, chartutil.ReleaseOptions{Name: release, Namespace: "default"}, nil)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Engine{Strict: true}.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	documents := map[string]string{}
	for name, text := range texts {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			documents[name[strings.LastIndex(name, "templates/")+len("templates/"):]] = strings.TrimSpace(text) + "\n"
		}
	}
	return documents, nil
}

func mustRender(t *testing.T, folder string, values chartutil.Values) map[string]string {
	t.Helper()
	documents, err := render(load(t, folder), "orders", values)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// examples returns the files of values that the chart comes with.
func examples(t *testing.T) map[string]chartutil.Values {
	t.Helper()
	names, err := filepath.Glob(sidebus + "/examples/*.yaml")
	if err != nil || len(names) < 8 {
		t.Fatalf("got %q, %v", names, err)
	}
	all := map[string]chartutil.Values{}
	for _, name := range names {
		values, err := chartutil.ReadValuesFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".yaml")] = values
	}
	return all
}

// with returns the values of the example application, whose sidecar has these.
func with(values chartutil.Values) chartutil.Values {
	return chartutil.Values{"sidebus": values.AsMap()}
}

func TestChartsPassTheLinter(t *testing.T) {
	t.Parallel()
	for name, values := range examples(t) {
		checkLint(t, sidebus, name, values)
		checkLint(t, orders, name, with(values))
	}
}

func checkLint(t *testing.T, folder, name string, values chartutil.Values) {
	t.Helper()
	for _, message := range lint.All(folder, values.AsMap(), "default", true).Messages {
		if message.Severity > support.InfoSev {
			t.Errorf("%s with the values %s: %v", folder, name, message)
		}
	}
}

// Every example renders with the application into objects that Kubernetes knows, without an unknown field.
func TestObjectsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for name, values := range examples(t) {
		for file, text := range mustRender(t, orders, with(values)) {
			for _, object := range decode(t, name+" "+file, text) {
				found[object.kind] = true
			}
		}
	}
	for _, kind := range []string{
		"ServiceAccount", "NetworkPolicy", "PodMonitor", "PrometheusRule", "Secret", "Service", "StatefulSet", "Job", "Deployment",
	} {
		if !found[kind] {
			t.Errorf("no example has a %s", kind)
		}
	}
}

// The strictness of the test is real: an unknown field is found.
func TestUnknownFieldsAreFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replica: 1}\n",
		"apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a, name: b}\n",
	} {
		if _, err := decodeOne([]byte(text)); err == nil {
			t.Errorf("it has no error:\n%s", text)
		}
	}
}

func TestStoreOfTheSidecar(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"external":       "rediss://sidebus@redis.data.svc:6380/0",
		"sentinel":       "redis+sentinel://sentinel-0.sentinel:26379,sentinel-1.sentinel:26379,sentinel-2.sentinel:26379/mymaster/0",
		"cluster":        "redis+cluster://redis-0.redis:6379,redis-1.redis:6379,redis-2.redis:6379",
		"trial":          "redis://redis:6379/0",
		"trial-sentinel": "redis+sentinel://redis-sentinel-0.redis-sentinel:26379,redis-sentinel-1.redis-sentinel:26379,redis-sentinel-2.redis-sentinel:26379/mymaster/0",
		"trial-cluster":  "redis+cluster://redis-0.redis:6379,redis-1.redis:6379,redis-2.redis:6379",
	} {
		values := examples(t)[name]
		sidecar := sidecarOf(t, mustRender(t, orders, alone(values)))
		if got := variable(sidecar, "SIDEBUS_STORE"); got.Value != want {
			t.Errorf("%s: got %s, want %s", name, got.Value, want)
		}
		password := variable(sidecar, "SIDEBUS_REDIS_PASSWORD").ValueFrom
		if password == nil || password.SecretKeyRef == nil || password.SecretKeyRef.Name == "" {
			t.Errorf("%s: the password is not that of a Secret", name)
		}
	}
}

// alone returns values for the example application without what its own values say of the store.
func alone(values chartutil.Values) chartutil.Values {
	if _, ok := values["store"]; ok {
		return with(values)
	}
	values["store"] = map[string]any{"addresses": []any{}, "passwordSecret": map[string]any{"name": ""}}
	return with(values)
}

// The scaler reads the Redis that the sidecars use, and only KEDA reaches it.
func TestScalerOfTheChart(t *testing.T) {
	t.Parallel()
	for name, values := range examples(t) {
		values["scaler"] = map[string]any{"enabled": true, "kedaNamespace": "autoscaling"}
		documents := mustRender(t, orders, alone(values))
		sidecar := sidecarOf(t, documents)
		for _, o := range decode(t, name, documents["scaler.yaml"]) {
			switch v := o.value.(type) {
			case *apps.Deployment:
				scaler := v.Spec.Template.Spec.Containers[0]
				for _, setting := range []string{"SIDEBUS_STORE", "SIDEBUS_REDIS_PASSWORD", "SIDEBUS_NAMESPACE"} {
					if want, got := variable(sidecar, setting), variable(scaler, setting); !reflect.DeepEqual(want, got) {
						t.Errorf("%s: %s is %v, that of the sidecar is %v", name, setting, got, want)
					}
				}
			case *networking.NetworkPolicy:
				from := v.Spec.Ingress[0].From
				if got := from[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]; len(from) != 1 || got != "autoscaling" {
					t.Errorf("%s: it admits %v", name, from)
				}
			}
		}
	}
}

// With certificates, KEDA has to prove who it is, and the kubelet and Prometheus speak TLS too.
func TestScalerWithCertificates(t *testing.T) {
	t.Parallel()
	values := examples(t)["external"]
	values["scaler"] = map[string]any{"enabled": true, "tlsSecret": "certificates"}
	documents := mustRender(t, orders, with(values))
	for _, o := range decode(t, "external", documents["scaler.yaml"]) {
		v, ok := o.value.(*apps.Deployment)
		if !ok {
			continue
		}
		pod := v.Spec.Template.Spec
		scaler := pod.Containers[0]
		if slices.Contains(scaler.Args, "--allow-anonymous") {
			t.Error("everyone may ask")
		}
		if got := variable(scaler, "SIDEBUS_TLS_CLIENT_CA_FILE").Value; got != scaler.VolumeMounts[0].MountPath+"/ca.crt" {
			t.Errorf("the authority is at %q", got)
		}
		if pod.Volumes[0].Name != scaler.VolumeMounts[0].Name || pod.Volumes[0].Secret.SecretName != "certificates" {
			t.Errorf("the volumes are %v", pod.Volumes)
		}
		for _, probe := range []*core.Probe{scaler.ReadinessProbe, scaler.LivenessProbe} {
			if probe.HTTPGet.Scheme != core.URISchemeHTTPS || probe.HTTPGet.Port.StrVal != scaler.Ports[1].Name {
				t.Errorf("a probe is %v", probe.HTTPGet)
			}
		}
		if !strings.Contains(documents["podmonitor.yaml"], "port: "+scaler.Ports[1].Name) {
			t.Errorf("the PodMonitor has no port %s:\n%s", scaler.Ports[1].Name, documents["podmonitor.yaml"])
		}
	}
	decode(t, "external", documents["podmonitor.yaml"])
}

// A policy, entities or the authority of Redis are files of volumes of the pod.
func TestSidecarHasTheFilesOfItsPod(t *testing.T) {
	t.Parallel()
	values := examples(t)["external"]
	values["sidecar"] = map[string]any{"volumeMounts": []any{map[string]any{"name": "policy", "mountPath": "/policy"}}}
	mounts := sidecarOf(t, mustRender(t, orders, with(values))).VolumeMounts
	if len(mounts) != 2 || mounts[1].Name != "policy" || mounts[1].MountPath != "/policy" {
		t.Errorf("the mounts are %v", mounts)
	}
}

// What cannot work is refused before it reaches a cluster.
func TestValuesAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ values, want string }{
		{"store: {addresses: []}", "set store.addresses, or redis.enabled for a trial"},
		{"store: {addresses: ['a:1', 'b:1']}", "store.mode single has one address"},
		{"store: {mode: clustered}", "/store/mode"},
		{"store: {adresses: ['a:1']}", "adresses"},
		{"store: {addresses: ['redis://a:1']}", "does not match pattern"},
		{"redis: {enabled: true}", "set redis.password"},
		{"image: {digest: latest}", "does not match pattern"},
		{"sidecar: {redisPoolSize: 0}", "redisPoolSize"},
	} {
		values, err := chartutil.ReadValues([]byte(c.values))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(load(t, orders), "orders", with(values)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.values, err, c.want)
		}
	}
}

// The chart has no copy of the alert rules that could differ.
func TestPrometheusRuleHasTheAlertRules(t *testing.T) {
	t.Parallel()
	text := mustRender(t, sidebus, examples(t)["external"])["prometheusrule.yaml"]
	rules, err := os.ReadFile("../../deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rules)) {
		if !strings.Contains(text, strings.TrimRight(line, "\n")) {
			t.Errorf("the PrometheusRule lacks %q", line)
		}
	}
	if alerts := bytes.Count(rules, []byte("- alert: ")); alerts < 10 || alerts != strings.Count(text, "- alert: ") {
		t.Errorf("%d alerts", alerts)
	}
}

// Every value that the chart has is in its schema, so none can be misspelt.
func TestSchemaKnowsEveryValue(t *testing.T) {
	t.Parallel()
	loaded := load(t, sidebus)
	for name := range loaded.Values {
		group, ok := loaded.Values[name].(map[string]any)
		if !ok {
			continue
		}
		values := chartutil.Values{name: map[string]any{"misspelt": true}}
		if _, err := render(load(t, sidebus), "orders", values); err == nil {
			t.Errorf("%s.misspelt is accepted beside %v", name, slices.Sorted(maps.Keys(group)))
		}
	}
}
