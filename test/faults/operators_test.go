package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// scratch is a queue that operators delete and create while it is used.
const scratch = "queues/scratch"

// operate changes entities while they are used.
func (r *run) operate() {
	rng := r.random(3000)
	for !r.isOver() {
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		admin := r.any(rng).admin
		var err error
		switch rng.IntN(3) {
		case 0:
			name := []string{resources[orders], resources[chats]}[rng.IntN(2)]
			_, err = admin.UpdateQueue(ctx, &sidebusv1.UpdateQueueRequest{
				Name: name,
				Queue: &sidebusv1.Queue{
					LockDuration:     durationpb.New(lockDuration + time.Duration(rng.IntN(3))*time.Second),
					MaxDeliveryCount: proto.Int32(int32(900 + rng.IntN(100))),
				},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"lock_duration", "max_delivery_count"}},
			})
		case 1:
			_, err = admin.EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: scratch})
		default:
			_, err = admin.DeleteQueue(ctx, &sidebusv1.DeleteQueueRequest{Name: scratch})
		}
		cancel()
		r.isExplained("change an entity", err)
		r.rest(time.Duration(50+rng.IntN(400)) * time.Millisecond)
	}
}

// scribble uses the queue that comes and goes.
func (r *run) scribble() {
	rng := rand.New(rand.NewPCG(r.seed, 3001))
	for !r.isOver() {
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		messages := r.any(rng).messages
		_, err := messages.Send(ctx, &sidebusv1.SendRequest{Target: scratch, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: "x"}}}})
		r.isExplained("send to the queue that comes and goes", err)
		response, err := messages.Receive(ctx, &sidebusv1.ReceiveRequest{Source: scratch, MaxMessages: proto.Int32(10), MaxWait: durationpb.New(50 * time.Millisecond)})
		r.isExplained("receive from the queue that comes and goes", err)
		var tokens []string
		for _, m := range response.GetMessages() {
			tokens = append(tokens, m.GetLockToken())
		}
		if len(tokens) > 0 {
			_, err = messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: scratch, LockTokens: tokens})
			r.isExplained("complete in the queue that comes and goes", err)
		}
		cancel()
	}
}
