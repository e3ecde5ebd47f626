package verbs

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type sessionCommand struct {
	List    sessionListCommand    `cmd:"" aliases:"ls" help:"List the sessions of a queue."`
	Show    sessionShowCommand    `cmd:"" aliases:"get" help:"Show a session and its messages."`
	State   sessionStateCommand   `cmd:"" help:"Read, set and clear the state of a session."`
	Unblock sessionUnblockCommand `cmd:"" help:"Unblock a session that a dead letter has blocked."`
	Rest    sessionRestCommand    `cmd:"" name:"dead-letter-rest" help:"Dead-letter the remaining messages of a session and unblock it."`
}

// sessionName names one session.
type sessionName struct {
	Queue string `arg:"" help:"Queue, such as orders or queues/orders, or subscription, such as topics/news/subscriptions/eu."`
	ID    string `arg:"" name:"session" help:"Session id."`
}

func (s *sessionName) resource() string { return client.Resource(s.Queue) }

func (s *sessionName) String() string { return ofSession(s.ID, s.resource()) }

// ofSession names a session for people.
func ofSession(id, source string) string { return fmt.Sprintf("session %q of %s", id, source) }

type sessionListCommand struct {
	Queue string `arg:"" help:"Queue, such as orders or queues/orders, or subscription, such as topics/news/subscriptions/eu."`

	Max          int    `name:"max" short:"n" default:"100" placeholder:"N" help:"Most sessions to list; 0: all."`
	ActiveSince  string `name:"active-since" placeholder:"INSTANT|AGE" help:"Only sessions with a new message or state since this instant in RFC 3339, or within this time, such as 1h."`
	UpdatedSince string `name:"updated-since" placeholder:"INSTANT|AGE" help:"Only sessions whose state was set since this instant, or within this time."`

	clientSettings
}

// Run lists sessions in order of id, page by page.
func (s *sessionListCommand) Run(ctx context.Context, to terminal.Streams) error {
	if s.Max < 0 {
		return cli.Misuse("--max is %d, must be 0 (all) or more", s.Max)
	}
	now := time.Now()
	request := &sidebusv1.SessionsListRequest{Source: client.Resource(s.Queue)}
	var err error
	if request.ActiveSince, err = instantOrAge("--active-since", s.ActiveSince, now); err != nil {
		return err
	}
	if request.UpdatedSince, err = instantOrAge("--updated-since", s.UpdatedSince, now); err != nil {
		return err
	}
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error { return s.list(ctx, o, request) })
}

func (s *sessionListCommand) list(ctx context.Context, o *operator, request *sidebusv1.SessionsListRequest) error {
	for shown := 0; ; {
		isLast := s.Max > 0 && shown == s.Max
		switch {
		case isLast:
			request.PageSize = 1 // whether there is more
		case s.Max > 0:
			request.PageSize = int32(min(sessionPage, s.Max-shown))
		}
		page, err := o.Sessions.List(ctx, request)
		if err != nil {
			return err
		}
		switch rows := page.GetSessions(); {
		case len(rows) > 0 && isLast:
			o.note("there are more; --max 0 lists all")
			return nil
		case len(rows) > 0:
			if err := o.sessions(rows, shown == 0); err != nil {
				return err
			}
			shown += len(rows)
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			if shown == 0 {
				o.note("no sessions in %s", request.GetSource())
			}
			return nil
		}
	}
}

// sessionPage is the most sessions of one call.
const sessionPage = 100

