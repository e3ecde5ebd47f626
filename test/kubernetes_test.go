package test

import (
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// The part of Kubernetes' schema that the example uses. Decoding is strict, so a field in the wrong place fails.
type (
	manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Type       string
		Automount  *bool             `yaml:"automountServiceAccountToken"` // of a ServiceAccount
		StringData map[string]string `yaml:"stringData"`
		Spec       struct {
			Replicas    int
			ServiceName string    `yaml:"serviceName"`
			Selector    yaml.Node // a map of labels in a Service, a matcher elsewhere
			PodSelector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			} `yaml:"podSelector"`
			PolicyTypes []string `yaml:"policyTypes"`
			Ingress     []struct {
				From  []map[string]any
				Ports []struct {
					Protocol string
					Port     int
				}
			}
			PodMetricsEndpoints []struct {
				Port, Path, Interval string
			} `yaml:"podMetricsEndpoints"`
			Ports []struct {
				Name       string
				Port       int
				TargetPort string `yaml:"targetPort"`
			}
			Template struct {
				Metadata metadata
				Spec     podSpec
			}
			VolumeClaimTemplates []struct {
				Metadata metadata
				Spec     struct {
					AccessModes []string `yaml:"accessModes"`
					Resources   struct{ Requests map[string]string }
				}
			} `yaml:"volumeClaimTemplates"`
		}
	}
	metadata struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	podSpec struct {
		ServiceAccountName            string          `yaml:"serviceAccountName"`
		Automount                     *bool           `yaml:"automountServiceAccountToken"`
		TerminationGracePeriodSeconds int             `yaml:"terminationGracePeriodSeconds"`
		SecurityContext               securityContext `yaml:"securityContext"`
		InitContainers                []container     `yaml:"initContainers"`
		Containers                    []container
		Volumes                       []struct {
			Name     string
			EmptyDir map[string]string `yaml:"emptyDir"`
		}
	}
	securityContext struct {
		RunAsNonRoot             bool              `yaml:"runAsNonRoot"`
		RunAsUser                int               `yaml:"runAsUser"`
		FSGroup                  int               `yaml:"fsGroup"`
		AllowPrivilegeEscalation *bool             `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool              `yaml:"readOnlyRootFilesystem"`
		SeccompProfile           map[string]string `yaml:"seccompProfile"`
		Capabilities             struct{ Drop []string }
	}
	container struct {
		Name, Image     string
		ImagePullPolicy string `yaml:"imagePullPolicy"`
		RestartPolicy   string `yaml:"restartPolicy"`
		Command, Args   []string
		Env             []struct {
			Name, Value string
			ValueFrom   struct {
				SecretKeyRef map[string]string `yaml:"secretKeyRef"`
				FieldRef     map[string]string `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		StartupProbe   probe `yaml:"startupProbe"`
		ReadinessProbe probe `yaml:"readinessProbe"`
		LivenessProbe  probe `yaml:"livenessProbe"`
		Lifecycle      struct {
			PreStop struct{ Exec struct{ Command []string } } `yaml:"preStop"`
		}
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext securityContext `yaml:"securityContext"`
		VolumeMounts    []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	probe struct {
		HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
		TCPSocket        struct{ Port string }       `yaml:"tcpSocket"`
		PeriodSeconds    int                         `yaml:"periodSeconds"`
		FailureThreshold int                         `yaml:"failureThreshold"`
	}
)

// manifests reads one file of the example.
func manifests(t *testing.T, name string) []manifest {
	t.Helper()
	file, err := os.Open("../examples/kubernetes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	for all := []manifest(nil); ; {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" {
			t.Errorf("%s: a manifest without version, kind or name", name)
		}
		all = append(all, m)
	}
}

// application returns the Deployment of the example.
func application(t *testing.T) manifest {
	t.Helper()
	for _, m := range manifests(t, "app.yaml") {
		if m.Kind == "Deployment" {
			return m
		}
	}
	t.Fatal("app.yaml has no Deployment")
	return manifest{}
}

func TestKubernetesSidecarFitsTheBinary(t *testing.T) {
	t.Parallel()
	app := application(t)
	if n := len(app.Spec.Template.Spec.InitContainers); n != 1 {
		t.Fatalf("got %d init containers, want the sidecar", n)
	}
	sidecar := app.Spec.Template.Spec.InitContainers[0]
	if sidecar.RestartPolicy != "Always" {
		t.Errorf("restartPolicy %q makes it an init container that must end, not a sidecar", sidecar.RestartPolicy)
	}
	if !hasVerb(t, sidecar.Args...) {
		t.Errorf("args %v are no command line of the binary", sidecar.Args)
	}
	hook := sidecar.Lifecycle.PreStop.Exec.Command
	if len(hook) < 2 || hook[0] != "/sidebus" || !hasVerb(t, hook[1:]...) {
		t.Errorf("preStop %v is no command line of the binary", hook)
	}
	_, help := sidecartest.Run(t, "serve", "--help")
	known := regexp.MustCompile(`SIDEBUS_[A-Z_]+`).FindAllString(help, -1)
	settings := map[string]string{}
	for _, variable := range sidecar.Env {
		settings[variable.Name] = variable.Value
		if strings.HasPrefix(variable.Name, "SIDEBUS_") && !slices.Contains(known, variable.Name) {
			t.Errorf("the binary does not know %s", variable.Name)
		}
	}
	probes := map[string]probe{
		"/startup": sidecar.StartupProbe, "/readiness": sidecar.ReadinessProbe, "/liveness": sidecar.LivenessProbe,
	}
	for path, p := range probes {
		if p.HTTPGet.Path != path || p.HTTPGet.Port != sidecar.Ports[0].Name {
			t.Errorf("probe of %s: got %+v", path, p.HTTPGet)
		}
	}
	if settings["SIDEBUS_PROBE_ADDR"] != ":7423" || sidecar.Ports[0].ContainerPort != 7423 {
		t.Errorf("the kubelet cannot reach the probes at %q", settings["SIDEBUS_PROBE_ADDR"])
	}
	for _, inside := range []string{"SIDEBUS_ADMIN_ADDR", "SIDEBUS_HTTP_ADDR"} {
		if settings[inside] != "" {
			t.Errorf("%s is %q: drain, settings and HTTP belong on loopback", inside, settings[inside])
		}
	}
	if port := app.Spec.Template.Metadata.Annotations["prometheus.io/port"]; port != "7423" {
		t.Errorf("Prometheus scrapes port %q", port)
	}
	if sidecar.SecurityContext.RunAsUser == 0 || !sidecar.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the sidecar needs neither root nor a file system")
	}
	if settings["SIDEBUS_DRAIN_TIMEOUT"] != "25s" || app.Spec.Template.Spec.TerminationGracePeriodSeconds <= 25 {
		t.Error("the grace period must be longer than the drain")
	}
}

