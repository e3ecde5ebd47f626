package verbs

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// messageFlags are all of a message but its body.
type messageFlags struct {
	Property      []string `name:"property" short:"p" sep:"none" placeholder:"NAME[:TYPE]=VALUE" help:"Application property, such as color=red, n=5, n:int32=5 or id:uuid=... Can be repeated."`
	MessageID     string   `name:"message-id" placeholder:"ID" help:"Message id, for duplicate detection. Only for a single message."`
	Subject       string   `name:"subject" placeholder:"TEXT" help:"Subject, also called label."`
	CorrelationID string   `name:"correlation-id" placeholder:"ID" help:"Correlation id."`
	SessionID     string   `name:"session" aliases:"session-id" placeholder:"ID" help:"Session id."`
	PartitionKey  string   `name:"partition-key" placeholder:"KEY" help:"Partition key."`
	ContentType   string   `name:"content-type" placeholder:"TYPE" help:"Media type of the body."`
	ReplyTo       string   `name:"reply-to" placeholder:"PATH" help:"Queue for replies."`
	To            string   `name:"to" placeholder:"PATH" help:"Property To of the message."`
	TTL           string   `name:"ttl" placeholder:"TIME" help:"How long the message lives, such as 30s or 7d."`
	At            string   `name:"at" xor:"when" placeholder:"INSTANT" help:"Schedule the message for this instant in RFC 3339."`
	In            string   `name:"in" xor:"when" placeholder:"TIME" help:"Schedule the message for this time from now, such as 1h or P1D."`
}

// template makes the message without its body.
func (m *messageFlags) template(now time.Time) (*sidebusv1.Message, error) {
	message := &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{}}
	texts := []struct {
		value string
		field **string
	}{
		{m.MessageID, &message.MessageId},
		{m.Subject, &message.Subject},
		{m.CorrelationID, &message.CorrelationId},
		{m.SessionID, &message.SessionId},
		{m.PartitionKey, &message.PartitionKey},
		{m.ContentType, &message.ContentType},
		{m.ReplyTo, &message.ReplyTo},
		{m.To, &message.To},
	}
	for _, t := range texts {
		if t.value != "" {
			*t.field = proto.String(t.value)
		}
	}
	if err := readValues("--property", m.Property, message.Properties); err != nil {
		return nil, err
	}
	if m.TTL != "" {
		lifetime, err := duration.Wire(m.TTL)
		if err != nil {
			return nil, cli.Misuse("--ttl %w", err)
		}
		message.TimeToLive = lifetime
	}
	switch {
	case m.At != "":
		at, err := time.Parse(time.RFC3339Nano, m.At)
		if err != nil {
			return nil, cli.Misuse("--at is %q, must be an instant such as 2026-01-02T03:04:05Z", m.At)
		}
		message.ScheduledEnqueueTime = timestamppb.New(at)
	case m.In != "":
		in, err := duration.Wire(m.In)
		if err != nil {
			return nil, cli.Misuse("--in %w", err)
		}
		if in.AsDuration() < 0 {
			return nil, cli.Misuse("--in is %s, must not be negative", m.In)
		}
		message.ScheduledEnqueueTime = timestamppb.New(now.Add(in.AsDuration()))
	}
	return message, nil
}
