package dapr

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/metadata"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Limits of what clients can allocate.
const (
	maxInstances    = 1000
	maxInstanceName = 253 // of a Component resource
)

// instanceHeader names the Component resource of a call.
const instanceHeader = "x-component-instance"

// features are what the Dapr runtime need not do itself: messages expire in Sidebus, batches are stored in one step,
// and a batch of one message need not wait.
var features = []string{"MESSAGE_TTL", "BULK_PUBSUB", "BULK_SUBSCRIBE_IMMEDIATE"}

// component serves the calls of one socket.
type component struct {
	proto.UnimplementedPubSubServer
	broker   *broker.Broker
	metrics  *obs.Metrics
	logger   *slog.Logger
	stopping <-chan struct{} // closed when streams must end

	spec  socketSpec
	state *stateFile
	inits sync.Mutex // serializes Init, so that the file has the metadata of the last one

	mu          sync.Mutex
	instances   map[instanceKey]*instance
	latest      map[string]settings // of each Component resource, for connections without Init
	runtimeSeen bool                // a runtime has called Init or PullMessages
}

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

func newComponent(s *Server, p socketSpec) *component {
	return &component{
		broker: s.broker, metrics: s.metrics, logger: s.logger, stopping: s.stopping,
		spec: p, state: newStateFile(p.path), instances: map[instanceKey]*instance{}, latest: map[string]settings{},
	}
}

func (c *component) typeName() string { return typeOf(c.spec.path) }

// keyOf returns the instance of a call. The name may be empty.
func keyOf(ctx context.Context) instanceKey {
	key := instanceKey{conn: connOf(ctx)}
	if values := metadata.ValueFromIncomingContext(ctx, instanceHeader); len(values) > 0 {
		key.name = values[0]
	}
	return key
}

// Init sets the metadata of a Component resource. It does not use the store, which may be down.
func (c *component) Init(ctx context.Context, request *proto.PubSubInitRequest) (*proto.PubSubInitResponse, error) {
	key, properties := keyOf(ctx), request.GetMetadata().GetProperties()
	if len(key.name) > maxInstanceName {
		return nil, semantics.Errorf(
			semantics.InvalidArgument, "%s is %d bytes long, at most %d are allowed", instanceHeader, len(key.name),
			maxInstanceName,
		)
	}
	found, unknown, wrong := c.spec.profile.defaults().apply(properties, atComponent)
	if err := firstWrong(found, wrong); err != nil {
		return nil, err
	}
	for _, name := range unknown {
		c.logger.WarnContext(
			ctx, "unknown metadata of a Component ignored", "type", c.typeName(), "component",
			cut(key.name), "name", cut(name),
		)
	}
	c.inits.Lock()
	defer c.inits.Unlock()
	if err := c.initInstance(key, found); err != nil {
		return nil, err
	}
	if err := c.state.keep(key.name, effective(properties)); err != nil {
		c.logger.WarnContext(
			ctx,
			"cannot save the metadata of a Component; if Sidebus restarts alone, publishes use the defaults",
			"error", err,
		)
	}
	return &proto.PubSubInitResponse{}, nil
}

// firstWrong returns the first error in the metadata of a component.
func firstWrong(s settings, wrong []badValue) error {
	if len(wrong) > 0 {
		return semantics.Errorf(semantics.InvalidArgument, "metadata %s %s", wrong[0].name, wrong[0].text).
			With(semantics.DetailField, wrong[0].name)
	}
	if s.kind == semantics.TopicKind && s.consumer != "" {
		if _, err := semantics.ParseSourcePath(semantics.SubscriptionPath("t", s.consumer)); err != nil {
			return semantics.Errorf(semantics.InvalidArgument, "metadata consumerID must be a valid subscription name: %s",
				semantics.AsError(err).Message).
				With(semantics.DetailField, "consumerID")
		}
	}
	return nil
}

// effective returns the metadata that has an effect here, so that no password of another component is saved.
func effective(properties map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range properties {
		if _, ok := findSetting(name); ok {
			kept[name] = value
		}
	}
	return kept
}

// initInstance sets the settings of an instance. Its open streams keep theirs.
func (c *component) initInstance(key instanceKey, s settings) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runtimeSeen = true
	i, err := c.addInstance(key)
	if err != nil {
		return err
	}
	if _, isKnown := c.latest[key.name]; isKnown || len(c.latest) < maxInstances {
		c.latest[key.name] = s
	}
	i.settings = s
	i.pause(false)
	return nil
}

