package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// peekStep is how many messages one call shows.
const peekStep = 100

// window says which messages to show.
type window struct {
	From *int64 `name:"from" placeholder:"N" help:"The lowest sequence number to show."`
	Max  int    `name:"max" short:"n" default:"100" placeholder:"N" help:"Most messages to show; 0: all."`
}

type peekCommand struct {
	Queue string `arg:"" help:"Queue, such as orders or queues/orders, or subscription, such as topics/news/subscriptions/eu."`

	window

	Session *string  `name:"session" placeholder:"ID" help:"Only messages of this session."`
	State   []string `name:"state" enum:"available,locked,deferred,scheduled" placeholder:"STATE,STATE" help:"Only messages in these states: available, locked, deferred, scheduled."`

	subQueueFlags
	clientSettings
}

// Run prints messages without touching them.
func (p *peekCommand) Run(ctx context.Context, to terminal.Streams) error {
	if p.isSet() && p.Session != nil {
		return cli.Misuse("%s", noSessionsThere)
	}
	request := &sidebusv1.PeekRequest{
		Source: client.Resource(p.Queue), SubQueue: p.kind(), FromSequenceNumber: p.From, SessionId: p.Session,
	}
	for _, state := range p.State {
		request.Include = append(
			request.Include, sidebusv1.PeekRequest_Include(sidebusv1.PeekRequest_Include_value[strings.ToUpper(state)]),
		)
	}
	return p.show(ctx, to, &p.clientSettings, request)
}

// noSessionsThere is why a session and the dead-letter queues exclude each other.
const noSessionsThere = "--session excludes --dlq and --transfer-dlq: dead letters belong to no session"

// show prints the messages of a request.
func (w *window) show(
	ctx context.Context, to terminal.Streams, settings *clientSettings, request *sidebusv1.PeekRequest,
) error {
	switch {
	case w.Max < 0:
		return cli.Misuse("--max is %d, must be 0 (all) or more", w.Max)
	case w.From != nil && *w.From < 0:
		return cli.Misuse("--from is %d, must not be negative", *w.From)
	}
	return settings.operate(ctx, to, func(ctx context.Context, o *operator) error { return w.pages(ctx, o, request) })
}

// pages goes through the messages of a request.
func (w *window) pages(ctx context.Context, o *operator, request *sidebusv1.PeekRequest) error {
	where := place(request.GetSource(), request.GetSubQueue())
	if request.SessionId != nil {
		where = ofSession(request.GetSessionId(), request.GetSource())
	}
	if request.FromSequenceNumber == nil {
		request.FromSequenceNumber = proto.Int64(1) // in order of number, as the next pages
	}
	var columns []column
	for shown := 0; ; {
		isLast := w.Max > 0 && shown == w.Max
		step := peekStep
		if isLast {
			step = 1 // whether there is more
		} else if w.Max > 0 {
			step = min(step, w.Max-shown)
		}
		request.MaxMessages = proto.Int32(int32(step))
		answer, err := o.Peek(ctx, request)
		if err != nil {
			return err
		}
		page := answer.GetMessages()
		switch {
		case len(page) == 0 && shown == 0:
			o.note("no %s in %s", w.sought(request), where)
			return nil
		case len(page) == 0:
			return nil
		case isLast:
			o.note("there are more; --from %d shows the next ones", page[0].GetSequenceNumber())
			return nil
		case shown == 0:
			columns = columnsOf(page, request.GetSubQueue(), true)
		}
		if err := errors.Join(o.messages(page, columns, shown == 0), o.flush()); err != nil {
			return err
		}
		shown += len(page)
		request.FromSequenceNumber = proto.Int64(page[len(page)-1].GetSequenceNumber() + 1)
	}
}

// sought names what a request shows: messages, or some of them.
func (w *window) sought(request *sidebusv1.PeekRequest) string {
	text := "messages"
	if len(request.GetInclude()) > 0 {
		var states []string
		for _, state := range request.GetInclude() {
			states = append(states, strings.ToLower(state.String()))
		}
		text = strings.Join(states, " or ") + " " + text
	}
	if w.From != nil {
		text += fmt.Sprintf(" from number %d on", *w.From)
	}
	return text
}

// column is one property of a message in a table.
type column struct {
	name string
	text func(*sidebusv1.ReceivedMessage) string
}

// columnsOf are those of a queue or one of its dead-letter queues, received or peeked, by the first page of it: only
// where there are sessions there is a column for them.
func columnsOf(page []*sidebusv1.ReceivedMessage, subQueue sidebusv1.SubQueue_Kind, isPeek bool) []column {
	var columns []column
	add := func(name string, text func(*sidebusv1.ReceivedMessage) string) {
		columns = append(columns, column{name, text})
	}
	brief := func(name string, get func(*sidebusv1.ReceivedMessage) string) {
		add(name, func(m *sidebusv1.ReceivedMessage) string { return client.Brief(get(m)) })
	}
	add("SEQUENCE", func(m *sidebusv1.ReceivedMessage) string { return strconv.FormatInt(m.GetSequenceNumber(), 10) })
	add("ENQUEUED", func(m *sidebusv1.ReceivedMessage) string { return client.Instant(m.GetEnqueuedTime()) })
	if subQueue != sidebusv1.SubQueue_NONE {
		add("DEAD-LETTERED", func(m *sidebusv1.ReceivedMessage) string { return client.Instant(m.GetDeadLetteredTime()) })
		brief("REASON", (*sidebusv1.ReceivedMessage).GetDeadLetterReason)
		brief("DESCRIPTION", (*sidebusv1.ReceivedMessage).GetDeadLetterErrorDescription)
	}
	if isPeek {
		add("STATE", stateOf)
	}
	if slices.ContainsFunc(page, func(m *sidebusv1.ReceivedMessage) bool { return m.SessionId != nil }) {
		brief("SESSION", (*sidebusv1.ReceivedMessage).GetSessionId)
	}
	add("DELIVERIES", func(m *sidebusv1.ReceivedMessage) string { return strconv.Itoa(int(m.GetDeliveryCount())) })
	brief("MESSAGE ID", (*sidebusv1.ReceivedMessage).GetMessageId)
	brief("SUBJECT", (*sidebusv1.ReceivedMessage).GetSubject)
	add("BODY", client.Body)
	return columns
}

// stateOf says what can be done with a message now.
func stateOf(m *sidebusv1.ReceivedMessage) string {
	switch {
	case m.GetExpired():
		return "expired"
	case m.GetLocked():
		return "locked"
	case m.GetState() == sidebusv1.ReceivedMessage_SCHEDULED:
		return "scheduled for " + client.Instant(m.GetVisibleAt())
	case m.GetState() == sidebusv1.ReceivedMessage_DEFERRED:
		return "deferred"
	case m.GetVisibleAt() != nil:
		return "delayed until " + client.Instant(m.GetVisibleAt())
	default:
		return "available"
	}
}

// messages prints a page of messages, the first one with a header.
func (o *operator) messages(page []*sidebusv1.ReceivedMessage, columns []column, isFirst bool) error {
	if o.asJSON {
		for _, m := range page {
			if err := o.document(m); err != nil {
				return err
			}
		}
		return nil
	}
	var header []string
	for _, c := range columns {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, m := range page {
		var row []string
		for _, c := range columns {
			row = append(row, c.text(m))
		}
		rows = append(rows, row)
	}
	if !isFirst {
		header = nil
	}
	return o.table(header, rows)
}
