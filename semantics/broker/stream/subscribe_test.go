package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

func TestRR_5_SessionsMustBeNamed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.change("tales", semantics.Options{AcceptNext: semantics.AcceptNextForbidden}, "acceptNext")
		s.subscribe("tales", nil).wants("end:INVALID_OPERATION")
	})
}

func TestRECV_13_Refusals(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		for name, c := range map[string]struct {
			source semantics.Source
			change func(o *stream.Options)
			want   semantics.Code
		}{
			"no such queue":      {semantics.Source{Path: "nothing"}, nil, semantics.EntityNotFound},
			"bad name":           {semantics.Source{Path: "."}, nil, semantics.InvalidArgument},
			"a held session":     {semantics.Source{Path: "tales", SessionLock: semantics.NewLockToken()}, nil, semantics.InvalidArgument},
			"a named session":    {semantics.Source{Path: "tales", Session: "a"}, nil, semantics.SessionRequired},
			"too many credits":   {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.Credits = 1001 }, semantics.ArgumentOutOfRange},
			"negative credits":   {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.Credits = -1 }, semantics.ArgumentOutOfRange},
			"renews too long":    {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.MaxAutoRenew = 24*time.Hour + 1 }, semantics.ArgumentOutOfRange},
			"renews negatively":  {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.MaxAutoRenew = -1 }, semantics.ArgumentOutOfRange},
			"no sessions":        {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.MaxSessions = 0 }, semantics.ArgumentOutOfRange},
			"too many sessions":  {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.MaxSessions = 1001 }, semantics.ArgumentOutOfRange},
			"none in flight":     {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.SessionInFlight = 0 }, semantics.ArgumentOutOfRange},
			"too many in flight": {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.SessionInFlight = 1001 }, semantics.ArgumentOutOfRange},
			"idle too long":      {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.SessionIdle = 24*time.Hour + 1 }, semantics.ArgumentOutOfRange},
			"idle negatively":    {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.SessionIdle = -1 }, semantics.ArgumentOutOfRange},
			"unknown mode":       {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.Mode = 2 }, semantics.InvalidArgument},
			"long id":            {semantics.Source{Path: "orders"}, func(o *stream.Options) { o.ID = strings.Repeat("x", 129) }, semantics.InvalidArgument},
		} {
			options := stream.DefaultOptions()
			if c.change != nil {
				c.change(&options)
			}
			_, err := s.Subscribe(t.Context(), c.source, options)
			wantCode(t, name, err, c.want)
		}
		s.subscribe("orders", func(o *stream.Options) {
			o.ID, o.Credits, o.MaxSessions, o.SessionInFlight = strings.Repeat("x", 128), 1000, 1000, 1000
			o.MaxAutoRenew, o.SessionIdle = 24*time.Hour, 24*time.Hour
		})
		s.BeginDrain()
		_, err := s.Subscribe(t.Context(), semantics.Source{Path: "orders"}, stream.DefaultOptions())
		wantCode(t, "while draining", err, semantics.StoreUnavailable)
	})
}

func TestRECV_13_DeadLettersAreAPlainSource(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1")
		p := s.subscribe("tales", credits(2))
		p.takes()
		p.settle(s.deadLettering, "a/1", "b/1")
		sub, err := s.Subscribe(t.Context(), semantics.Source{Path: "tales", SubQueue: semantics.DeadLetterQueue}, stream.DefaultOptions())
		s.ok(err)
		defer sub.Close(t.Context())
		e, err := sub.Next(t.Context())
		s.ok(err)
		if sub.HasSessions() || len(e.Delivery.Messages) != 1 || e.Delivery.Messages[0].SessionID == "" {
			t.Errorf("got %+v", e.Delivery)
		}
	})
}
