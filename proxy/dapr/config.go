package dapr

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Where Dapr's runtime looks for sockets, and the variables that move the folder: its injector sets the first one on
// containers of components, the runtime reads the second one.
const (
	DefaultFolder    = "/tmp/dapr-components-sockets"
	injectorVariable = "DAPR_COMPONENT_SOCKETS_FOLDER"
	runtimeVariable  = "DAPR_COMPONENTS_SOCKETS_FOLDER"
)

// maxSocketPath is the most bytes of the path of a unix socket.
const maxSocketPath = 107

// dropIns are the sockets that stand for components of Dapr itself, under each name that Dapr has for them. Its runtime
// takes what it finds in its folder in place of its own.
var dropIns = []struct {
	file    string
	profile Profile
}{
	{"azure.servicebus.topics.sock", AzureTopics},
	{"azure.servicebus.sock", AzureTopics},
	{"azure.servicebus.queues.sock", AzureQueues},
	{"azure.servicebusqueues.sock", AzureQueues},
}

// Config says where the component is served, and how.
type Config struct {
	// Socket is the path of the socket, absolute or unix:///path. A relative one is in the folder of Dapr's sockets,
	// see Folder. The type of the component is "pubsub." and the name of the file without its last extension. "": no
	// component.
	Socket string
	// DropIn serves beside it what Dapr calls pubsub.azure.servicebus.topics and .queues.
	DropIn bool
	// HealAddr is where Dapr's runtime has its gRPC API, as host:port. When it has subscriptions here already while
	// Sidebus starts, Sidebus was restarted under it, and it is told to shut down, to be started again by whoever
	// started it. "": never.
	HealAddr string
	// APIToken is what the runtime wants to see in a request; "": nothing.
	APIToken string
	// MaxMessage is the most bytes of one request.
	MaxMessage int

	healGrace, healPause time.Duration // zero: the defaults
}

// Folder gives the folder of Dapr's sockets as the environment has it.
func Folder(env func(string) string) string {
	for _, variable := range []string{injectorVariable, runtimeVariable} {
		if folder := env(variable); folder != "" {
			return folder
		}
	}
	return DefaultFolder
}

// SocketPath gives the path of a socket that the user names, and checks it.
func SocketPath(socket string, env func(string) string) (string, error) {
	path := strings.TrimPrefix(socket, "unix://")
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return "", fmt.Errorf("is %q, must be the name of a file", socket)
	case path != socket && !filepath.IsAbs(path):
		return "", fmt.Errorf("is %q, must be unix:///absolute/path", socket)
	case !filepath.IsAbs(path):
		path = filepath.Join(Folder(env), path)
	}
	path = filepath.Clean(path)
	if base := filepath.Base(path); strings.HasPrefix(base, ".") || !strings.Contains(base, ".") {
		return "", fmt.Errorf(
			"is %q, its file must have a name and an extension, like sidebus.sock: the type of the component is pubsub. and the name",
			socket,
		)
	}
	return path, nil
}

// place is one socket that is served.
type socketSpec struct {
	path    string
	profile Profile
}

// places gives all sockets that are served.
func (c Config) sockets() ([]socketSpec, error) {
	if c.Socket == "" {
		if c.DropIn {
			return nil, errors.New("the drop-in needs a socket of its own beside it")
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
			return nil, fmt.Errorf("the path %s is %d bytes long, a unix socket may have %d", p.path, n, maxSocketPath)
		}
	}
	return all, nil
}
