package dapr

import (
	"sync"

	"github.com/sidebus/sidebus/proxy/dapr/internal/inflight"
	"github.com/sidebus/sidebus/semantics"
)

// maxInstances bounds what clients can allocate on one socket.
const maxInstances = 1000

// instanceKey identifies a Component resource of one runtime. Several runtimes may share a socket and use the same
// resource names; each has its own connections.
type instanceKey struct {
	conn *trackedConn
	name string
}

// instance is one Component resource.
type instance struct {
	settings settings
	pulls    map[*pullStream]bool
}

// registry has the Component resources of one socket, with their settings and streams. Its methods may be called
// concurrently.
type registry struct {
	saved func(name string) settings // of a Component resource that has not called Init yet

	mu          sync.Mutex
	instances   map[instanceKey]*instance
	latest      map[string]settings // of each Component resource, for connections without Init
	runtimeSeen bool                // a runtime has called Init or PullMessages
}

func newRegistry(saved func(name string) settings) *registry {
	return &registry{saved: saved, instances: map[instanceKey]*instance{}, latest: map[string]settings{}}
}

// init sets the settings of an instance and resumes it. Its open streams keep theirs.
func (r *registry) init(key instanceKey, s settings) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, err := r.resume(key)
	if err != nil {
		return err
	}
	if _, isKnown := r.latest[key.name]; isKnown || len(r.latest) < maxInstances {
		r.latest[key.name] = s
	}
	i.settings = s
	return nil
}

// join adds a stream to its instance, resumes the instance and returns its settings.
func (r *registry) join(key instanceKey, p *pullStream) (settings, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, err := r.resume(key)
	if err != nil {
		return settings{}, err
	}
	i.pulls[p] = true
	return i.settings, nil
}

// leave removes a stream from its instance.
func (r *registry) leave(key instanceKey, p *pullStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.instances[key]; i != nil {
		delete(i.pulls, p)
	}
}

// forget removes the instances of a closed connection.
func (r *registry) forget(conn *trackedConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.instances {
		if key.conn == conn {
			delete(r.instances, key)
		}
	}
}

// pause pauses or resumes the streams of an instance.
func (r *registry) pause(key instanceKey, isPaused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.instances[key]; i != nil {
		i.pause(isPaused)
	}
}

// settings returns the settings of an instance.
func (r *registry) settings(key instanceKey) settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.instances[key]; i != nil {
		return i.settings
	}
	return r.inherited(key.name)
}

// hasSeenRuntime reports whether a runtime has called Init or PullMessages since this process started.
func (r *registry) hasSeenRuntime() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runtimeSeen
}

// find returns a message in flight whose outcome is open, with its stream; nil: there is none.
func (r *registry) find(token semantics.LockToken) (*pullStream, *inflight.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.instances {
		for p := range i.pulls {
			if m := p.inFlight.Find(token); m != nil {
				return p, m
			}
		}
	}
	return nil, nil
}

// resume returns an instance after its streams were resumed, and adds it if it is new. It runs while the mutex is
// locked, as the functions below.
func (r *registry) resume(key instanceKey) (*instance, error) {
	r.runtimeSeen = true
	i := r.instances[key]
	if i == nil {
		if len(r.instances) >= maxInstances {
			return nil, semantics.Errorf(
				semantics.QuotaExceeded, "there are %d Component resources on one socket, which is the limit; use another socket",
				maxInstances,
			)
		}
		i = &instance{settings: r.inherited(key.name), pulls: map[*pullStream]bool{}}
		r.instances[key] = i
	}
	i.pause(false)
	return i, nil
}

// inherited returns the settings of an instance without Init on its connection: those of the last Init, also before a
// restart, or the defaults.
func (r *registry) inherited(name string) settings {
	if s, ok := r.latest[name]; ok {
		return s
	}
	return r.saved(name)
}

// pause pauses or resumes the streams of an instance.
func (i *instance) pause(isPaused bool) {
	for p := range i.pulls {
		p.inFlight.SetPaused(isPaused)
	}
}
