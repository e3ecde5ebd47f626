package obs

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/externalscaler"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Call collects what Calls.Done needs to know of one call: how long it waits for messages or a session, to subtract it
// from the duration, which entity it is about, and who makes it. Waits may begin and end in any goroutine.
type Call struct {
	waits  atomic.Int64
	entity string
	caller Named        // nil: not known
	peer   fmt.Stringer // nil: not known
}

type callKey struct{}

// WithCall adds a Call to the context of a call.
func WithCall(ctx context.Context) (context.Context, *Call) {
	c := &Call{}
	return context.WithValue(ctx, callKey{}, c), c
}

// BeginWait starts a measurement. The returned function ends it and must be called once. If c is nil, nothing is
// measured.
func (c *Call) BeginWait() (end func()) {
	if c == nil {
		return func() {}
	}
	start := time.Now()
	return func() { c.waits.Add(int64(time.Since(start))) }
}

// waited returns how long the call of ctx has waited.
func waited(ctx context.Context) time.Duration {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return time.Duration(c.waits.Load())
	}
	return 0
}

// About notes the entity of the call of ctx, before Done and in its goroutine.
func About(ctx context.Context, entity string) {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.entity = entity
	}
}

// entityOf returns the entity of the call of ctx, empty if it has none or failed before it was read.
func entityOf(ctx context.Context) string {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c.entity
	}
	return ""
}

// Prefixes of the names of resources.
const (
	queues = "queues/"
	topics = "topics/"
)

// EntityIn returns the name of the entity or rule in a request, as the request has it: "queues/orders".
func EntityIn(request proto.Message) string {
	switch r := request.(type) {
	case *externalscaler.ScaledObjectRef: // its name is that of an object of Kubernetes
		return r.GetScalerMetadata()["source"]
	case *externalscaler.GetMetricsRequest:
		return EntityIn(r.GetScaledObjectRef())
	case interface{ GetSource() string }:
		return r.GetSource()
	case interface{ GetTarget() string }:
		return r.GetTarget()
	case interface{ GetName() string }:
		return r.GetName()
	case interface{ GetSubscription() string }:
		return r.GetSubscription()
	case interface{ GetTopic() string }:
		return r.GetTopic()
	case interface{ GetQueue() *sidebusv1.Queue }:
		return queues + strings.TrimPrefix(r.GetQueue().GetName(), queues)
	case interface{ GetTopic() *sidebusv1.Topic }:
		return topics + strings.TrimPrefix(r.GetTopic().GetName(), topics)
	case interface {
		GetSubscription() *sidebusv1.Subscription
	}:
		return r.GetSubscription().GetName()
	default:
		return ""
	}
}
