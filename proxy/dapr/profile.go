package dapr

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Profile is the component type that a socket stands for. It decides about defaults only; all types accept all names.
type Profile uint8

// Profiles.
const (
	Sidebus     Profile = iota // the component of Sidebus itself
	AzureTopics                // Dapr's pubsub.azure.servicebus.topics
	AzureQueues                // Dapr's pubsub.azure.servicebus.queues
)

// Defaults of settings.
const (
	defaultTimeout       = 60 * time.Second
	defaultMaxActive     = 1000
	defaultErrorsPerSec  = 10
	defaultSessionIdle   = 60 * time.Second
	defaultMaxRedelivery = 30 * time.Second
	azureHandlerTimeout  = 60 * time.Second
	ownHandlerTimeout    = 5 * time.Minute

	// maxMessageKilobytes is the maximum message size of entities created here: as much as the Dapr runtime accepts.
	maxMessageKilobytes = 4096
)

// defaults returns the settings of a component without metadata.
func (p Profile) defaults() settings {
	s := settings{
		kind: semantics.TopicKind, manages: true, timeout: defaultTimeout, handlerTimeout: ownHandlerTimeout,
		renews:    true,
		maxActive: defaultMaxActive, firstRedelivery: time.Second / defaultErrorsPerSec,
		maxRedelivery: defaultMaxRedelivery,
		sessionIdle:   defaultSessionIdle, maxSessions: semantics.DefaultMaxSessions,
		options: semantics.DefaultOptions(),
	}
	if p == AzureQueues {
		s.kind = semantics.QueueKind
	}
	if p != Sidebus {
		s.handlerTimeout = azureHandlerTimeout
	}
	return s
}