// sessions prints a page of sessions, the first one with a header.
func (o *operator) sessions(page []*sidebusv1.SessionRow, isFirst bool) error {
	if o.asJSON {
		for _, row := range page {
			if err := o.document(row); err != nil {
				return err
			}
		}
		return o.flush()
	}
	var header []string
	if isFirst {
		header = []string{
			"SESSION", "AVAILABLE", "DELAYED", "LOCKED", "DEFERRED", "SCHEDULED", "STATE", "HELD UNTIL",
			"LAST ACTIVITY", "BLOCKED",
		}
	}
	var rows [][]string
	for _, s := range page {
		row := []string{client.OneLine(s.GetSessionId())}
		for _, n := range []int64{
			s.GetAvailableCount(), s.GetDelayedCount(), s.GetLockedCount(), s.GetDeferredCount(),
			s.GetScheduledCount(),
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		state, blocked := client.Absent, client.Absent
		if s.GetStateVersion() > 0 {
			state = client.Bytes(s.GetStateSize())
		}
		if s.GetBlocked() {
			blocked = "blocked"
		}
		rows = append(
			rows, append(row, state, client.Instant(s.GetLockedUntil()), client.Instant(s.GetLastActivity()), blocked),
		)
	}
	if err := o.table(header, rows); err != nil {
		return err
	}
	return o.flush()
}

// session finds one session in the list, which is in order of id. It is nil when the session has neither messages nor
// state and is not blocked.
func (o *operator) session(ctx context.Context, source, id string) (*sidebusv1.SessionRow, error) {
	for request := (&sidebusv1.SessionsListRequest{Source: source}); ; {
		page, err := o.Sessions.List(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, row := range page.GetSessions() {
			switch {
			case row.GetSessionId() == id:
				return row, nil
			case row.GetSessionId() > id:
				return nil, nil //nolint:nilnil // see above
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil, nil //nolint:nilnil // see above
		}
	}
}

type sessionShowCommand struct {
	sessionName

	Max int `name:"max" short:"n" default:"100" placeholder:"N" help:"Most messages to show; 0: all."`

	clientSettings
}

// Run prints the row of a session and its messages without touching them. The JSON is one document.
func (s *sessionShowCommand) Run(ctx context.Context, to terminal.Streams) error {
	if s.Max < 0 {
		return cli.Misuse("--max is %d, must be 0 (all) or more", s.Max)
	}
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error {
		row, err := o.session(ctx, s.resource(), s.ID)
		if err != nil {
			return err
		}
		request := &sidebusv1.PeekRequest{Source: s.resource(), SessionId: &s.ID}
		if o.asJSON {
			return s.document(ctx, o, row, request)
		}
		if row != nil {
			if err := o.sessions([]*sidebusv1.SessionRow{row}, true); err != nil {
				return err
			}
			if err := o.say(""); err != nil {
				return err
			}
		}
		return (&window{Max: s.Max}).pages(ctx, o, request)
	})
}

func (s *sessionShowCommand) document(
	ctx context.Context, o *operator, row *sidebusv1.SessionRow, request *sidebusv1.PeekRequest,
) error {
	var text bytes.Buffer
	text.WriteByte('{')
	if row != nil {
		fmt.Fprintf(&text, `"session":%s,`, client.JSON(row))
	}
	text.WriteString(`"messages":[`)
	for shown := 0; s.Max == 0 || shown < s.Max; {
		step := peekStep
		if s.Max > 0 {
			step = min(step, s.Max-shown)
		}
		request.MaxMessages = proto.Int32(int32(step))
		answer, err := o.Peek(ctx, request)
		if err != nil {
			return err
		}
		page := answer.GetMessages()
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			if shown > 0 {
				text.WriteByte(',')
			}
			text.Write(client.JSON(m))
			shown++
		}
		request.FromSequenceNumber = proto.Int64(page[len(page)-1].GetSequenceNumber() + 1)
	}
	text.WriteString("]}")
	return o.line(text.Bytes())
}

type sessionUnblockCommand struct {
	sessionName
	clientSettings
}

// Run ends the block of a session. One that is not blocked stays as it is, which is not a failure.
func (s *sessionUnblockCommand) Run(ctx context.Context, to terminal.Streams) error {
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error {
		answer, err := o.Sessions.Unblock(ctx, &sidebusv1.SessionsUnblockRequest{Source: s.resource(), SessionId: s.ID})
		if err != nil {
			return err
		}
		return o.answer(answer, "%s is not blocked", s.String())
	})
}

type sessionRestCommand struct {
	sessionName
	confirmation
	clientSettings
}

// Run dead-letters what is left of a session: messages that are neither locked nor scheduled.
func (s *sessionRestCommand) Run(ctx context.Context, to terminal.Streams) error {
	if err := s.check(to); err != nil {
		return err
	}
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error {
		text := fmt.Sprintf("This dead-letters all messages of %s that are neither locked nor scheduled.", s.String())
		if err := o.confirm(ctx, &s.confirmation, s.resource(), text); err != nil {
			return err
		}
		answer, err := o.Sessions.DeadLetterRest(
			ctx, &sidebusv1.SessionsDeadLetterRestRequest{Source: s.resource(), SessionId: s.ID},
		)
		if err != nil {
			return err
		}
		return o.answer(answer, "dead-lettered the remaining messages of %s", s.String())
	})
}
