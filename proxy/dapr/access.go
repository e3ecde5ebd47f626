package dapr

import (
	"context"

	"github.com/sidebus/sidebus/proxy/access"
)

// permit returns an error if the process at the other end of the socket does not have a right (AUTH-4).
func (c *component) permit(ctx context.Context, right access.Right) error {
	proof := access.Proof{Way: access.ByDapr}
	if conn := connOf(ctx); conn != nil {
		proof.Peer = conn.peer()
	}
	return access.PermitProof(c.authorizer, proof, right)
}

// permitPublish checks the right of a publish. A publish to a dead-letter queue settles a message that was delivered.
func (c *component) permitPublish(ctx context.Context, topic string) error {
	if path, sub := addressOf(topic); sub.IsDeadLetters() {
		return c.permit(ctx, access.Right{Claims: access.Listen, Path: path, Settles: true})
	}
	return c.permit(ctx, access.Right{Claims: access.Send, Path: topic})
}

// mayCreate reports whether the process may create an entity that is missing. Without this right it uses what exists.
func (c *component) mayCreate(ctx context.Context, path string) bool {
	return c.permit(ctx, access.Right{Claims: access.Manage, Path: path}) == nil
}

// permitted checks the right of a subscription.
func (p *pullStream) permitted() error {
	return p.component.permit(p.stream.Context(), access.Right{Claims: access.Listen, Path: p.source.Path})
}
