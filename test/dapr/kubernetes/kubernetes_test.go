// Package kubernetes checks the manifests of examples/dapr with what Dapr's injector makes of them.
package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	components "github.com/dapr/dapr/pkg/apis/components/v1alpha1"
	"github.com/dapr/dapr/pkg/injector/consts"
	"github.com/dapr/dapr/pkg/injector/patcher"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) { sidecartest.Main(m) }

// sockets is where daprd looks for components by default.
const sockets = consts.ComponentsUDSDefaultFolder

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "dapr", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// injected returns the pod of the example as it is with Dapr's sidecar.
func injected(t *testing.T) *core.Pod {
	t.Helper()
	var deployment apps.Deployment
	read(t, "kubernetes/app.yaml", &deployment)
	pod := &core.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	sidecar := patcher.NewSidecarConfig(pod)
	sidecar.Mode, sidecar.DisableTokenVolume = consts.ModeKubernetes, true
	sidecar.SetFromPodAnnotations()
	patch, err := sidecar.GetPatch()
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patcher.PatchPod(pod, patch)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

func TestSidebusStartsBeforeDaprd(t *testing.T) {
	t.Parallel()
	pod := injected(t)
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
		if c.RestartPolicy == nil || *c.RestartPolicy != core.ContainerRestartPolicyAlways {
			t.Errorf("%s does not keep running", c.Name)
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool {
			return m.MountPath == sockets && m.Name == "dapr-components" && !m.ReadOnly
		}) {
			t.Errorf("%s does not share the folder of sockets: %v", c.Name, c.VolumeMounts)
		}
	}
	if !slices.Equal(names, []string{"sidebus", "daprd"}) || len(pod.Spec.Containers) != 1 {
		t.Fatalf("got the init containers %v and %d others", names, len(pod.Spec.Containers))
	}
	sidebus := pod.Spec.InitContainers[0]
	if sidebus.StartupProbe == nil || sidebus.StartupProbe.HTTPGet.Path != "/startup" {
		t.Error("daprd does not wait until Sidebus is up")
	}
	if sidebus.SecurityContext == nil || *sidebus.SecurityContext.RunAsUser == 0 || !*sidebus.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("Sidebus needs neither root nor a file system")
	}
}

func TestSidebusFindsDaprd(t *testing.T) {
	t.Parallel()
	containers := injected(t).Spec.InitContainers
	args := strings.Join(containers[1].Args, " ")
	port := regexp.MustCompile(`--dapr-grpc-port (\d+)`).FindStringSubmatch(args)
	if port == nil {
		t.Fatalf("daprd runs with %s", args)
	}
	settings := map[string]string{}
	code, help := sidecartest.Run(t, "serve", "--help")
	if code != 0 {
		t.Fatalf("serve --help: exit code %d", code)
	}
	for _, variable := range containers[0].Env {
		settings[variable.Name] = variable.Value
		if strings.HasPrefix(variable.Name, "SIDEBUS_") && !strings.Contains(help, variable.Name) {
			t.Errorf("the binary does not know %s", variable.Name)
		}
	}
	if got := settings["SIDEBUS_DAPR_GRPC_ADDR"]; got != "127.0.0.1:"+port[1] {
		t.Errorf("Sidebus looks for daprd at %q, it is at port %s", got, port[1])
	}
	if folder, has := settings[consts.ComponentsUDSMountPathEnvVar]; has || folder != "" {
		t.Errorf("daprd has its sockets in %s, Sidebus in %s", sockets, folder)
	}
	var component components.Component
	read(t, "kubernetes/component.yaml", &component)
	kind, _ := strings.CutSuffix(settings["SIDEBUS_DAPR_SOCKET"], ".sock")
	if component.Spec.Type != "pubsub."+kind {
		t.Errorf("the Component is of type %s, the socket makes pubsub.%s", component.Spec.Type, kind)
	}
}

// Apart from what they are of, the files say the same name, so that the app need not care.
func TestComponentsDifferInTypeAlone(t *testing.T) {
	t.Parallel()
	for folder, kind := range map[string]string{
		"sidebus": "pubsub.sidebus", "azure": "pubsub.azure.servicebus.topics", "redis": "pubsub.redis",
	} {
		var component components.Component
		read(t, "components/"+folder+"/bus.yaml", &component)
		if component.Name != "bus" || component.Spec.Type != kind || component.Spec.Version != "v1" {
			t.Errorf("%s is %s of type %s/%s", folder, component.Name, component.Spec.Type, component.Spec.Version)
		}
	}
}
