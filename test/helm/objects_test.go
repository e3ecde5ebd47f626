package helm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that the chart may have, by apiVersion and kind.
var kinds = map[string]func() any{
	"v1 Secret":                               func() any { return new(core.Secret) },
	"v1 Service":                              func() any { return new(core.Service) },
	"v1 ServiceAccount":                       func() any { return new(core.ServiceAccount) },
	"apps/v1 Deployment":                      func() any { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                     func() any { return new(apps.StatefulSet) },
	"batch/v1 Job":                            func() any { return new(batch.Job) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"monitoring.coreos.com/v1 PodMonitor":     func() any { return new(monitoring.PodMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
}

type object struct {
	kind  string
	value any
}

// decode reads the documents of a text, and fails for a kind or a field that Kubernetes does not know.
func decode(t *testing.T, name, text string) (objects []object) {
	t.Helper()
	for _, document := range bytes.Split([]byte("\n"+text), []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		one, err := decodeOne(document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		objects = append(objects, one)
	}
	return objects
}

func decodeOne(document []byte) (object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return object{}, err
	}
	create, ok := kinds[head.APIVersion+" "+head.Kind]
	if !ok {
		return object{}, fmt.Errorf("the chart should have no %s of %s", head.Kind, head.APIVersion)
	}
	if head.Metadata.Name == "" {
		return object{}, fmt.Errorf("a %s has no name", head.Kind)
	}
	value := create()
	if err := yaml.UnmarshalStrict(document, value); err != nil {
		return object{}, fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
	}
	return object{head.Kind, value}, nil
}

// sidecarOf returns the sidecar of the only Deployment that has one.
func sidecarOf(t *testing.T, documents map[string]string) core.Container {
	t.Helper()
	for _, text := range documents {
		if !strings.Contains(text, "kind: Deployment") {
			continue
		}
		for _, o := range decode(t, "deployment", text) {
			deployment, ok := o.value.(*apps.Deployment)
			if !ok {
				continue
			}
			pod := deployment.Spec.Template.Spec
			if len(pod.InitContainers) == 1 && *pod.InitContainers[0].RestartPolicy == core.ContainerRestartPolicyAlways {
				return pod.InitContainers[0]
			}
		}
	}
	t.Fatal("no sidecar")
	return core.Container{}
}

func variable(c core.Container, name string) core.EnvVar {
	for _, v := range c.Env {
		if v.Name == name {
			return v
		}
	}
	return core.EnvVar{}
}
