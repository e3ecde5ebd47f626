package amqp

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// sessionFilterName is the filter that says which session a link receives.
const sessionFilterName = "com.microsoft:session-filter"

// sessionFilter names a session, or asks for the next one.
type sessionFilter struct {
	id         string
	isNamed    bool
	descriptor any // nil: the value is bare
	isWrong    bool
}

// sessionFilterOf returns the session filter of a source, and whether there is one.
func sessionFilterOf(source *frame.Source) (f sessionFilter, ok bool) {
	for _, p := range source.Filter {
		if name, _ := codec.Text(p.Key); name != sessionFilterName {
			continue
		}
		value := p.Value
		if described, is := value.(codec.Described); is {
			f.descriptor, value = described.Descriptor, described.Value
		}
		f.id, f.isNamed = codec.Text(value)
		f.isWrong = value != nil && !f.isNamed
		return f, true
	}
	return f, false
}

// answer returns the filters of a source with the session that was accepted, in the form that was asked for.
func (f sessionFilter) answer(filters codec.Map, id string) codec.Map {
	answer := make(codec.Map, len(filters))
	copy(answer, filters)
	for i, p := range answer {
		if name, _ := codec.Text(p.Key); name != sessionFilterName {
			continue
		}
		answer[i].Value = id
		if f.descriptor != nil {
			answer[i].Value = codec.Described{Descriptor: f.descriptor, Value: id}
		}
	}
	return answer
}

// acceptWait is how long a client waits for the next session if it does not say.
const acceptWait = 65 * time.Second

// waitOf returns how long to wait for a session: a little less than the client does.
func (f sessionFilter) waitOf(properties codec.Map) time.Duration {
	if f.isNamed {
		return 0 // refused at once if another client holds it
	}
	wait := acceptWait
	if ms, ok := codec.Integer(properties.Get("com.microsoft:timeout")); ok && ms >= 0 {
		wait = min(time.Duration(min(ms, semantics.MaxWait.Milliseconds()))*time.Millisecond, semantics.MaxWait)
	}
	return wait - wait/20
}

// attachSession accepts a session for a link, which may take as long as the client waits.
func (c *connection) attachSession(
	l *engine.Link, source semantics.Source, filter sessionFilter, right access.Right,
) *frame.Error {
	if filter.isWrong || filter.isNamed && filter.id == "" {
		return linkError(semantics.InvalidField("sessionId", "must be a string that is not empty, or null for the next session"))
	}
	ctx, stop := c.while(l, right)
	defer stop()
	var accepted *broker.Acceptance
	err := c.call(ctx, "Sessions.Accept", source.Path, func(ctx context.Context) (err error) {
		accepted, err = c.server.Broker.AcceptSession(ctx, source.Path, broker.AcceptOptions{
			SessionID: filter.id, MaxWait: filter.waitOf(l.Request.Properties), Strict: true,
		})
		return err
	})
	if err != nil {
		return linkError(err)
	}
	s := c.hold(accepted, l.Request.Name)
	r := c.newReceiver(l, s.source)
	isThere := l.Accept(engine.Accepted{
		Source: l.Request.Source.WithFilter(filter.answer(l.Request.Source.Filter, accepted.Session.ID)),
		Properties: codec.Map{
			codec.Named("com.microsoft:locked-until-utc", convert.Ticks(accepted.Session.LockedUntil)),
			codec.Named("com.microsoft:session-id", accepted.Session.ID),
		},
		OnSettled: r.onSettled,
	})
	if isThere {
		c.begin(func() { s.watch(ctx, l) })
		r.pump(ctx)
		r.settling.wait()
	}
	c.release(s)
	_ = accepted.Undelivered(c.ctx) // what cannot be closed is free when its lock ends
	return nil
}

// held is a session that a link of this connection holds.
type held struct {
	connection *connection
	key        sessionKey
	link       string // name of its link
	source     semantics.Source

	mu      sync.Mutex
	until   time.Time
	renewed chan struct{}
}

// hold keeps a session, so that requests for it find its lock.
func (c *connection) hold(a *broker.Acceptance, link string) *held {
	s := &held{
		connection: c, source: a.Source(), until: a.Session.LockedUntil, renewed: make(chan struct{}, 1),
		link: link, key: sessionKey{semantics.Fold(a.Source().Path), a.Session.ID},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[s.key] = s
	return s
}

// release forgets a session.
func (c *connection) release(s *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.key] == s { // it may have been accepted again
		delete(c.sessions, s.key)
	}
}

// sessionOf returns a session that this connection holds. SESSION_LOCK_LOST.
func (c *connection) sessionOf(path, id string) (*held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[sessionKey{semantics.Fold(path), id}]; s != nil {
		return s, nil
	}
	return nil, semantics.SessionFailure(semantics.SessionLockLost, path)
}

// sessionOfLink returns the session of a link of this connection, nil if it has none.
func (c *connection) sessionOfLink(path, link string) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, s := range c.sessions {
		if s.link == link && key.path == semantics.Fold(path) {
			return s
		}
	}
	return nil
}

// renew extends the lock.
func (s *held) renew(ctx context.Context) (time.Time, error) {
	until, err := s.connection.server.Broker.RenewSessionLock(ctx, s.source)
	if err != nil {
		return until, err
	}
	s.mu.Lock()
	s.until = until
	s.mu.Unlock()
	select {
	case s.renewed <- struct{}{}:
	default:
	}
	return until, nil
}

// recheck is how soon to look again at a lock that should have ended by the clock of this machine.
const recheck = time.Second

// watch closes the link when the lock has ended, which a client that does nothing would not notice.
func (s *held) watch(ctx context.Context, l *engine.Link) {
	for {
		s.mu.Lock()
		wait := time.Until(s.until)
		s.mu.Unlock()
		timer := time.NewTimer(max(wait, recheck))
		select {
		case <-timer.C:
		case <-s.renewed:
			timer.Stop()
			continue
		case <-ctx.Done():
			timer.Stop()
			return
		}
		_, err := s.connection.server.Broker.SessionState(ctx, s.source)
		if semantics.CodeOf(err) == semantics.SessionLockLost {
			l.Close(linkError(err))
			return
		}
	}
}
