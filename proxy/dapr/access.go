package dapr

import (
	"context"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// authenticate returns a context with the process at the other end of the socket as the caller, also for the audit
// (AUTH-4). It fails with UNAUTHENTICATED.
func (c *component) authenticate(ctx context.Context) (context.Context, error) {
	ctx, _ = obs.WithCall(ctx)
	proof := access.Proof{Way: access.ByDapr}
	if conn := connOf(ctx); conn != nil {
		proof.Peer = conn.peer()
	}
	authenticated, err := access.Authenticate(ctx, c.authorizer, proof)
	obs.By(ctx, access.CallerIn(authenticated), proof.Peer)
	return authenticated, err
}

// permitPublish checks the right of a publish. A publish to a dead-letter queue settles a message that was delivered.
func permitPublish(ctx context.Context, topic string) error {
	if path, sub := addressOf(topic); sub.IsDeadLetters() {
		return access.Permit(ctx, access.Right{Claims: access.Listen, Path: path, Settles: true})
	}
	return access.Permit(ctx, access.Right{Claims: access.Send, Path: topic})
}

// mayCreate reports whether the caller may create an entity that is missing. Without this right it uses what exists.
func mayCreate(ctx context.Context, path string) bool {
	return access.Permit(ctx, access.Right{Claims: access.Manage, Path: path}) == nil
}

// permitted checks that the caller may receive from the source of the subscription.
func (p *pullStream) permitted(ctx context.Context) error {
	return access.Permit(ctx, access.Right{Claims: access.Listen, Path: p.source.Path})
}
