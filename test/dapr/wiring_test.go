package dapr

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	components "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// metric reports whether there is a sample of a text that is not 0.
func metric(text, part string) bool {
	return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "#") && strings.Contains(line, part) && !strings.HasSuffix(line, " 0")
	})
}

func TestDAPR_1_DaprFindsTheComponent(t *testing.T) {
	t.Parallel()
	p := start(t, setup{})
	p.run(t, "")
	answer := p.daprd.Call(t.Context(), http.MethodGet, "/v1.0/metadata", "", nil)
	var got struct {
		Components []struct {
			Name, Type   string
			Capabilities []string
		}
	}
	if err := json.Unmarshal([]byte(answer.Text), &got); err != nil || len(got.Components) != 1 {
		t.Fatalf("got %s, %v", answer.Text, err)
	}
	c := got.Components[0]
	slices.Sort(c.Capabilities)
	if c.Name != "bus" || c.Type != sidebusType || !slices.Equal(c.Capabilities, []string{"BULK_PUBSUB", "BULK_SUBSCRIBE_IMMEDIATE", "MESSAGE_TTL"}) {
		t.Errorf("Dapr has the component as %+v", c)
	}
}

// The sockets of a Sidebus that has ended do not disturb the next one, nor daprd, which would wait for them.
func TestDAPR_1_StaleSocketsGo(t *testing.T) {
	t.Parallel()
	p := start(t, setup{})
	socket := filepath.Join(p.sockets, "sidebus.sock")
	p.bus.Kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("a killed process cannot remove its socket: %v", err)
	}
	p.bus = sidecartest.Start(t, p.serve...)
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	p.publish(t, "orders", "tea")
	p.finish(t, "tea")
	p.daprd.Kill()
	p.bus.Signal(syscall.SIGTERM)
	if code := p.bus.Exit(t); code != 0 {
		t.Errorf("Sidebus ended with %d", code)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// nobody is the user of Dapr's image.
const nobody = 65532

func TestDAPR_1_DaprRunsAsSomebodyElse(t *testing.T) {
	t.Parallel()
	p := start(t, setup{})
	info, err := os.Stat(filepath.Join(p.sockets, "sidebus.sock"))
	if err != nil || info.Mode().Perm()&0o006 != 0o006 {
		t.Errorf("others may not connect: %v, %v", info.Mode(), err)
	}
	if os.Getuid() != 0 {
		return // only root can run as another user
	}
	// A folder that he can reach, unlike that of the tests perhaps.
	folder := daprtest.Sockets(t)
	o := p.options()
	o.User, o.Binary, o.Resources = nobody, filepath.Join(folder, "daprd"), folder
	copyFile(t, daprtest.Binary(t), o.Binary, 0o755)
	copyFile(t, filepath.Join(p.resources, "0.yaml"), filepath.Join(folder, "0.yaml"), 0o644)
	p.startDaprd(t, o)
	p.publish(t, "orders", "tea")
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}

func TestDAPR_1_TwoComponentsOnOneSocket(t *testing.T) {
	t.Parallel()
	p := start(t, setup{resources: []string{
		daprtest.Component("bus", sidebusType, nil),
		daprtest.Component("jobs", sidebusType, map[string]string{"entityKind": "queue"}),
	}})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"}, daprtest.Subscription{Component: "jobs", Topic: "work"})
	p.publish(t, "orders", "tea")
	p.finish(t, "tea")
	if err := p.sdk.PublishEvent(t.Context(), "jobs", "work", "dig"); err != nil {
		t.Fatal(err)
	}
	p.finish(t, "dig")
	p.awaitEmpty(t, subscription("orders"))
	p.awaitEmpty(t, queue("work"))
}

// Init comes again when a Component file changes.
func TestDAPR_1_HotReload(t *testing.T) {
	t.Parallel()
	newestOnly(t)
	p := start(t, setup{})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	changed := daprtest.Component("bus", sidebusType, map[string]string{"consumerID": "second"})
	if err := os.WriteFile(filepath.Join(p.resources, "0.yaml"), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	const source = "topics/orders/subscriptions/second"
	sidecartest.Eventually(t, "there is the second subscription", func() bool {
		return p.bus.Call(t.Context(), http.MethodGet, "/v1/"+source, "").Status == http.StatusOK
	})
	p.publish(t, "orders", "tea")
	p.finish(t, "tea")
	p.awaitEmpty(t, source)
}

// Dapr names the instance twice when it publishes to a dead-letter topic, and a test of its own names none.
func TestDAPR_1_InstanceHeaders(t *testing.T) {
	t.Parallel()
	p := start(t, setup{})
	conn, err := grpc.NewClient("unix:"+filepath.Join(p.sockets, "sidebus.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := components.NewPubSubClient(conn)
	for header, values := range map[string][]string{"none": {}, "empty": {""}, "one": {"bus"}, "two": {"bus", "bus"}} {
		ctx := t.Context()
		for _, value := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-component-instance", value)
		}
		for range 2 { // twice is not an error
			if _, err := client.Init(ctx, &components.PubSubInitRequest{Metadata: &components.MetadataRequest{
				Properties: map[string]string{"entityKind": "queue", "consumerID": appID},
			}}); err != nil {
				t.Errorf("%s: Init: %v", header, err)
			}
		}
		if _, err := client.Publish(ctx, &components.PublishRequest{Topic: "orders", Data: []byte("{}")}); err != nil {
			t.Errorf("%s: Publish: %v", header, err)
		}
		if _, err := client.Ping(ctx, &components.PingRequest{}); err != nil {
			t.Errorf("%s: Ping: %v", header, err)
		}
		if _, err := client.Pause(ctx, &components.PauseRequest{}); err != nil {
			t.Errorf("%s: Pause: %v", header, err)
		}
		if _, err := client.Resume(ctx, &components.ResumeRequest{}); err != nil {
			t.Errorf("%s: Resume: %v", header, err)
		}
	}
	if n := p.count(t, queue("orders"), "totalMessageCount"); n != 4 {
		t.Errorf("%d messages are there, want 4", n)
	}
}

func TestDAPR_1_WrongValuesAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"maxConcurrentSessions": "many", "entityKind": "stack", "lockDurationInSec": "1", "maxActiveMessages": "0", "requireSessions": "perhaps",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, setup{metadata: map[string]string{name: value}})
			d := daprtest.Launch(t, p.options())
			if code := d.Exit(t); code == 0 || !strings.Contains(d.Log(), name) {
				t.Errorf("daprd ended with %d and does not name the field", code)
			}
		})
	}
}

