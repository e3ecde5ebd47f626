package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type sendCommand struct {
	Queue string   `arg:"" help:"The queue: orders or queues/orders."`
	Text  []string `arg:"" optional:"" help:"Bodies, each of its own message, stored all or none. None or - reads stdin as one body."`

	File  string `name:"file" short:"f" placeholder:"FILE" help:"Read the body from a file."`
	Lines bool   `name:"lines" short:"l" help:"Each line of stdin or the file is a message; empty lines are skipped."`
	JSON  bool   `name:"json" short:"j" help:"Bodies are JSON values."`

	Property      []string `name:"property" short:"p" sep:"none" placeholder:"NAME[:TYPE]=VALUE" help:"Application property, as color=red, n=5, n:int32=5 or id:uuid=...; may be repeated."`
	MessageID     string   `name:"message-id" placeholder:"ID" help:"Id of the one message, for duplicate detection."`
	Subject       string   `name:"subject" placeholder:"TEXT" help:"Subject, also called label."`
	CorrelationID string   `name:"correlation-id" placeholder:"ID"`
	SessionID     string   `name:"session" aliases:"session-id" placeholder:"ID" help:"Id of the session it belongs to."`
	PartitionKey  string   `name:"partition-key" placeholder:"KEY"`
	ContentType   string   `name:"content-type" placeholder:"TYPE" help:"Media type of the body."`
	ReplyTo       string   `name:"reply-to" placeholder:"PATH"`
	To            string   `name:"to" placeholder:"PATH"`
	TTL           string   `name:"ttl" placeholder:"TIME" help:"How long the message lives, such as 30s or 7d."`
	At            string   `name:"at" xor:"when" placeholder:"INSTANT" help:"Enqueue it then, in RFC 3339."`
	In            string   `name:"in" xor:"when" placeholder:"TIME" help:"Enqueue it after this time."`

	clientSettings
}

// Run sends and prints the sequence numbers; with --lines the table is a summary.
func (s *sendCommand) Run(ctx context.Context, to terminal) error {
	template, err := s.template(time.Now())
	if err != nil {
		return err
	}
	fromStdin := s.File == "" && (len(s.Text) == 0 || len(s.Text) == 1 && s.Text[0] == "-")
	switch {
	case s.File != "" && len(s.Text) > 0:
		return misuse("--file and bodies on the command line exclude each other")
	case s.Lines && s.File == "" && !fromStdin:
		return misuse("--lines reads stdin or --file, not the command line")
	case s.MessageID != "" && (s.Lines || len(s.Text) > 1):
		return misuse("--message-id is the id of one message, and there may be several")
	}
	input := to.stdin
	if s.File != "" && s.File != "-" {
		file, err := os.Open(s.File)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read from
		input = file
	}
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error {
		target := client.Resource(s.Queue)
		if to.asks && input == to.stdin && (fromStdin || s.File == "-") {
			o.note("reading from the terminal; Ctrl-D ends it")
		}
		switch {
		case s.Lines:
			return s.sendLines(ctx, o, target, template, input)
		case s.File == "" && !fromStdin:
			bodies := make([][]byte, len(s.Text))
			for i, text := range s.Text {
				bodies[i] = []byte(text)
			}
			return s.sendAll(ctx, o, target, template, bodies)
		default:
			body, err := await(ctx, func() ([]byte, error) { return io.ReadAll(input) })
			if err != nil {
				return fmt.Errorf("reading the body: %w", err)
			}
			return s.sendAll(ctx, o, target, template, [][]byte{body})
		}
	})
}

// template makes the message without its body.
func (s *sendCommand) template(now time.Time) (*sidebusv1.Message, error) {
	m := &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{}}
	texts := []struct {
		value string
		field **string
	}{
		{s.MessageID, &m.MessageId},
		{s.Subject, &m.Subject},
		{s.CorrelationID, &m.CorrelationId},
		{s.SessionID, &m.SessionId},
		{s.PartitionKey, &m.PartitionKey},
		{s.ContentType, &m.ContentType},
		{s.ReplyTo, &m.ReplyTo},
		{s.To, &m.To},
	}
	for _, t := range texts {
		if t.value != "" {
			*t.field = proto.String(t.value)
		}
	}
	for _, text := range s.Property {
		name, value, err := client.Property(text)
		if err != nil {
			return nil, misuse("--property %w", err)
		}
		if m.Properties[name] != nil {
			return nil, misuse("--property %s is given twice", name)
		}
		m.Properties[name] = value
	}
	if s.TTL != "" {
		lifetime, err := client.Duration(s.TTL)
		if err != nil {
			return nil, misuse("--ttl %w", err)
		}
		m.TimeToLive = lifetime
	}
	switch {
	case s.At != "":
		at, err := time.Parse(time.RFC3339Nano, s.At)
		if err != nil {
			return nil, misuse("--at is %q, must be an instant such as 2026-01-02T03:04:05Z", s.At)
		}
		m.ScheduledEnqueueTime = timestamppb.New(at)
	case s.In != "":
		in, err := client.Duration(s.In)
		if err != nil {
			return nil, misuse("--in %w", err)
		}
		m.ScheduledEnqueueTime = timestamppb.New(now.Add(in.AsDuration()))
	}
	return m, nil
}

var errNoJSON = errors.New("is not valid JSON")

// message puts a body into a copy of the template: as JSON if asked for, else as text, or octets where it is none.
func (s *sendCommand) message(template *sidebusv1.Message, body []byte) (*sidebusv1.Message, error) {
	m := proto.CloneOf(template)
	switch {
	case s.JSON && (!json.Valid(body) || !utf8.Valid(body)):
		return nil, errNoJSON
	case s.JSON:
		m.Content = &sidebusv1.Message_Json{Json: string(body)}
	case utf8.Valid(body):
		m.Content = &sidebusv1.Message_Text{Text: string(body)}
	default:
		m.Content = &sidebusv1.Message_Body{Body: body}
	}
	return m, nil
}

// sendAll sends all bodies in one call and prints a row for each.
func (s *sendCommand) sendAll(ctx context.Context, o *operator, target string, template *sidebusv1.Message, bodies [][]byte) error {
	request := &sidebusv1.SendRequest{Target: target}
	for i, body := range bodies {
		m, err := s.message(template, body)
		if err != nil {
			return fmt.Errorf("body %d %w; nothing was sent", i+1, err)
		}
		request.Messages = append(request.Messages, m)
	}
	answer, err := o.Send(ctx, request)
	if err != nil {
		return err
	}
	if o.asJSON {
		return o.results(answer)
	}
	var rows [][]string
	for _, result := range answer.GetResults() {
		note := "sent"
		switch {
		case result.GetDeduplicated():
			note = "duplicate, dropped"
		case template.GetScheduledEnqueueTime().AsTime().After(time.Now()):
			note = "scheduled for " + client.Instant(template.GetScheduledEnqueueTime())
		}
		rows = append(rows, []string{strconv.FormatInt(result.GetSequenceNumber(), 10), client.OneLine(result.GetMessageId()), note})
	}
	return o.table([]string{"SEQUENCE", "MESSAGE ID", "RESULT"}, rows)
}

// results writes a line of JSON for each message that was sent.
func (o *operator) results(answer *sidebusv1.SendResponse) error {
	for _, result := range answer.GetResults() {
		if err := o.document(result); err != nil {
			return err
		}
	}
	return nil
}
