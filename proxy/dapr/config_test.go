package dapr

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestDAPR_1_SocketPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ socket, injector, runtime, want string }{
		{"sidebus.sock", "", "", "/tmp/dapr-components-sockets/sidebus.sock"},
		{"sidebus.sock", "/a", "/b", "/a/sidebus.sock"},
		{"sidebus.sock", "", "/b", "/b/sidebus.sock"},
		{"/run/x.sock", "/a", "", "/run/x.sock"},
		{"unix:///run/x.sock", "/a", "", "/run/x.sock"},
		{"", "", "", "error"},
		{"unix://x.sock", "", "", "error"},
		{"/run/", "", "", "error"},
		{"sidebus", "", "", "error"},
		{".sock", "", "", "error"},
	} {
		env := func(name string) string {
			return map[string]string{"DAPR_COMPONENT_SOCKETS_FOLDER": c.injector, "DAPR_COMPONENTS_SOCKETS_FOLDER": c.runtime}[name]
		}
		got, err := SocketPath(c.socket, env)
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.socket, got, c.want)
		}
	}
}

// A socket of the name that Dapr has for its own component takes its place.
func TestDAPR_1_DropIn(t *testing.T) {
	t.Parallel()
	b := onSockets(t, func(c *Config) { c.DropIn = true })
	for _, c := range []struct{ file, kind string }{
		{"sidebus", "topic"}, {"azure.servicebus.topics", "topic"}, {"azure.servicebus", "topic"}, {"azure.servicebus.queues", "queue"}, {"azure.servicebusqueues", "queue"},
	} {
		r := b.runtime("sb", filepath.Join(filepath.Dir(b.config.Socket), c.file+".sock"))
		// as a Component that was written for Azure has it
		b.ok(r.init("connectionString", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=s", "maxConcurrentHandlers", "10",
			"timeoutInSec", "60", "handlerTimeoutInSec", "60", "disableEntityManagement", "false", "maxDeliveryCount", "3", "lockDurationInSec", "60",
			"lockRenewalInSec", "20", "maxActiveMessages", "10000", "defaultMessageTimeToLiveInSec", "10", "autoDeleteOnIdleInSec", "3600",
			"minConnectionRecoveryInSec", "2", "maxConnectionRecoveryInSec", "300", "maxRetriableErrorsPerSec", "10", "publishMaxRetries", "5",
			"publishInitialRetryIntervalInMs", "500"))
		name := "e-" + c.file
		f := r.subscribe(name)
		b.eventually(func() bool { return b.metric("sidebus_dapr_streams") >= 1 && b.kindOf(name) == c.kind })
		r.send(name, "1")
		_ = f.next()
	}
	if strings.Contains(b.log.String(), "unknown metadata") {
		t.Error(b.log)
	}
}

func TestDAPR_1_SocketsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"drop-in alone": {DropIn: true},
		"too long":      {Socket: "/" + strings.Repeat("x", 110) + ".sock"},
	} {
		if _, err := c.sockets(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if places, err := (Config{Socket: "/s/azure.servicebus.queues.sock", DropIn: true}).sockets(); err != nil || len(places) != 4 || places[0].profile != AzureQueues {
		t.Errorf("got %v, %v", places, err)
	}
}
