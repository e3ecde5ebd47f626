package dapr

import (
	"cmp"
	"context"
	"slices"
	"time"

	sdk "github.com/dapr/go-sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Bounds of what is asked of Dapr's runtime.
const (
	healTimeout  = 2 * time.Second // of a call
	healGrace    = 3 * time.Second // for a runtime to begin by itself
	healAttempts = 5
	healPause    = time.Second
	tokenHeader  = "dapr-api-token" //nolint:gosec // the name of a header, not a token
)

// What was done about a restart, as metrics say it.
const (
	healNotNeeded = "not_needed" // the runtime has begun anew by itself
	healDone      = "restarted"
	healFailed    = "failed"
)

// healer deals with a runtime that was there before Sidebus: then Sidebus was restarted under it, and it has lost its
// streams, which it does not open again by itself.
type healer struct {
	server *Server

	runtime sdk.Client
}

// newHealer makes a healer. It connects when it is asked to do something.
func newHealer(s *Server) (*healer, error) {
	conn, err := grpc.NewClient(
		s.config.HealAddr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), // it is beside Sidebus
		grpc.WithUnaryInterceptor(
			func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
				options ...grpc.CallOption,
			) error {
				if s.config.APIToken != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, tokenHeader, s.config.APIToken)
				}
				ctx, cancel := context.WithTimeout(ctx, healTimeout)
				defer cancel()
				return call(ctx, method, request, reply, conn, options...)
			},
		),
	)
	if err != nil {
		return nil, err
	}
	return &healer{s, sdk.NewClientWithConnection(conn)}, nil
}

// finds tells whether there is a runtime that has subscriptions to a component of this Server. While the Server is not
// served yet they can only be older than it.
func (h *healer) hasSubscriptions(ctx context.Context) (bool, error) {
	about, err := h.runtime.GetMetadata(ctx)
	if err != nil {
		return false, err
	}
	for _, c := range about.RegisteredComponents {
		isOurs := slices.ContainsFunc(
			h.server.endpoints,
			func(one *endpoint) bool { return one.component.typeName() == c.Type },
		)
		isUsed := slices.ContainsFunc(
			about.Subscriptions,
			func(sub *sdk.MetadataSubscription) bool { return sub.PubsubName == c.Name },
		)
		if isOurs && isUsed {
			return true, nil
		}
	}
	return false, nil
}

// heal lets a runtime shut down that was found, unless it begins anew by itself: whoever started it starts it again,
// and it subscribes.
func (h *healer) heal(ctx context.Context) {
	select {
	case <-time.After(cmp.Or(h.server.config.healGrace, healGrace)):
	case <-ctx.Done():
		return
	}
	outcome := healNotNeeded
	if h.needsRestart(ctx) {
		h.server.logger.WarnContext(
			ctx,
			"Sidebus was restarted under a running daprd, which has lost its subscriptions by that and is told to shut down, to be started again",
			"daprd", h.server.config.HealAddr,
		)
		outcome = h.shutDown(ctx)
	}
	h.server.metrics.DaprHeals.WithLabelValues(outcome).Inc()
}

// isDeaf tells whether the runtime still is as it was found.
func (h *healer) needsRestart(ctx context.Context) bool {
	if slices.ContainsFunc(h.server.endpoints, func(one *endpoint) bool { return one.component.hasSeenRuntime() }) {
		return false
	}
	isThere, err := h.hasSubscriptions(ctx)
	if err != nil {
		h.server.logger.WarnContext(
			ctx, "daprd does not say which subscriptions it has, so it is left alone", "daprd",
			h.server.config.HealAddr, "error", err,
		)
	}
	return isThere
}

// shutDown tells the runtime to shut down.
func (h *healer) shutDown(ctx context.Context) string {
	var err error
	for range healAttempts {
		if err = h.runtime.Shutdown(ctx); err == nil {
			return healDone
		}
		select {
		case <-time.After(cmp.Or(h.server.config.healPause, healPause)):
		case <-ctx.Done():
			return healFailed
		}
	}
	h.server.logger.ErrorContext(
		ctx, "daprd does not shut down; its subscriptions get nothing until it is restarted", "daprd",
		h.server.config.HealAddr, "error", err,
	)
	return healFailed
}

// healOlder heals a runtime that is older than this Server, beside what else the Server does. It must be called before
// the Server is served and blocks for a call; what it gives waits for the end.
func (s *Server) healRunning(ctx context.Context) (wait func(), err error) {
	if len(s.endpoints) == 0 || s.config.HealAddr == "" {
		return func() {}, nil
	}
	h, err := newHealer(s)
	if err != nil {
		return nil, err
	}
	if isThere, _ := h.hasSubscriptions(ctx); !isThere { // nobody there yet, which is how it should be
		h.runtime.Close()
		return func() {}, nil
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer h.runtime.Close()
		h.heal(ctx)
	}()
	return func() { <-over }, nil
}
