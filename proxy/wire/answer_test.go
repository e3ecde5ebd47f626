package wire

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// What a message is said to take in an answer is never less than what it takes, so that an answer that is bounded by it
// can be read.
func TestRECV_6_AnswerSizeIsEnough(t *testing.T) {
	t.Parallel()
	text := func(r *rand.Rand, most int) string { return strings.Repeat("ä", r.IntN(most+1)) }
	values := []semantics.Value{
		semantics.Null(), semantics.Bool(true), semantics.Int64(-1), semantics.Int64(5), semantics.Uint64(1 << 63), semantics.Double(1.5),
		semantics.String(""), semantics.String("text"), semantics.Bytes([]byte("bytes")),
	}
	for kind, written := range map[semantics.ValueType]string{
		semantics.TypeUUID: semantics.NewRandomUUID().String(), semantics.TypeDecimal: "-1234567890123456789012345678.9",
		semantics.TypeDateTimeOffset: "2026-11-22T17:00:00.1234567+13:45",
	} {
		v, err := semantics.TextOf(kind, written)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Now()
		m := &semantics.Received{
			Message: semantics.Message{
				MessageID: text(r, 128), SessionID: text(r, 64), PartitionKey: text(r, 64), CorrelationID: text(r, 64), Subject: text(r, 200),
				To: text(r, 20), ReplyTo: text(r, 20), ReplyToSessionID: text(r, 20), ContentType: text(r, 20), ScheduledAt: now,
				Body: make([]byte, r.IntN(300)), BodyKind: semantics.BodyKind(r.IntN(3)), Properties: map[string]semantics.Value{},
			},
			SequenceNumber: 1<<53 - 1, EnqueuedSequenceNumber: 1<<53 - 1, SessionSequence: 1<<53 - 1, EnqueuedAt: now, ExpiresAt: now.AddDate(8000, 0, 0),
			DeliveryCount: 1 << 30, LockToken: semantics.NewLockToken(), LockedUntil: now, DeadLetteredAt: now, DeadLetterDeliveryCount: 1 << 30,
			Size: 1 << 27, State: semantics.Deferred, Locked: true, Expired: true, VisibleAt: now, DeadLetterSource: text(r, 260),
		}
		ttl := semantics.Never - 1
		m.TimeToLive = &ttl
		for range r.IntN(3000) {
			m.Properties[string([]rune{rune('a' + r.IntN(26)), rune('a' + r.IntN(26)), rune('a' + r.IntN(26))})] = values[r.IntN(len(values))]
		}
		if r.IntN(2) == 0 {
			reason, description := text(r, 4096), text(r, 4096)
			m.SetDeadLetter(semantics.DeadLetterTexts{Reason: &reason, Description: &description}, now)
		}
		size := 0
		for _, one := range ReceivedFrom([]*semantics.Received{m}, true) {
			size += proto.Size(one)
		}
		if size := int64(size); size > m.AnswerSize() {
			t.Fatalf("seed %d: %d bytes, said to be %d: %d properties", seed, size, m.AnswerSize(), len(m.Properties))
		}
	}
}
