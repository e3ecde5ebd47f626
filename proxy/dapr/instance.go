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

// Bounds of what clients may make grow.
const (
	maxInstances    = 1000
	maxInstanceName = 253 // of a Component resource
)

// instanceHeader names the Component resource of a call.
const instanceHeader = "x-component-instance"

// features are what Dapr's runtime need not do itself: messages expire here, batches are stored in one step, and a
// batch of one need not wait to be filled.
var features = []string{"MESSAGE_TTL", "BULK_PUBSUB", "BULK_SUBSCRIBE_IMMEDIATE"}

// component answers the calls of one socket.
type component struct {
	proto.UnimplementedPubSubServer
	broker   *broker.Broker
	metrics  *obs.Metrics
	logger   *slog.Logger
	stopping <-chan struct{} // closed when streams must end

	spec  socketSpec
	state *stateFile
	inits sync.Mutex // one at a time, so that what is kept is what the last one said

	mu          sync.Mutex
	instances   map[instanceKey]*instance
	latest      map[string]settings // of each Component resource, for a connection on which it did not begin
	runtimeSeen bool                // a runtime has begun since this process began
}

// instanceKey names a Component resource of one runtime. Several runtimes may share a socket, with resources of the
// same names, and each has connections of its own.
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

// keyOf says of which instance a call is. The name may be empty, and may stand there twice.
func keyOf(ctx context.Context) instanceKey {
	key := instanceKey{conn: connOf(ctx)}
	if values := metadata.ValueFromIncomingContext(ctx, instanceHeader); len(values) > 0 {
		key.name = values[0]
	}
	return key
}

// Init takes the metadata of a Component resource, in place of what was known before. It asks nothing of the store,
// which may be down.
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
			ctx, "metadata of a Component that Sidebus does not know has no effect", "type", c.typeName(), "component",
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
			"what Dapr's runtime said at its start cannot be kept; after a restart of Sidebus alone it publishes as without metadata",
			"error", err,
		)
	}
	return &proto.PubSubInitResponse{}, nil
}

// firstWrong says what is wrong with the metadata of a component.
func firstWrong(s settings, wrong []badValue) error {
	if len(wrong) > 0 {
		return semantics.Errorf(semantics.InvalidArgument, "metadata %s %s", wrong[0].name, wrong[0].text).
			With(semantics.DetailField, wrong[0].name)
	}
	if s.kind == semantics.TopicKind && s.consumer != "" {
		if _, err := semantics.ParseSourcePath(semantics.SubscriptionPath("t", s.consumer)); err != nil {
			return semantics.Errorf(semantics.InvalidArgument, "metadata consumerID is the name of a subscription: %s",
				semantics.AsError(err).Message).
				With(semantics.DetailField, "consumerID")
		}
	}
	return nil
}

// effective leaves of metadata what has an effect here. So nobody's password is kept.
func effective(properties map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range properties {
		if _, ok := findSetting(name); ok {
			kept[name] = value
		}
	}
	return kept
}

// begin sets the settings of an instance. Its streams go on with theirs until the runtime ends them.
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

// enroll gives an instance a place. The caller holds the mutex.
func (c *component) addInstance(key instanceKey) (*instance, error) {
	i := c.instances[key]
	if i != nil {
		return i, nil
	}
	if len(c.instances) >= maxInstances {
		return nil, semantics.Errorf(
			semantics.QuotaExceeded, "there are %d Component resources on one socket, the most there may be",
			maxInstances,
		)
	}
	i = &instance{settings: c.settingsFor(key), pulls: map[*pullStream]bool{}}
	c.instances[key] = i
	return i, nil
}

// find gives the settings of an instance. One that did not begin on its connection is as it was before, on another one
// or before a restart, or as without metadata. The caller holds the mutex.
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

// settingsOf gives the settings of the instance of a call.
func (c *component) settingsOf(ctx context.Context) settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settingsFor(keyOf(ctx))
}

// forget drops the instances of a connection that is closed.
func (c *component) forget(conn *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.instances {
		if key.conn == conn {
			delete(c.instances, key)
		}
	}
}

// hasHeard tells whether a runtime has begun since this process began.
func (c *component) hasSeenRuntime() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runtimeSeen
}

// Features tells what Dapr's runtime need not do itself.
func (c *component) Features(context.Context, *proto.FeaturesRequest) (*proto.FeaturesResponse, error) {
	return &proto.FeaturesResponse{Features: features}, nil
}

// Ping answers as long as Sidebus does. Whether its store does is for its probes to say: a store that is down is waited
// for.
func (c *component) Ping(context.Context, *proto.PingRequest) (*proto.PingResponse, error) {
	return &proto.PingResponse{}, nil
}

// Pause lets the streams of an instance send nothing any more. They take answers as before.
func (c *component) Pause(ctx context.Context, _ *proto.PauseRequest) (*proto.PauseResponse, error) {
	c.setPaused(ctx, true)
	return &proto.PauseResponse{}, nil
}

// Resume lets them send again.
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

// pause lets the streams of an instance send or not. The caller holds the component's mutex.
func (i *instance) pause(isPaused bool) {
	for p := range i.pulls {
		p.setPaused(isPaused)
	}
}

// deadLetterSuffix addresses the dead letters of an entity, in any case (DLQ-2).
const deadLetterSuffix = "/$deadletterqueue"

// addressOf splits the name of a topic into the path and the sub-queue that it addresses.
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

// sourceOf says what a subscription to a topic receives from.
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
