package dapr

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"strconv"
	"strings"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/semantics"
)

const (
	// maxDelivery is the most bytes that the Dapr runtime accepts for a message with its metadata. A larger message
	// ends the stream for good.
	maxDelivery = 4 << 20
	// alwaysDeliverable is a body size that fits with any headers, which have 64 KiB (MSG-15).
	alwaysDeliverable = 3 << 20
	// metaMaxBulkBytes is the metadata that limits the size of a batch.
	metaMaxBulkBytes = "maxBulkPubBytes"
)

// errTimeout is the cause of a call that takes longer than timeoutInSec.
var errTimeout = errors.New("timeoutInSec has elapsed")

// Publish stores a message. If the topic is a dead-letter queue and the message was delivered before, Publish
// dead-letters the original instead: so the Dapr runtime treats messages that the app fails, if that queue is the
// deadLetterTopic of the subscription.
func (c *component) Publish(ctx context.Context, request *proto.PublishRequest) (*proto.PublishResponse, error) {
	if err := refuseNumber(request.GetTopic()); err != nil {
		return nil, err
	}
	if err := permitPublish(ctx, request.GetTopic()); err != nil {
		return nil, err
	}
	s := c.registry.settings(keyOf(ctx))
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	if _, sub := addressOf(request.GetTopic()); sub.IsDeadLetters() {
		if token, ok := deliveredToken(request.GetMetadata()); ok {
			return &proto.PublishResponse{}, c.deadLetterDelivered(ctx, request.GetTopic(), token)
		}
	}
	m, err := messageOf(request.GetData(), request.GetMetadata())
	if err != nil {
		return nil, err
	}
	ctx = c.metrics.Traces.FromDapr(ctx, request.GetMetadata(), request.GetData())
	return &proto.PublishResponse{}, c.send(
		ctx, s, request.GetTopic(), requestIDOf(request.GetMetadata()), []*semantics.Message{m},
	)
}

// BulkPublish stores a batch, all messages or none (DAPR-5). A failure fails the call, because the Dapr runtime ignores
// failures of single entries.
func (c *component) BulkPublish(
	ctx context.Context, request *proto.BulkPublishRequest,
) (*proto.BulkPublishResponse, error) {
	if err := refuseNumber(request.GetTopic()); err != nil {
		return nil, err
	}
	if err := permitPublish(ctx, request.GetTopic()); err != nil {
		return nil, err
	}
	s := c.registry.settings(keyOf(ctx))
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	messages := make([]*semantics.Message, len(request.GetEntries()))
	bytes := int64(0)
	for i, entry := range request.GetEntries() {
		metadata := maps.Clone(request.GetMetadata())
		if metadata == nil {
			metadata = map[string]string{}
		}
		maps.Copy(metadata, entry.GetMetadata())
		m, err := messageOf(entry.GetEvent(), metadata)
		if err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
		if m.ContentType == "" {
			m.ContentType = entry.GetContentType()
		}
		messages[i], bytes = m, bytes+m.Size()
	}
	if err := checkBulk(request.GetMetadata()[metaMaxBulkBytes], bytes); err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return &proto.BulkPublishResponse{}, nil
	}
	return &proto.BulkPublishResponse{}, c.send(
		ctx, s, request.GetTopic(), requestIDOf(request.GetMetadata()), messages,
	)
}

// checkBulk checks the size of a batch against the limit that the publisher set.
func checkBulk(bound string, bytes int64) error {
	if bound == "" {
		return nil
	}
	most, err := strconv.ParseInt(bound, 10, 64)
	if err != nil || most < 1 {
		return semantics.Errorf(semantics.InvalidArgument, "metadata %s is %q, must be a number of bytes", metaMaxBulkBytes,
			semantics.Shorten(bound)).
			With(semantics.DetailField, metaMaxBulkBytes)
	}
	if bytes > most {
		return semantics.SizeExceeded(metaMaxBulkBytes, bytes, most)
	}
	return nil
}

// requestIDOf returns the request id that makes a publish safe to repeat (IDEM-1), or "".
func requestIDOf(metadata map[string]string) string {
	for name, text := range metadata {
		if strings.EqualFold(name, metaRequestID) {
			return text
		}
	}
	return ""
}

// send stores messages, with a request id unless it is empty. It creates the entity if it is missing.
func (c *component) send(
	ctx context.Context, s settings, topic, requestID string, messages []*semantics.Message,
) error {
	for i, m := range messages {
		if err := checkDeliverable(topic, m); err != nil {
			return semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	if conn := connOf(ctx); conn != nil {
		conn.openings.await(ctx)
	}
	target := semantics.Target{Path: topic, IsTopic: s.kind == semantics.TopicKind}
	ctx, sending := c.metrics.Traces.Send(ctx, target, messages)
	send := func() (results []semantics.SendResult, repeated bool, err error) {
		if requestID != "" {
			return c.broker.SendOnce(ctx, target, requestID, messages)
		}
		results, err = c.broker.Send(ctx, target, messages)
		return results, false, err
	}
	results, repeated, err := send()
	if semantics.CodeOf(err) == semantics.EntityNotFound && s.manages && mayCreate(ctx, topic) {
		if err = c.ensureTarget(ctx, s, topic); err == nil {
			results, repeated, err = send()
		}
	}
	sending.End(err)
	switch {
	case repeated:
	case err == nil:
		c.metrics.Sent(target, messages, results)
	case ctx.Err() != nil && semantics.CodeOf(err) == semantics.Cancelled:
		return timeoutError(ctx, s, err)
	}
	return err
}

// timeoutError returns SERVICE_TIMEOUT if the call timed out, or err if its caller ended it.
func timeoutError(ctx context.Context, s settings, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		e := semantics.Errorf(
			semantics.ServiceTimeout, "the message was not stored within timeoutInSec, %s; publish it again", s.timeout,
		)
		e.Details = semantics.AsError(err).Details
		return e
	}
	return err
}

// checkDeliverable refuses a message that is too large to be delivered to the Dapr runtime.
func checkDeliverable(topic string, m *semantics.Message) error {
	if len(m.Body) <= alwaysDeliverable {
		return nil
	}
	const storeMetadata = 512 // bytes that the store adds
	response := responseOf(topic, &semantics.Received{Message: *m})
	if n := len(response) + storeMetadata; n > maxDelivery {
		return semantics.SizeExceeded("message for Dapr, with its metadata,", int64(n), maxDelivery)
	}
	return nil
}

// deliveredToken finds the lock token of a previous delivery in metadata.
func deliveredToken(metadata map[string]string) (token semantics.LockToken, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(metadata[deliveredPrefix+metaLockToken])
	if err != nil || len(raw) != len(token) {
		return token, false
	}
	copy(token[:], raw)
	return token, true
}
