package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// benchSidecar is the built binary over a Redis of its own, with a client.
type benchSidecar struct {
	*sidecartest.Sidecar
	messages sidebusv1.MessagesClient
	redis    *redis.Client
}

// processor gives the seconds of processor time that the sidecar and Redis have used.
func (s *benchSidecar) processor(b *testing.B) (sidecar, server float64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		b.Skip("there is no /proc to read processor time from")
	}
	var user, system float64
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	_, _ = fmt.Sscan(fields[12]+" "+fields[13], &user, &system) // in hundredths
	info, err := s.redis.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		var seconds float64
		for _, part := range []string{"used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"} {
			if text, ok := strings.CutPrefix(line, part); ok {
				_, _ = fmt.Sscan(text, &seconds)
				server += seconds
			}
		}
	}
	return (user + system) / 100, server
}

func startBench(b *testing.B) *benchSidecar {
	server := redistest.Start(b, "--auto-aof-rewrite-percentage", "0", "--stream-node-max-bytes", "16384")
	b.Cleanup(server.Stop)
	s := sidecartest.Start(b, "--store", server.URL)
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	options := redistest.ClientOptions(b, server.URL)
	raw := redis.NewClient(options)
	b.Cleanup(func() { _ = raw.Close() })
	return &benchSidecar{Sidecar: s, messages: sidebusv1.NewMessagesClient(conn), redis: raw}
}

// publish sends messages of 1 KiB one by one on a stream, those of number i to session i modulo sessions, with at most
// 1,000 unanswered.
func (s *benchSidecar) publish(ctx context.Context, target string, messages, sessions int) error {
	stream, err := s.messages.Publish(ctx)
	if err != nil {
		return err
	}
	window, failed := make(chan struct{}, 1000), make(chan error, 1)
	go func() {
		for range messages {
			answer, err := stream.Recv()
			if err == nil && answer.GetSent() == nil {
				err = errors.New("refused: " + answer.GetFailure().String())
			}
			if err != nil {
				failed <- err
				return
			}
			<-window
		}
		failed <- nil
	}()
	body := make([]byte, 1024)
	for i := range messages {
		select {
		case window <- struct{}{}:
		case err := <-failed:
			return err
		}
		m := &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: body}}
		if sessions > 0 {
			m.SessionId = proto.String(fmt.Sprint("session-", i%sessions))
		}
		if err := stream.Send(&sidebusv1.PublishRequest{Target: target, Messages: []*sidebusv1.Message{m}}); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return <-failed
}

// subscription is a Subscribe stream of a benchmark.
type subscription struct {
	sidebusv1.Messages_SubscribeClient
	b *testing.B
}

func (s *benchSidecar) subscribe(b *testing.B, open *sidebusv1.SubscribeOpen) subscription {
	stream, err := s.messages.Subscribe(b.Context())
	if err == nil {
		err = stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: open}})
	}
	if err != nil {
		b.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || answer.GetOpened() == nil {
		b.Fatal(answer, err)
	}
	return subscription{stream, b}
}

// next gives the lock tokens of the next deliveries.
func (s subscription) next() []string {
	for {
		answer, err := s.Recv()
		if err != nil {
			s.b.Fatal(err)
		}
		if failure := answer.GetFailure(); failure != nil {
			s.b.Fatal(failure)
		}
		var tokens []string
		for _, d := range answer.GetDeliveries().GetDeliveries() {
			for _, m := range d.GetMessages() {
				tokens = append(tokens, m.GetLockToken())
			}
		}
		if len(tokens) > 0 {
			return tokens
		}
	}
}

func (s subscription) complete(id string, tokens []string) {
	err := s.Send(&sidebusv1.SubscribeRequest{RequestId: id, Request: &sidebusv1.SubscribeRequest_Settle{
		Settle: &sidebusv1.SubscribeSettle{
			LockTokens: tokens, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
		},
	}})
	if err != nil {
		s.b.Fatal(err)
	}
}

// awaitSettled waits for the answer to the settlement that was given an id.
func (s subscription) awaitSettled(id string) {
	for {
		answer, err := s.Recv()
		if err != nil {
			s.b.Fatal(err)
		}
		if answer.GetRequestId() == id {
			if answer.GetSettled() == nil {
				s.b.Fatal(answer)
			}
			return
		}
	}
}