// addInstance returns the instance of key, and adds it if it is new. The caller holds the mutex.
func (c *component) addInstance(key instanceKey) (*instance, error) {
	i := c.instances[key]
	if i != nil {
		return i, nil
	}
	if len(c.instances) >= maxInstances {
		return nil, semantics.Errorf(
			semantics.QuotaExceeded, "there are %d Component resources on one socket, which is the limit; use another socket",
			maxInstances,
		)
	}
	i = &instance{settings: c.settingsFor(key), pulls: map[*pullStream]bool{}}
	c.instances[key] = i
	return i, nil
}

// settingsFor returns the settings of an instance. Without Init on its connection, they are those of the last Init,
// also before a restart, or the defaults. The caller holds the mutex.
func (c *component) settingsFor(key instanceKey) settings {
	if i := c.instances[key]; i != nil {
		return i.settings
	}
	if s, ok := c.latest[key.name]; ok {
		return s
	}
	s, _, _ := c.spec.profile.defaults().apply(c.state.find(key.name), atComponent)
	return s
}

// settingsOf returns the settings of the instance of a call.
func (c *component) settingsOf(ctx context.Context) settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settingsFor(keyOf(ctx))
}

// forget removes the instances of a closed connection.
func (c *component) forget(conn *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.instances {
		if key.conn == conn {
			delete(c.instances, key)
		}
	}
}

// hasSeenRuntime reports whether a runtime has called Init or PullMessages since this process started.
func (c *component) hasSeenRuntime() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runtimeSeen
}

// Features returns what the Dapr runtime need not do itself.
func (c *component) Features(context.Context, *proto.FeaturesRequest) (*proto.FeaturesResponse, error) {
	return &proto.FeaturesResponse{Features: features}, nil
}

// Ping always succeeds. The probes report the state of the store; calls wait for a store that is down.
func (c *component) Ping(context.Context, *proto.PingRequest) (*proto.PingResponse, error) {
	return &proto.PingResponse{}, nil
}

// Pause stops the streams of an instance from sending. They still take acknowledgments.
func (c *component) Pause(ctx context.Context, _ *proto.PauseRequest) (*proto.PauseResponse, error) {
	c.setPaused(ctx, true)
	return &proto.PauseResponse{}, nil
}

// Resume lets the streams of an instance send again.
func (c *component) Resume(ctx context.Context, _ *proto.ResumeRequest) (*proto.ResumeResponse, error) {
	c.setPaused(ctx, false)
	return &proto.ResumeResponse{}, nil
}

func (c *component) setPaused(ctx context.Context, isPaused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[keyOf(ctx)]; i != nil {
		i.pause(isPaused)
	}
}

// pause pauses or resumes the streams of an instance. The caller holds the mutex of the component.
func (i *instance) pause(isPaused bool) {
	for p := range i.pulls {
		p.setPaused(isPaused)
	}
}

// deadLetterSuffix addresses the dead-letter queue of an entity, in any case (DLQ-2).
const deadLetterSuffix = "/$deadletterqueue"

// addressOf splits a topic name into the path and the sub-queue.
func addressOf(topic string) (path string, sub semantics.SubQueue) {
	path, isDead := cutSuffixFold(topic, deadLetterSuffix)
	if !isDead {
		return topic, semantics.MainQueue
	}
	if source, isTransfer := cutSuffixFold(path, "/$transfer"); isTransfer {
		return source, semantics.TransferDeadLetterQueue
	}
	return path, semantics.DeadLetterQueue
}

func cutSuffixFold(text, suffix string) (string, bool) {
	if n := len(text) - len(suffix); n > 0 && strings.EqualFold(text[n:], suffix) {
		return text[:n], true
	}
	return text, false
}

// sourceOf returns what a subscription to a topic receives from.
func sourceOf(topic string, s settings) (semantics.Source, error) {
	path, sub := addressOf(topic)
	if _, _, isSubscription := semantics.SplitSubscription(path); !isSubscription && s.kind == semantics.TopicKind {
		parsed, err := semantics.ParsePath(path)
		if err != nil {
			return semantics.Source{}, err
		}
		if s.consumer == "" {
			return semantics.Source{}, semantics.Errorf(
				semantics.InvalidArgument, "metadata consumerID is missing; it names the subscription of topic %q",
				cut(path),
			)
		}
		path = semantics.SubscriptionPath(parsed, s.consumer)
	}
	path, err := semantics.ParseSourcePath(path)
	if err != nil {
		return semantics.Source{}, fmt.Errorf("topic %q: %w", cut(topic), err)
	}
	return semantics.Source{Path: path, SubQueue: sub}, nil
}