func TestDAPR_1_UnknownNamesWarn(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"maxDeliveryCuont": "3"}})
	p.run(t, "")
	if !strings.Contains(p.bus.Log(), "maxDeliveryCuont") {
		t.Error("the log does not name what is misspelt")
	}
}

// A Sidebus that comes back under a daprd that runs shuts that down, to be started again, as a kubelet does.
func TestDAPR_1_ARestartHealsItself(t *testing.T) {
	t.Parallel()
	port := daprtest.FreePort(t)
	p := start(t, setup{
		metadata: map[string]string{"lockDurationInSec": "5"},
		serve:    []string{"--dapr-grpc-addr", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))},
	})
	p.app = daprtest.GRPC(t, daprtest.Subscription{Topic: "orders"})
	o := p.options()
	o.GRPCPort = port
	p.startDaprd(t, o)
	p.awaitSource(t, "orders")
	p.publish(t, "orders", "in hand")
	p.next(t, "in hand")

	p.restart(t)
	p.daprd.Exit(t) // which takes its 5 s, as the app has an unsettled message
	p.startDaprd(t, o)
	p.publish(t, "orders", "after")
	seen := map[string]bool{}
	for !seen["after"] || !seen["in hand"] { // which is free when the lock of the killed one has ended
		d := p.app.Next(t)
		seen[string(d.Data)] = true
		d.Answer(daprtest.Success)
	}
	p.awaitEmpty(t, subscription("orders"))
}

// The settings that Dapr gives the containers beside it are enough: the folder of sockets, the address of its API, and
// the token of that.
func TestDAPR_1_DaprsVariablesAreEnough(t *testing.T) {
	const token = "s3cret"
	for _, folder := range []string{"DAPR_COMPONENT_SOCKETS_FOLDER", "DAPR_COMPONENTS_SOCKETS_FOLDER"} {
		t.Run(folder, func(t *testing.T) {
			sockets, port := daprtest.Sockets(t), daprtest.FreePort(t)
			t.Setenv(folder, sockets)
			t.Setenv("DAPR_GRPC_PORT", strconv.Itoa(port))
			t.Setenv("DAPR_API_TOKEN", token)
			flags := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace(), "--dapr-socket", "sidebus.sock"}
			bus := sidecartest.Start(t, flags...)
			o := daprtest.Options{
				AppID: appID, GRPCPort: port, Sockets: sockets, App: daprtest.HTTP(t, daprtest.Subscription{Topic: "invoices"}),
				Resources: daprtest.Resources(t, daprtest.Component("bus", sidebusType, nil)),
			}
			daprd := daprtest.Start(t, o)
			publish := func(token string) int {
				return daprd.Call(t.Context(), http.MethodPost, "/v1.0/publish/bus/orders", "tea", map[string]string{"dapr-api-token": token}).Status
			}
			if with, without := publish(token), publish(""); with != http.StatusNoContent || without != http.StatusUnauthorized {
				t.Errorf("publishing: got %d with the token and %d without", with, without)
			}
			bus.Kill()
			sidecartest.Start(t, flags...)
			if code := daprd.Exit(t); code != 0 {
				t.Errorf("daprd ended with %d", code)
			}
		})
	}
}

// When daprd begins after Sidebus, as it should, nothing is shut down.
func TestDAPR_1_AFirstStartHealsNothing(t *testing.T) {
	t.Parallel()
	port := daprtest.FreePort(t)
	p := start(t, setup{serve: []string{"--dapr-grpc-addr", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}})
	o := p.options()
	o.GRPCPort = port
	p.startDaprd(t, o)
	p.publish(t, "orders", "tea")
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Patience)
	defer cancel()
	if err := p.sdk.Wait(ctx, sidecartest.Patience); err != nil {
		t.Error(err)
	}
}
