package broker

import (
	"github.com/sidebus/sidebus/semantics"
)

// WithoutSessions makes every session verb, every verb for a source that names or holds a session, and the creation of
// an entity that requires sessions, fail with SESSION_NOT_SUPPORTED (SESS-8).
func WithoutSessions() Option { return func(b *Broker) { b.hasNoSessions = true } }

func (b *Broker) refuseSessions(path string) error {
	if !b.hasNoSessions {
		return nil
	}
	return semantics.Errorf(semantics.SessionNotSupported,
		"sessions are switched off on this sidecar; start the sidecar with --features.sessions=true").
		With(semantics.DetailEntity, path)
}

// checkSession refuses a source that names or holds a session if sessions are switched off. err is of the parsing of
// source.
func (b *Broker) checkSession(source semantics.Source, err error) (semantics.Source, error) {
	if err == nil && (source.Session != "" || !source.SessionLock.IsZero()) {
		err = b.refuseSessions(source.Path)
	}
	return source, err
}
