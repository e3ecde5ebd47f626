package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/sidebus/sidebus/semantics"
)

// SendOnce is Send under a request id: for two minutes a repeat on the same target, through any sidecar, gets the first
// answer and stores nothing, and repeated reports that. INVALID_ARGUMENT when the id came with other messages (IDEM-1).
func (b *Broker) SendOnce(
	ctx context.Context, target semantics.Target, requestID string, messages []*semantics.Message,
) (results []semantics.SendResult, repeated bool, err error) {
	if target, err = target.Parse(); err != nil {
		return nil, false, err
	}
	if err := checkRequestID(requestID); err != nil {
		return nil, false, err
	}
	once := semantics.Once{RequestID: requestID, Digest: digestOf(messages), Seed: semantics.NewRandomUUID().String()}
	made := fillIDs(once, messages)
	results = make([]semantics.SendResult, len(messages))
	if err = b.prepare(messages, results); err != nil {
		return nil, false, err
	}
	outcome, err := b.sendPatiently(ctx, target, messages, &once)
	if err != nil {
		clearIDs(messages, made)
		next := "repeat the call with the same requestId within " + semantics.RequestsKeptFor.String() + ", which stores nothing twice"
		return nil, false, withNextStep(err, next)
	}
	for i := range results {
		results[i].Stored = outcome.Stored[i]
		if outcome.Repeats != nil && made[i] {
			results[i].MessageID = semantics.IDFrom(outcome.Repeats.Seed, i)
		}
	}
	return results, outcome.Repeats != nil, nil
}

func checkRequestID(id string) error {
	if id == "" {
		return semantics.InvalidField("requestId", "must have 1 to %d characters", semantics.MaxIDLength)
	}
	return semantics.CheckID("requestId", id)
}

// fillIDs assigns ids to messages that have none, and reports which.
func fillIDs(o semantics.Once, messages []*semantics.Message) (made []bool) {
	made = make([]bool, len(messages))
	for i, m := range messages {
		if made[i] = m.MessageID == ""; made[i] {
			m.MessageID = semantics.IDFrom(o.Seed, i)
		}
	}
	return made
}

// clearIDs is the opposite of fillIDs, so that another try with the same messages has the digest of this one.
func clearIDs(messages []*semantics.Message, made []bool) {
	for i, m := range messages {
		if made[i] {
			m.MessageID = ""
		}
	}
}

// digestOf returns a digest that distinguishes the messages of one call from others: by their number, their sizes and
// the ids that the client sent. It is kept by the store, so it must stay what it is from version to version.
func digestOf(messages []*semantics.Message) string {
	hash := sha256.New()
	for _, m := range messages {
		head := binary.BigEndian.AppendUint64(nil, uint64(m.Size())) //nolint:gosec // a size is not negative
		hash.Write(append(binary.BigEndian.AppendUint64(head, uint64(len(m.MessageID))), m.MessageID...))
	}
	return hex.EncodeToString(hash.Sum(nil)[:12])
}
