package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Entries of a stream cannot be changed. What changes about a message is therefore kept beside it, as "<bytes more than
// as sent>:<changes>". The scripts read the number only.

// encodeChanges writes the properties a message has now.
func encodeChanges(more int64, changes *storagev1.Changes) (string, error) {
	blob, err := proto.Marshal(changes)
	if err != nil {
		return "", &semantics.Error{
			Code:    semantics.Internal,
			Message: "changes of a message cannot be encoded",
			Err:     err,
		}
	}
	return strconv.FormatInt(more, 10) + ":" + string(blob), nil
}

// applyChanges makes the changes to a message and returns by how many bytes they make it larger.
func applyChanges(text string, m *semantics.Message) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number, blob, ok := strings.Cut(text, ":")
	more, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return 0, unreadable(fmt.Errorf("changes without size"))
	}
	var changes storagev1.Changes
	if err := proto.Unmarshal([]byte(blob), &changes); err != nil {
		return 0, unreadable(err)
	}
	if changes.MessageId != "" {
		m.MessageID = changes.MessageId
	}
	if changes.Properties != nil {
		m.Properties, err = decodeProperties(changes.Properties.Entries)
	}
	if changes.SentAnew {
		m.ForgetForwarding()
	}
	return more, err
}

// merged is the outcome of merging properties into one message.
type merged struct {
	code semantics.Code // why they cannot be merged; the message then keeps its lock
	text string         // the changes to be stored
}

// argument returns the outcome as the settle scripts take it.
func (m merged) argument() string {
	if m.code != "" {
		return "!"
	}
	return m.text
}

// merge reads the messages behind the tokens and sets properties over theirs (SETTLE-5). No other call can change a
// message meanwhile: only the holder of the lock may, and the script that stores the outcome checks the lock. A message
// that is gone has an empty outcome; the script reports its lock as lost.
func (s *Store) merge(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value,
) ([]merged, error) {
	keys := s.keysOf(source).of(source.SubQueue)
	spans, changes := make([]span, len(tokens)), make([]*redis.StringCmd, len(tokens))
	_, err := s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, t := range tokens {
			l, _ := lockOf(t)
			position := strconv.FormatInt(l.position, 10)
			spans[i] = span{first: position, last: position}
			changes[i] = p.HGet(ctx, keys.key("modified"), position)
		}
		return nil
	})
	if err != nil && err != redis.Nil { //nolint:errorlint // go-redis returns this value itself
		return nil, storeError(err, false)
	}
	read, err := s.readMessages(ctx, keys, spans)
	if err != nil {
		return nil, err
	}
	outcomes := make([]merged, len(tokens))
	for i := range tokens {
		if len(read[i]) == 0 {
			continue
		}
		if outcomes[i], err = s.sealing.mergeInto(read[i][0], changes[i].Val(), properties); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (s sealing) mergeInto(e entry, before string, properties map[string]semantics.Value) (merged, error) {
	var m semantics.Message
	if err := s.decodeHeaders(e.payload, &m); err != nil {
		return merged{}, err
	}
	sent, wasForwarded := m.HeaderSize(), m.Forwarded != nil
	if _, err := applyChanges(before, &m); err != nil {
		return merged{}, err
	}
	now, code := m.MergeProperties(properties)
	if code != "" {
		return merged{code: code}, nil
	}
	id := m.MessageID
	m.Properties = now
	changes := &storagev1.Changes{
		Properties: &storagev1.Properties{
			Entries: encodeProperties(now),
		}, MessageId: id, SentAnew: wasForwarded && m.Forwarded == nil,
	}
	text, err := encodeChanges(m.HeaderSize()-sent, changes)
	return merged{text: text}, err
}
