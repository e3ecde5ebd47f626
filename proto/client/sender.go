package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Sender sends messages to a queue or topic. Its methods block until the messages are stored or refused, and may be
// called concurrently.
//
// Every send has a request id, so that it is safe to repeat: when the connection breaks or Redis is away, the Sender
// makes the same call again, for as long as the context and Options.RetryTimeout permit, and the messages are stored
// once. If that fails too, the [Error] has OutcomeUnknown and the RequestID, under which you may repeat the send within
// two minutes of the first try.
type Sender struct {
	life *lifetime
	name string

	isTopic atomic.Bool // as far as is known
}

// NewSenderOptions is for options to come.
type NewSenderOptions struct{}

// NewSender makes a Sender for the queue or topic of that name. options may be nil. It makes no call: whether the name
// exists shows with the first send. It fails with [CodeClosed], or [CodeInvalidArgument] for an empty name.
func (c *Client) NewSender(queueOrTopic string, _ *NewSenderOptions) (*Sender, error) {
	if queueOrTopic == "" {
		return nil, invalidArgument("queueOrTopic", "the name of the queue or topic is empty")
	}
	life, err := c.newLifetime()
	if err != nil {
		return nil, err
	}
	return &Sender{life: life, name: queueOrTopic}, nil
}

// SendMessageOptions changes one send.
type SendMessageOptions struct {
	// RequestID is 1 to 128 UTF-16 units and makes this send the same as an earlier one to the same queue or topic,
	// with the same messages, within two minutes: it gets the answer of the first and stores nothing. Empty: a new
	// random id.
	RequestID string
}

// SentMessage is what became of a message that was stored.
type SentMessage struct {
	// SequenceNumber is the number that the queue or topic assigned to the message. [Sender.CancelScheduledMessages]
	// takes it.
	SequenceNumber int64
	// MessageID is as sent, or as made by Sidebus.
	MessageID string
	// IsDuplicate reports whether duplicate detection knew the MessageID. Then the message was not stored again, and
	// SequenceNumber is that of the first.
	IsDuplicate bool
}

// SendMessage sends one message. options may be nil.
func (s *Sender) SendMessage(ctx context.Context, message *Message, options *SendMessageOptions) error {
	_, err := s.SendMessages(ctx, []*Message{message}, options)
	return err
}

// SendMessages sends 1 to 4500 messages, all or none, and returns a row for each in the same order. Together they may
// count for 256 KiB, or 1 MiB where the queue's messages may be larger than 256 KiB: see [MessageBatch]. options may be
// nil.
//
// Errors: [CodeMessageSizeExceeded]; [CodeEntityNotFound]; [CodeEntityFull] and [CodeQuotaExceeded] when it is full;
// [CodeSessionIDMissing] on a queue with sessions; [CodeNoMatchingSubscription] if the topic asks for that;
// Details["index"] is the position of the message that is to blame.
func (s *Sender) SendMessages(
	ctx context.Context, messages []*Message, options *SendMessageOptions,
) ([]SentMessage, error) {
	request := &sidebusv1.SendRequest{}
	for _, m := range messages {
		w, err := m.wire()
		if err != nil {
			return nil, err
		}
		request.Messages = append(request.Messages, w)
	}
	return s.send(ctx, request, options)
}

// NewMessageBatch makes an empty batch. options may be nil. It makes no call.
func (s *Sender) NewMessageBatch(options *MessageBatchOptions) *MessageBatch {
	b := &MessageBatch{maxBytes: batchBytes}
	if options != nil && options.MaxBytes > 0 {
		b.maxBytes = options.MaxBytes
	}
	return b
}

// SendMessageBatch sends the messages of a batch, all or none. An empty batch is [CodeInvalidArgument]. Returns and
// fails as SendMessages does.
func (s *Sender) SendMessageBatch(
	ctx context.Context, batch *MessageBatch, options *SendMessageOptions,
) ([]SentMessage, error) {
	return s.send(ctx, &sidebusv1.SendRequest{Messages: batch.messages}, options)
}

func (s *Sender) send(
	ctx context.Context, request *sidebusv1.SendRequest, options *SendMessageOptions,
) ([]SentMessage, error) {
	id := rand.Text()
	if options != nil && options.RequestID != "" {
		id = options.RequestID
	}
	request.RequestId = &id
	var response *sidebusv1.SendResponse
	err := s.onTarget(ctx, repeatable, func(ctx context.Context, target string) (err error) {
		request.Target = target
		response, err = s.life.client.messages.Send(ctx, request)
		return err
	})
	if err != nil {
		failure := *ErrorOf(err)
		failure.RequestID = id
		return nil, &failure
	}
	sent := make([]SentMessage, len(response.GetResults()))
	for i, r := range response.GetResults() {
		sent[i] = SentMessage{
			SequenceNumber: r.GetSequenceNumber(),
			MessageID:      r.GetMessageId(),
			IsDuplicate:    r.GetDeduplicated(),
		}
	}
	return sent, nil
}

