package memstore

// WithMaxIdleSessions remembers fewer sessions that have nothing any more than semantics.MaxIdleSessions.
func WithMaxIdleSessions(n int) Option { return func(s *Store) { s.maxIdleSessions = n } }

// WithMaxSessionStates keeps fewer session states per queue than semantics.MaxSessionStates.
func WithMaxSessionStates(n int) Option { return func(s *Store) { s.maxSessionStates = n } }
