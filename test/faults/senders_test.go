package faults

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/storetest"
)

const (
	senders           = 3 // of each of -crowds
	sessionsPerSender = 8
	keysPerSender     = 8
	patience          = 10 * time.Second // of one call
	maxBody           = 64 << 10
	maxBytes          = 256 << 10 // of a batch, what the entities permit
	maxBacklog        = 10_000    // messages; senders wait for receivers
)

// resources are the names of the targets in the API.
var resources = [targets]string{orders: "queues/orders", chats: "queues/chats", news: "topics/news", spread: "queues/spread"}

// send sends batches until it is told to stop.
func (r *run) send(sender int) {
	rng := r.random(100 + sender)
	for batch := 0; !r.isStopping(); batch++ {
		if r.backlog.Load() > maxBacklog {
			r.rest(10 * time.Millisecond)
			continue
		}
		ids := r.ledger.draft(target(rng.IntN(int(targets))), sender, storetest.RandomLogUniform(rng, *maxBatch))
		r.sent.Add(int64(len(ids)))
		r.ledger.sentAs(ids, r.sendOne(rng, ids, batch))
	}
}

// sendOne sends a batch. Messages of a session or with a partition key, and half of the others, it sends until it knows
// the outcome, with the same request id.
func (r *run) sendOne(rng *rand.Rand, ids []id, batch int) outcome {
	request := &sidebusv1.SendRequest{Target: resources[ids[0].to]}
	room := maxBytes - 100*len(ids) // 100: its name and session, and what is counted for each message
	key := ""
	if ids[0].to == spread && rng.IntN(2) == 0 {
		n := batch % keysPerSender
		key = fmt.Sprintf("%d-%d", ids[0].sender, n)
		r.ledger.keyed(ids, uint8(1+n)) //nolint:gosec // it is small
	}
	for _, i := range ids {
		m := &sidebusv1.Message{MessageId: proto.String(i.String()), Content: &sidebusv1.Message_Body{Body: bodyOf(i, room)}}
		room -= len(m.GetBody())
		if i.to == chats {
			m.SessionId = proto.String(sessionOf(i))
		}
		if key != "" {
			m.PartitionKey = proto.String(key)
		}
		request.Messages = append(request.Messages, m)
	}
	isSure := ids[0].to == chats || key != "" || rng.IntN(2) == 0
	if isSure {
		request.RequestId = proto.String(fmt.Sprintf("%d/%d", ids[0].sender, batch))
	}
	for {
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		_, err := r.any(rng).messages.Send(ctx, request)
		cancel()
		got, isExpected := outcomeOf(err)
		if !isExpected && r.ctx.Err() == nil {
			r.ledger.unexpected("send to "+request.GetTarget(), err)
		}
		if got == done || !isSure || r.ctx.Err() != nil {
			return got
		}
		r.rest(5 * time.Millisecond)
	}
}

// sessionOf returns the session of a message.
func sessionOf(i id) string { return fmt.Sprintf("%d-%d", i.sender, i.number%sessionsPerSender) }

// bodyOf returns the body of a message, which depends on its name only, unless there is no room for it.
func bodyOf(i id, room int) []byte {
	rng := rand.New(rand.NewPCG(uint64(i.sender)<<8|uint64(i.to), uint64(i.number)))
	text := i.String() + " "
	size := storetest.RandomLogUniform(rng, maxBody)
	if rng.IntN(20) > 0 {
		size = min(size, 200)
	}
	return bytes.Repeat([]byte(text), 1+min(size, max(0, room))/len(text))
}

// isWhole reports whether a body is one that was sent.
func isWhole(i id, body []byte) bool {
	text := []byte(i.String() + " ")
	return len(body) > 0 && len(body)%len(text) == 0 && bytes.Equal(body, bytes.Repeat(text, len(body)/len(text)))
}