// ScheduleMessages sends 1 to 4500 messages that become available at the given time, or up to a second later, all or
// none. It returns their sequence numbers, which are good for [Sender.CancelScheduledMessages] until then. A time in
// the past is now. The ScheduledEnqueueTime of the messages is not looked at. options may be nil.
func (s *Sender) ScheduleMessages(
	ctx context.Context, messages []*Message, at time.Time, options *SendMessageOptions,
) ([]int64, error) {
	request := &sidebusv1.SendRequest{}
	for _, m := range messages {
		w, err := m.wire()
		if err != nil {
			return nil, err
		}
		w.ScheduledEnqueueTime = timestamppb.New(at)
		request.Messages = append(request.Messages, w)
	}
	sent, err := s.send(ctx, request, options)
	numbers := make([]int64, len(sent))
	for i := range sent {
		numbers[i] = sent[i].SequenceNumber
	}
	return numbers, err
}

// CancelScheduledMessagesOptions is for options to come.
type CancelScheduledMessagesOptions struct{}

// CancelScheduledMessages removes 1 to 1000 messages that are still scheduled, all or none. If one is not, it removes
// none and fails with [CodeMessageNotFound]; Details["sequenceNumbers"] names them. When the outcome is unknown it does
// not repeat the call; repeat it yourself, and take CodeMessageNotFound as success. options may be nil.
func (s *Sender) CancelScheduledMessages(
	ctx context.Context, sequenceNumbers []int64, _ *CancelScheduledMessagesOptions,
) error {
	return s.onTarget(ctx, once, func(ctx context.Context, target string) error {
		_, err := s.life.client.messages.CancelScheduled(ctx, &sidebusv1.CancelScheduledRequest{
			Target: target, SequenceNumbers: sequenceNumbers,
		})
		return err
	})
}

// RequestOptions changes [Sender.Request].
type RequestOptions struct {
	// Timeout is how long to wait for the reply, 1 ms to 5 min; 0 is 1 min. It is also how long the request lives.
	Timeout time.Duration
}

// Request sends a message and waits for the reply to it, which a worker sends with [Client.Reply]. Replies come through
// replyQueue, a queue with sessions that any number of requesters share. The message must have no ReplyTo,
// ReplyToSessionID and ScheduledEnqueueTime. options may be nil.
//
// Without a reply in time it fails with [CodeServiceTimeout]. If the outcome is unknown, the request was sent and a
// worker may do what it asks for; Request does not repeat it.
func (s *Sender) Request(
	ctx context.Context, message *Message, replyQueue string, options *RequestOptions,
) (*ReceivedMessage, error) {
	w, err := message.wire()
	if err != nil {
		return nil, err
	}
	request := &sidebusv1.RequestRequest{Message: w, ReplyTo: queueSource(replyQueue)}
	if options != nil && options.Timeout != 0 {
		request.Timeout = durationpb.New(options.Timeout)
	}
	var response *sidebusv1.RequestResponse
	err = s.onTarget(ctx, once, func(ctx context.Context, target string) (err error) {
		request.Target = target
		response, err = s.life.client.messages.Request(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receivedMessage(response.GetMessage()), nil
}

// Reply sends the reply to a request that was received: to its ReplyTo, into its ReplyToSessionID, with its
// CorrelationID or else its MessageID. It sets these fields of reply. Complete the request after that, so that no reply
// is lost. options may be nil. A message without ReplyTo is [CodeInvalidArgument].
func (c *Client) Reply(
	ctx context.Context, request *ReceivedMessage, reply *Message, options *SendMessageOptions,
) error {
	if request.ReplyTo == nil || *request.ReplyTo == "" {
		return invalidArgument("replyTo", "the request does not name where its reply should go")
	}
	reply.SessionID, reply.CorrelationID = request.ReplyToSessionID, request.CorrelationID
	if reply.CorrelationID == nil {
		reply.CorrelationID = &request.MessageID
	}
	sender, err := c.NewSender(*request.ReplyTo, nil)
	if err != nil {
		return err
	}
	defer sender.life.close()
	return sender.SendMessage(ctx, reply, options)
}

// Close ends the Sender: calls in progress and later ones fail with [CodeClosed]. It does not block and always returns
// nil; ctx is not looked at.
func (s *Sender) Close(context.Context) error {
	s.life.close()
	return nil
}

// onTarget makes a call to the queue or else to the topic of the Sender's name. Both kinds share their names, so there
// is one of them at most, and the call that is not for it does nothing.
func (s *Sender) onTarget(ctx context.Context, of effect, try func(ctx context.Context, target string) error) error {
	var refused error
	for range 2 {
		isTopic := s.isTopic.Load()
		err := s.life.call(ctx, of, func(ctx context.Context, _ bool) error {
			if isTopic {
				return try(ctx, "topics/"+s.name)
			}
			return try(ctx, queueSource(s.name))
		})
		if !errors.Is(err, CodeEntityNotFound) || !strings.EqualFold(ErrorOf(err).Details["entity"], s.name) {
			return err // the queue of the replies may be what is missing
		}
		refused = err
		s.isTopic.CompareAndSwap(isTopic, !isTopic)
	}
	failure := *ErrorOf(refused)
	failure.Message = fmt.Sprintf("no queue or topic has the name %q; create it first", s.name)
	return &failure
}

func queueSource(name string) string { return "queues/" + name }