// The application reaches the socket of the sidecar: it is in a volume of both, and of a group that both are in.
func TestKubernetesContainersShareTheSocket(t *testing.T) {
	t.Parallel()
	pod := application(t).Spec.Template.Spec
	if len(pod.Volumes) != 1 || pod.Volumes[0].EmptyDir == nil || pod.SecurityContext.FSGroup == 0 {
		t.Fatalf("got volumes %v and group %d, want one empty directory and a group", pod.Volumes, pod.SecurityContext.FSGroup)
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		address := ""
		for _, variable := range c.Env {
			if variable.Name == "SIDEBUS_GRPC_ADDR" {
				address = variable.Value
			}
		}
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != pod.Volumes[0].Name || address != "unix://"+c.VolumeMounts[0].MountPath+"/grpc" {
			t.Errorf("%s uses %q, and mounts %v", c.Name, address, c.VolumeMounts)
		}
	}
}

func TestKubernetesRedisKeepsMessages(t *testing.T) {
	t.Parallel()
	kinds := map[string]manifest{}
	for _, m := range manifests(t, "redis.yaml") {
		kinds[m.Kind] = m
	}
	args := strings.Join(kinds["StatefulSet"].Spec.Template.Spec.Containers[0].Args, " ")
	for _, want := range []string{"--appendonly yes", "--maxmemory-policy noeviction", "--maxmemory 384mb"} {
		if !strings.Contains(args, want) {
			t.Errorf("Redis runs with %q, want %s", args, want)
		}
	}
	if len(kinds["StatefulSet"].Spec.VolumeClaimTemplates) != 1 || kinds["Service"].Spec.Ports[0].Port != 6379 {
		t.Error("Redis needs a volume and a service on 6379")
	}
}

// Every container has a limit of memory, and an image of one version.
func TestKubernetesContainersAreBoundedAndPinned(t *testing.T) {
	t.Parallel()
	for _, m := range append(manifests(t, "app.yaml"), manifests(t, "redis.yaml")...) {
		pod := m.Spec.Template.Spec
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			if !regexp.MustCompile(`:v?\d[\w.]*$`).MatchString(c.Image) {
				t.Errorf("%s: the image %s has no version", c.Name, c.Image)
			}
			if c.Name != "app" && c.Resources.Limits["memory"] == "" {
				t.Errorf("%s has no limit of memory", c.Name)
			}
		}
	}
}

// Other pods reach probes and metrics of the application's pod, and Redis only with the label that its pods carry.
func TestKubernetesPoliciesFitThePods(t *testing.T) {
	t.Parallel()
	for file, port := range map[string]int{"app.yaml": 7423, "redis.yaml": 6379} {
		var pods map[string]string
		found := false
		for _, m := range manifests(t, file) {
			if labels := m.Spec.Template.Metadata.Labels; labels != nil {
				pods = labels
			}
			if m.Kind != "NetworkPolicy" {
				continue
			}
			found = true
			if app := m.Spec.PodSelector.MatchLabels["app"]; app == "" || app != pods["app"] {
				t.Errorf("%s: the policy is for pods with app=%s, they have %s", file, app, pods["app"])
			}
			if len(m.Spec.Ingress) != 1 || len(m.Spec.Ingress[0].Ports) != 1 || m.Spec.Ingress[0].Ports[0].Port != port || len(m.Spec.Ingress[0].From) != 1 {
				t.Errorf("%s: got %+v, want one rule with port %d", file, m.Spec.Ingress, port)
			}
		}
		if !found {
			t.Errorf("%s has no NetworkPolicy", file)
		}
	}
	app := application(t).Spec.Template
	if app.Metadata.Labels["redis-client"] != "true" {
		t.Error("the policy of Redis does not let the application's pod in")
	}
	endpoint := manifests(t, "monitoring.yaml")[0].Spec.PodMetricsEndpoints[0]
	if endpoint.Port != app.Spec.InitContainers[0].Ports[0].Name || endpoint.Path != "/metrics" {
		t.Errorf("the PodMonitor scrapes %+v", endpoint)
	}
}
