package dapr

import (
	"context"
	"log/slog"
	"sync"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/metadata"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// maxInstanceName is the longest name of a Component resource, in bytes.
const maxInstanceName = 253

// instanceHeader names the Component resource of a call.
const instanceHeader = "x-component-instance"

// features are what the Dapr runtime need not do itself: messages expire in Sidebus, batches are stored in one step,
// and a batch of one message need not wait.
var features = []string{"MESSAGE_TTL", "BULK_PUBSUB", "BULK_SUBSCRIBE_IMMEDIATE"}

// component serves the calls of one socket.
type component struct {
	proto.UnimplementedPubSubServer
	broker  *broker.Broker
	metrics *obs.Metrics
	logger  *slog.Logger

	authorizer access.Authorizer

	stopping <-chan struct{} // closed when streams must end

	spec     socketSpec
	state    *stateFile
	inits    sync.Mutex // serializes Init, so that the file has the metadata of the last one
	registry *registry
}

func newComponent(s *Server, p socketSpec) *component {
	c := &component{
		broker: s.broker, metrics: s.metrics, logger: s.logger, stopping: s.stopping,
		authorizer: s.config.Authorizer, spec: p, state: newStateFile(p.path),
	}
	c.registry = newRegistry(c.savedSettings)
	return c
}

// savedSettings returns the settings of the last Init of a Component resource before a restart, or the defaults.
func (c *component) savedSettings(name string) settings {
	s, _, _ := c.spec.profile.defaults().apply(c.state.find(name), atComponent)
	return s
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
			semantics.Shorten(key.name), "name", semantics.Shorten(name),
		)
	}
	c.inits.Lock()
	defer c.inits.Unlock()
	if err := c.registry.init(key, found); err != nil {
		return nil, err
	}
	if err := c.state.keep(key.name, effective(properties)); err != nil {
		c.logger.WarnContext(
			ctx, "cannot save the metadata of a Component; if Sidebus restarts alone, publishes use the defaults",
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
	c.registry.pause(keyOf(ctx), true)
	return &proto.PauseResponse{}, nil
}

// Resume lets the streams of an instance send again.
func (c *component) Resume(ctx context.Context, _ *proto.ResumeRequest) (*proto.ResumeResponse, error) {
	c.registry.pause(keyOf(ctx), false)
	return &proto.ResumeResponse{}, nil
}
