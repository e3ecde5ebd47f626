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

// Timeouts of calls to the Dapr runtime.
const (
	healTimeout  = 2 * time.Second // of one call
	healGrace    = 3 * time.Second // for a runtime to initialize the component without help
	healAttempts = 5
	healPause    = time.Second
	tokenHeader  = "dapr-api-token" //nolint:gosec // the name of a header, not a token
)

// Outcomes of a restart, as in metrics.
const (
	healNotNeeded = "not_needed" // the runtime initialized the component again
	healDone      = "restarted"
	healFailed    = "failed"
)

// healer restarts a runtime that is older than Sidebus: Sidebus was restarted alone, and the runtime does not reopen
// its streams.
type healer struct {
	server *Server

	runtime sdk.Client
}

// newHealer returns a healer. It connects with the first call.
func newHealer(s *Server) (*healer, error) {
	conn, err := grpc.NewClient(
		s.config.HealAddr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), // daprd is in the same pod
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

// hasSubscriptions reports whether a runtime has subscriptions to a component of this Server. Before the Server serves,
// they can only be older than it.
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

// heal shuts the runtime down unless it initializes the component again within the grace period. Its supervisor
// restarts it, and it subscribes again.
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
			"Sidebus was restarted under a running daprd, which lost its subscriptions; telling daprd to shut down, so that it is restarted",
			"daprd", h.server.config.HealAddr,
		)
		outcome = h.shutDown(ctx)
	}
	h.server.metrics.DaprHeals.WithLabelValues(outcome).Inc()
}

// needsRestart reports whether the runtime still has its old subscriptions.
func (h *healer) needsRestart(ctx context.Context) bool {
	hasSeen := func(one *endpoint) bool { return one.component.registry.hasSeenRuntime() }
	if slices.ContainsFunc(h.server.endpoints, hasSeen) {
		return false
	}
	isThere, err := h.hasSubscriptions(ctx)
	if err != nil {
		h.server.logger.WarnContext(
			ctx, "cannot read the subscriptions of daprd; not restarting it", "daprd",
			h.server.config.HealAddr, "error", err,
		)
	}
	return isThere
}

// shutDown requests a shutdown of the runtime and returns the outcome.
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
		ctx, "daprd does not shut down; its subscriptions get no messages until it is restarted", "daprd",
		h.server.config.HealAddr, "error", err,
	)
	return healFailed
}

// healRunning starts a goroutine that heals a runtime that is older than this Server. It must be called before the
// Server serves and blocks for one call; wait blocks until the goroutine has ended.
func (s *Server) healRunning(ctx context.Context) (wait func(), err error) {
	if len(s.endpoints) == 0 || s.config.HealAddr == "" {
		return func() {}, nil
	}
	h, err := newHealer(s)
	if err != nil {
		return nil, err
	}
	if isThere, _ := h.hasSubscriptions(ctx); !isThere { // the usual case: daprd starts later
		h.runtime.Close()
		return func() {}, nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer h.runtime.Close()
		h.heal(ctx)
	}()
	return func() { <-done }, nil
}
