package redisstore_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// A Redis that stops to answer after it has run the script of a call keeps its answer no longer: the alarm that follows
// the script is set without the caller.
func TestAnswersDoNotWaitForTheirAlarms(t *testing.T) {
	t.Parallel()
	const soonEnough = 10 * time.Second // earlier than the alarm of the lock
	later := func() *semantics.Message {
		return &semantics.Message{MessageID: "m", ScheduledAt: time.Now().Add(soonEnough)}
	}
	delay := soonEnough
	settled := func(codes []semantics.Code, err error) error {
		if err == nil && codes[0] != "" {
			return &semantics.Error{Code: codes[0]}
		}
		return err
	}
	for script, call := range map[string]func(ctx context.Context, s *redisstore.Store, held semantics.LockToken) error{
		"send": func(ctx context.Context, s *redisstore.Store, _ semantics.LockToken) error {
			_, err := s.Send(ctx, "orders", []*semantics.Message{later()})
			return err
		},
		"abandon": func(ctx context.Context, s *redisstore.Store, held semantics.LockToken) error {
			return settled(s.Abandon(ctx, orders, []semantics.LockToken{held}, semantics.AbandonOptions{Delay: &delay}))
		},
		"publish": func(ctx context.Context, s *redisstore.Store, _ semantics.LockToken) error {
			routes, err := s.Routes(ctx, "news")
			if err != nil {
				return err
			}
			return s.Publish(ctx, "news", routes.Version, [][]semantics.Publication{{{Message: later()}}})[0].Err
		},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			url := redistest.URL(t)
			if !strings.HasPrefix(url, "unix://") {
				server := redistest.Start(t)
				t.Cleanup(server.Stop)
				url = server.URL
			}
			cut, namespace := redistest.OpenCutter(t, url), redistest.Namespace()
			sound := redistest.Open(t, redisstore.Options{URL: url, Namespace: namespace})
			var isSet atomic.Int64
			tried := redistest.Open(t, redisstore.Options{
				URL: cut.URL, Namespace: namespace, ReadTimeout: time.Hour,
				Observe: func(name, _ string, _ time.Duration) {
					switch name {
					case script:
						cut.Silent.Store(true)
					case "set_alarm":
						isSet.Add(1)
					}
				},
			})
			_, err := sound.Check(t.Context()) // loads the scripts
			must(t, err)
			create(t, sound)
			_, _, err = sound.CreateEntity(t.Context(), semantics.TopicKind, "news", semantics.DefaultOptions())
			must(t, err)
			_, err = sound.Send(t.Context(), "orders", message(1))
			must(t, err)
			held := receiveOne(t, sound).LockToken
			answered := make(chan error, 1)
			go func() { answered <- call(t.Context(), tried, held) }()
			select {
			case err := <-answered:
				must(t, err)
			case <-time.After(redistest.Patience):
				t.Fatal("the answer waits for the alarm")
			}
			raw := clientOf(t, url)
			await(t, func() bool {
				first := raw.ZRangeWithScores(t.Context(), "sb:{"+namespace+"}:alarms", 0, 0).Val()
				return len(first) > 0 && first[0].Score < float64(time.Now().Add(2*soonEnough).UnixMilli())
			})
			if isSet.Load() > 0 {
				t.Error("the answer about the alarm came: this proves nothing")
			}
		})
	}
}
