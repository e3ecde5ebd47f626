package amqp

import (
	"context"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/internal/paging"
	"github.com/sidebus/sidebus/semantics"
)

// session returns the session that the arguments name and this connection holds.
func (m *management) session(args *arguments) (*held, error) {
	id := args.text("session-id")
	if id == nil {
		return nil, semantics.InvalidField("session-id", "must be a string")
	}
	return m.connection.sessionOf(m.at.path, *id)
}

func (m *management) renewSession(ctx context.Context, args *arguments) (codec.Map, error) {
	s, err := m.session(args)
	if err != nil {
		return nil, err
	}
	until, err := s.renew(ctx)
	if err != nil {
		return nil, err
	}
	return codec.Map{codec.Entry("expiration", convert.Timestamp(until))}, nil
}

func (m *management) sessionState(ctx context.Context, args *arguments) (codec.Map, error) {
	s, err := m.session(args)
	if err != nil {
		return nil, err
	}
	state, err := m.connection.server.Broker.SessionState(ctx, s.source)
	if err != nil {
		return nil, err
	}
	var data any // null if there is none
	if state.Data != nil {
		data = state.Data
	}
	return codec.Map{codec.Entry("session-state", data)}, nil
}

func (m *management) setSessionState(ctx context.Context, args *arguments) (codec.Map, error) {
	s, err := m.session(args)
	if err != nil {
		return nil, err
	}
	value := args.Get("session-state")
	state, ok := value.([]byte)
	if !ok && value != nil {
		return nil, semantics.InvalidField("session-state", "must be a binary, or null to clear it")
	}
	if ok && state == nil {
		state = []byte{}
	}
	if _, err = m.connection.server.Broker.SetSessionState(ctx, s.source, state, nil); err != nil {
		return nil, err
	}
	return codec.Map{}, nil
}

// sentinelYear is the year from which on a date means none: clients send the last one that they know.
const sentinelYear = 9999

// listSessions returns a page of the sessions with messages or state, or of those whose state was set after an instant.
// Pages of clients are numbers of rows to skip, so all rows before are read too.
func (m *management) listSessions(ctx context.Context, args *arguments) (codec.Map, error) {
	filter := semantics.SessionFilter{}
	if at, ok := args.Get("last-updated-time").(codec.Timestamp); ok {
		if since := convert.Time(at); since.Year() < sentinelYear {
			filter.UpdatedSince = since
		}
	}
	skip, err := args.count("skip", 0)
	if err != nil {
		return nil, err
	}
	top, err := args.count("top", semantics.MaxPageSize)
	if err != nil {
		return nil, err
	}
	list := func(token string) ([]semantics.SessionRow, string, error) {
		return m.connection.server.Broker.ListSessions(ctx, m.at.path, semantics.MaxPageSize, token, filter)
	}
	rows, err := paging.Window(skip, min(top, semantics.MaxPageSize), list)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make(codec.Array, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return codec.Map{codec.Entry("skip", int32(skip+len(ids))), codec.Entry("sessions-ids", ids)}, nil
}
