package dapr

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
)

// The folder in which the Dapr runtime looks for sockets, and the variables that change it. The Dapr injector sets the
// first one in component containers; the runtime reads the second one.
const (
	DefaultFolder    = "/tmp/dapr-components-sockets"
	injectorVariable = "DAPR_COMPONENT_SOCKETS_FOLDER"
	runtimeVariable  = "DAPR_COMPONENTS_SOCKETS_FOLDER"
)

// maxSocketPath is the longest path of a unix socket, in bytes.
const maxSocketPath = 107

// dropIns are the sockets that replace built-in components of Dapr, under each name that Dapr has for them. The runtime
// prefers what it finds in its folder.
var dropIns = []struct {
	file    string
	profile Profile
}{
	{"azure.servicebus.topics.sock", AzureTopics},
	{"azure.servicebus.sock", AzureTopics},
	{"azure.servicebus.queues.sock", AzureQueues},
	{"azure.servicebusqueues.sock", AzureQueues},
}

// Config configures the component.
type Config struct {
	// Socket is the path of the socket, see SocketPath. The component type is "pubsub." plus the file name without its
	// last extension. Empty: no component.
	Socket string
	// DropIn also serves the component types pubsub.azure.servicebus.topics and .queues.
	DropIn bool
	// HealAddr is the gRPC API of the Dapr runtime, host:port. If the runtime has subscriptions to this component while
	// Sidebus starts, then Sidebus was restarted alone. The runtime is told to shut down; its supervisor restarts it.
	// Empty: never.
	HealAddr string
	// APIToken authenticates requests to the runtime. Empty: none.
	APIToken string
	// Authorizer says what the processes at the sockets may do. nil permits all calls.
	Authorizer access.Authorizer
	// MaxMessage is the maximum size of one request in bytes.
	MaxMessage int

	healGrace, healPause time.Duration // zero: the defaults
}

// Folder returns the folder of Dapr's sockets, by the environment.
func Folder(env func(string) string) string {
	for _, variable := range []string{injectorVariable, runtimeVariable} {
		if folder := env(variable); folder != "" {
			return folder
		}
	}
	return DefaultFolder
}

// SocketPath checks the path that the user set for a socket, and returns it absolute. A relative path is in Folder.
func SocketPath(socket string, env func(string) string) (string, error) {
	path := strings.TrimPrefix(socket, "unix://")
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return "", fmt.Errorf("is %q, must name a file", socket)
	case path != socket && !filepath.IsAbs(path):
		return "", fmt.Errorf("is %q, must be unix:///absolute/path", socket)
	case !filepath.IsAbs(path):
		path = filepath.Join(Folder(env), path)
	}
	path = filepath.Clean(path)
	if base := filepath.Base(path); strings.HasPrefix(base, ".") || !strings.Contains(base, ".") {
		return "", fmt.Errorf(
			"is %q, the file must have a name and an extension, such as sidebus.sock: the component type is \"pubsub.\" plus the name",
			socket,
		)
	}
	return path, nil
}

// socketSpec is a socket to serve.
type socketSpec struct {
	path    string
	profile Profile
}

// sockets returns all sockets to serve.
func (c Config) sockets() ([]socketSpec, error) {
	if c.Socket == "" {
		if c.DropIn {
			return nil, errors.New("the Dapr drop-in needs a socket; set --dapr-socket too")
		}
		return nil, nil
	}
	all := []socketSpec{{c.Socket, Sidebus}}
	if c.DropIn {
		for _, d := range dropIns {
			path := filepath.Join(filepath.Dir(c.Socket), d.file)
			if path == c.Socket {
				all[0].profile = d.profile
				continue
			}
			all = append(all, socketSpec{path, d.profile})
		}
	}
	for _, p := range all {
		if n := len(p.path); n > maxSocketPath {
			return nil, fmt.Errorf("the path %s is %d bytes long, at most %d are allowed for a unix socket; use a shorter folder", p.path, n, maxSocketPath)
		}
	}
	return all, nil
}
