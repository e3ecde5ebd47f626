package redisstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// tagLength is how much of the name of a sidecar is in the tokens of its sessions, in hex digits.
const tagLength = 2 * len(semantics.SidecarTag{})

// Sidecar implements semantics.Observed.
func (s *Store) Sidecar() string { return s.tag.String() }

// Receivers implements semantics.Observed.
func (s *Store) Receivers(ctx context.Context, path string, limit int) (semantics.Receivers, error) {
	r, err := s.run(ctx, "receivers", s.keys(path), s.now(), min(limit, semantics.MaxReceivers))
	if err != nil {
		return semantics.Receivers{}, err
	}
	if r.status != "OK" {
		return semantics.Receivers{}, semantics.NotFound(path)
	}
	s.apply(ctx, path, r)
	who := semantics.Receivers{FirstLock: r.instant(), LastLock: r.instant()}
	for waiting := r.list(); waiting.more(); r.adopt(waiting) {
		who.Waiting = append(who.Waiting, semantics.WaitingSidecar{
			Sidecar: sidecarTagOf(waiting.text()), Since: waiting.instant(),
		})
	}
	for held := r.list(); held.more(); r.adopt(held) {
		session := semantics.HeldSession{ID: sessionID(held.text())}
		if token, err := semantics.ParseLockToken(held.text()); err == nil {
			session.Holder = token.Sidecar().String()
		}
		session.LockedUntil, session.Available = held.instant(), held.number()
		who.Held = append(who.Held, session)
	}
	for ready := r.list(); ready.more(); r.adopt(ready) {
		who.Ready = append(who.Ready, semantics.ReadySession{
			ID: sessionID(ready.text()), Since: ready.instant(), Available: ready.number(),
		})
	}
	return who, r.failure()
}

// sidecarTagOf is the tag of a sidecar in a waiting list.
func sidecarTagOf(name string) string { return name[:min(len(name), tagLength)] }
