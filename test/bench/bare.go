package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/figures"
)

// floorSessions is a server with the API of Sidebus that keeps each session in a list of its own and runs the commands
// that strict order needs at least, without scripts or checks: what Redis behind gRPC costs without Sidebus.
func floorSessions(client string) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) {
		store, err := startRedis(ctx, dir)
		if err != nil {
			return nil, err
		}
		server, err := startServer(ctx, true, "-serve-bare", store.socket)
		if err != nil {
			store.stop()
			return nil, err
		}
		return &opened{
			round: carrying(
				processes{"client": figures.OwnCPU, "server": figures.CPUOf(server.pid), "redis": store.cpu},
				func(ctx context.Context, n int) error { return stream(1000)(ctx, server.messages, queueOf(0), n) },
			),
			versions: map[string]string{
				"go-redis": moduleVersion("github.com/redis/go-redis/v9"), "grpc-go": moduleVersion("google.golang.org/grpc"),
				"redis": redisVersion(ctx),
			},
			settings: map[string]string{
				"client": client, "redis": redisSettings,
				"server": "RPUSH; then LPOP of what was completed, LINDEX and HSET of what is next; gRPC on TCP",
			},
			stop: func() { server.stop(); store.stop() },
		}, nil
	}
}

const (
	bareLocks    = "locks"
	barePrefix   = "session:"
	mostTogether = 128 // messages of a pipeline
)

// bareServer stores what is published in the list of its session. A subscriber gets the first of each list, and the
// next one when it has completed that. The lock token is the session.
type bareServer struct {
	sidebusv1.UnimplementedMessagesServer
	redis   *redis.Client
	changes chan bareChange
}

// bareChange is a message that came to a session, or the completion of its first one.
type bareChange struct {
	session   string
	completed bool
}

func newBareServer(socket string) *bareServer {
	options := &redis.Options{Network: "unix", Addr: socket, Protocol: 2}
	return &bareServer{redis: redis.NewClient(options), changes: make(chan bareChange, 2*window)}
}

// withWaiting returns an item and those that wait behind it.
func withWaiting[T any](first T, more <-chan T) []T {
	all := []T{first}
	for len(all) < mostTogether {
		select {
		case next, is := <-more:
			if !is {
				return all
			}
			all = append(all, next)
		default:
			return all
		}
	}
	return all
}

// Publish stores and confirms each message.
func (s *bareServer) Publish(stream sidebusv1.Messages_PublishServer) error {
	came := make(chan *sidebusv1.Message, window)
	go func() {
		defer close(came)
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			came <- request.GetMessages()[0]
		}
	}()
	for first := range came {
		some := withWaiting(first, came)
		_, err := s.redis.Pipelined(stream.Context(), func(p redis.Pipeliner) error {
			for _, m := range some {
				p.RPush(stream.Context(), barePrefix+m.GetSessionId(), m.GetBody())
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, m := range some {
			s.changes <- bareChange{session: m.GetSessionId()}
			sent := &sidebusv1.PublishResponse_Sent{Sent: &sidebusv1.SendResponse{}}
			if err := stream.Send(&sidebusv1.PublishResponse{Outcome: sent}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Subscribe delivers until the request comes that wants an answer.
func (s *bareServer) Subscribe(stream sidebusv1.Messages_SubscribeServer) error {
	go func() {
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			for _, session := range request.GetSettle().GetLockTokens() {
				s.changes <- bareChange{session, true}
			}
			if request.GetRequestId() != "" {
				s.changes <- bareChange{} // the last one
			}
		}
	}()
	left := map[string]int{} // messages of a session
	for first := range s.changes {
		some := withWaiting(first, s.changes)
		isLast := some[len(some)-1] == bareChange{}
		if isLast {
			some = some[:len(some)-1]
		}
		bodies, err := s.turn(stream.Context(), left, some)
		if err != nil {
			return err
		}
		if len(bodies) > 0 {
			if err := stream.Send(bareDeliveries(bodies)); err != nil {
				return err
			}
		}
		if isLast {
			return stream.Send(&sidebusv1.SubscribeResponse{RequestId: lastRequest})
		}
	}
	return nil
}

// turn removes what was completed and locks and reads what is first in a session then. Returns the bodies by session.
func (s *bareServer) turn(ctx context.Context, left map[string]int, changes []bareChange) (map[string]string, error) {
	next := map[string]*redis.StringCmd{}
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		var locks []any
		var unlocked []string
		for _, c := range changes {
			if c.completed {
				left[c.session]--
				p.LPop(ctx, barePrefix+c.session)
			} else {
				left[c.session]++
			}
			switch {
			case c.completed && left[c.session] == 0:
				unlocked = append(unlocked, c.session)
			case c.completed, left[c.session] == 1:
				locks = append(locks, c.session, "a nonce and the end of the lock")
				next[c.session] = p.LIndex(ctx, barePrefix+c.session, 0)
			}
		}
		if len(unlocked) > 0 {
			p.HDel(ctx, bareLocks, unlocked...)
		}
		if len(locks) > 0 {
			p.HSet(ctx, bareLocks, locks...)
		}
		return nil
	})
	bodies := make(map[string]string, len(next))
	for session, reply := range next {
		body, failed := reply.Result()
		bodies[session], err = body, errors.Join(err, failed)
	}
	return bodies, err
}

func bareDeliveries(bodies map[string]string) *sidebusv1.SubscribeResponse {
	d := &sidebusv1.SubscribeDelivery{}
	for session, body := range bodies {
		d.Messages = append(d.Messages, &sidebusv1.ReceivedMessage{
			LockToken: proto.String(session), Content: &sidebusv1.ReceivedMessage_Body{Body: []byte(body)},
		})
	}
	return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Deliveries{
		Deliveries: &sidebusv1.SubscribeDeliveries{Deliveries: []*sidebusv1.SubscribeDelivery{d}},
	}}
}
