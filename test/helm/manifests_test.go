package helm

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var update = flag.Bool("update", false, "write the manifests that are rendered from the chart")

const generated = "# Rendered from deploy/helm/sidebus by `make manifests`, for kubectl without Helm.\n"

// sidecarPatch is what the Kustomize component adds to a pod.
const sidecarPatch = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: sidecar
spec:
  template:
    metadata:
      labels:
        {{- include "sidebus.podLabels" .Subcharts.sidebus | nindent 8 }}
    spec:
      terminationGracePeriodSeconds: 60
      securityContext:
        # All containers run in this group, so they may use the socket in the volume.
        fsGroup: 10001
      volumes:
        - {{ include "sidebus.volume" .Subcharts.sidebus | indent 10 | trim }}
      initContainers:
        - {{ include "sidebus.container" .Subcharts.sidebus | indent 10 | trim }}
`

// manifests returns the files for kubectl, by their paths.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	values := examples(t)
	app := mustRender(t, orders, nil)
	values["monitoring"] = chartutil.Values{"podMonitor": map[string]any{"enabled": true}}
	values["scaler"] = maps.Clone(values["trial"])
	values["scaler"]["scaler"] = map[string]any{"enabled": true}
	patch := load(t, orders)
	patch.Templates = []*chart.File{{Name: "templates/sidecar.yaml", Data: []byte(sidecarPatch)}}
	patched, err := render(patch, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"../../examples/kubernetes/app.yaml":           app["serviceaccount.yaml"] + "---\n" + app["deployment.yaml"] + "---\n" + app["networkpolicy.yaml"],
		"../../examples/kubernetes/redis.yaml":         mustRender(t, sidebus, values["trial"])["redis-single.yaml"],
		"../../examples/kubernetes/monitoring.yaml":    mustRender(t, sidebus, values["monitoring"])["podmonitor.yaml"],
		"../../examples/keda/scaler.yaml":              mustRender(t, sidebus, values["scaler"])["scaler.yaml"],
		"../../deploy/kubernetes/valkey.yaml":          mustRender(t, sidebus, values["trial-valkey"])["redis-single.yaml"],
		"../../deploy/kubernetes/sentinel.yaml":        mustRender(t, sidebus, values["trial-sentinel"])["redis-sentinel.yaml"],
		"../../deploy/kubernetes/cluster.yaml":         mustRender(t, sidebus, values["trial-cluster"])["redis-cluster.yaml"],
		"../../deploy/kubernetes/sidecar/sidecar.yaml": patched["sidecar.yaml"],
	}
}

// The manifests for kubectl are those of the chart.
func TestManifestsAreCurrent(t *testing.T) {
	t.Parallel()
	for path, text := range manifests(t) {
		decode(t, path, text)
		text = generated + text
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if present, err := os.ReadFile(path); err != nil || string(present) != text {
			t.Errorf("%s is stale, run make manifests (%v)", path, err)
		}
	}
}

// The component adds the sidecar to what has its label, and to nothing else.
func TestKustomizeComponentAddsTheSidecar(t *testing.T) {
	t.Parallel()
	files := filesys.MakeFsInMemory()
	for _, name := range []string{"kustomization.yaml", "sidecar.yaml"} {
		text, err := os.ReadFile("../../deploy/kubernetes/sidecar/" + name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, files, "/sidecar/"+name, string(text))
	}
	pod := "{metadata: {labels: {app: a}}, spec: {containers: [{name: app, image: 'app:v1'}], initContainers: [{name: migrate, image: 'app:v1'}]}}"
	write(t, files, "/app/kustomization.yaml", "resources: [app.yaml]\ncomponents: [../sidecar]\n")
	write(t, files, "/app/app.yaml", strings.Join([]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {sidebus: sidecar}}, spec: {selector: {matchLabels: {app: a}}, template: " + pod + "}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: b, labels: {sidebus: sidecar}}, spec: {template: " + pod + "}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {selector: {matchLabels: {app: a}}, template: " + pod + "}}",
	}, "\n---\n"))
	built, err := krusty.MakeKustomizer(&krusty.Options{PluginConfig: types.DisabledPluginConfig()}).Run(files, "/app")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, o := range decode(t, "kustomized", string(text)) {
		switch v := o.value.(type) {
		case *apps.Deployment:
			got[v.Name] = containers(v.Spec.Template.Spec)
		case *batch.Job:
			got[v.Name] = containers(v.Spec.Template.Spec)
		}
	}
	for name, want := range map[string][]string{
		"a": {"sidebus", "migrate", "app"}, "b": {"sidebus", "migrate", "app"}, "c": {"migrate", "app"},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s has %v, want %v", name, got[name], want)
		}
	}
}

// containers returns the names in the order in which they start.
func containers(pod core.PodSpec) (names []string) {
	for _, c := range pod.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Containers {
		names = append(names, c.Name)
	}
	return names
}

func write(t *testing.T, files filesys.FileSystem, name, text string) {
	t.Helper()
	if err := files.WriteFile(name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