// lifecycle sends, delivers and completes messages at the same time and gives the seconds it took.
func (s *benchSidecar) lifecycle(b *testing.B, queue string, messages, sessions int) float64 {
	sub := s.subscribe(b, &sidebusv1.SubscribeOpen{
		Source: "queues/" + queue, Credits: proto.Int32(1000), MaxConcurrentSessions: proto.Int32(1000),
	})
	began := time.Now()
	sent := make(chan error, 1)
	go func() { sent <- s.publish(b.Context(), "queues/"+queue, messages, sessions) }()
	for left := messages; left > 0; {
		tokens := sub.next()
		left -= len(tokens)
		if left == 0 {
			sub.complete("last", tokens)
			sub.awaitSettled("last")
		} else {
			sub.complete("", tokens)
		}
	}
	took := time.Since(began).Seconds()
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	_ = sub.CloseSend()
	for {
		if _, err := sub.Recv(); err != nil {
			return took
		}
	}
}

func medianOf(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func benchSize(whole, small int) int {
	if os.Getenv("SIDEBUS_BENCH_FULL") != "" {
		return whole
	}
	return small
}

// BenchmarkStream measures the whole life of messages of 1 KiB through Publish and Subscribe of the built binary, pair
// by pair without sessions (P1) and in strict order through 1,000 sessions (P4).
func BenchmarkStream(b *testing.B) {
	messages := benchSize(50_000, 2_000)
	s := startBench(b)
	s.Queue(b, "plain", `{"maxSizeInMegabytes":"81920"}`)
	s.Queue(b, "sessions", `{"maxSizeInMegabytes":"81920","requiresSession":true}`)
	var plain, ordered, ratios []float64
	var used [4]float64 // of sidecar and Redis, without and with sessions
	for b.Loop() {
		sidecar0, redis0 := s.processor(b)
		one := s.lifecycle(b, "plain", messages, 0)
		sidecar1, redis1 := s.processor(b)
		other := s.lifecycle(b, "sessions", messages, 1000)
		sidecar2, redis2 := s.processor(b)
		for i, seconds := range []float64{sidecar1 - sidecar0, redis1 - redis0, sidecar2 - sidecar1, redis2 - redis1} {
			used[i] += seconds * 1e6 / float64(messages)
		}
		plain, ordered, ratios = append(plain, float64(messages)/one), append(ordered, float64(messages)/other), append(ratios, one/other)
	}
	b.ReportMetric(medianOf(plain), "plain/s")
	b.ReportMetric(medianOf(ordered), "sessions/s")
	b.ReportMetric(medianOf(ratios), "sessions-ratio")
	for i, what := range []string{"plain-sidecar", "plain-redis", "sessions-sidecar", "sessions-redis"} {
		b.ReportMetric(used[i]/float64(len(ratios)), what+"-us/message")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLatency measures on an idle sidecar how long a message takes from the call of Send to a subscriber that
// waits, and how long a session takes to follow another one in its place (P5).
func BenchmarkLatency(b *testing.B) {
	s := startBench(b)
	s.Queue(b, "plain", `{}`)
	s.Queue(b, "sessions", `{"requiresSession":true}`)
	rounds := benchSize(2000, 100)
	for b.Loop() {
		s.delivery(b, rounds)
		s.handOver(b, rounds)
	}
	b.ReportMetric(0, "ns/op")
}

func (s *benchSidecar) delivery(b *testing.B, rounds int) {
	sub := s.subscribe(b, &sidebusv1.SubscribeOpen{Source: "queues/plain"})
	var took []float64
	for range rounds {
		began := time.Now()
		_, err := s.messages.Send(b.Context(), &sidebusv1.SendRequest{
			Target: "queues/plain", Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 1024)}}},
		})
		if err != nil {
			b.Fatal(err)
		}
		tokens := sub.next()
		took = append(took, float64(time.Since(began).Microseconds())/1000)
		sub.complete("done", tokens)
		sub.awaitSettled("done")
	}
	report(b, "delivery", took)
}

// handOver lets one place serve sessions with one message each: from the settlement in one to the message of the next.
func (s *benchSidecar) handOver(b *testing.B, rounds int) {
	if err := s.publish(b.Context(), "queues/sessions", rounds, rounds); err != nil {
		b.Fatal(err)
	}
	sub := s.subscribe(b, &sidebusv1.SubscribeOpen{Source: "queues/sessions", MaxConcurrentSessions: proto.Int32(1)})
	var took []float64
	tokens := sub.next()
	for range rounds - 1 {
		began := time.Now()
		sub.complete("", tokens)
		tokens = sub.next()
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
	sub.complete("last", tokens)
	sub.awaitSettled("last")
	report(b, "hand-over", took)
	_ = sub.CloseSend()
}

func report(b *testing.B, what string, took []float64) {
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], what+"-p50-ms")
	b.ReportMetric(took[len(took)*99/100], what+"-p99-ms")
}
