package redisstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// forgetful is a store on a Redis that forgets between two scripts, and what was there before it did.
type forgetful struct {
	*redisstore.Store
	server    *redistest.Forgetful
	raw       *redis.Client
	namespace string
}

// openForgetful gives a store whose Redis comes back, once, to what it was after the script mark, as soon as the script
// lose has run. Without a mark the test sets it.
func openForgetful(t *testing.T, loss redistest.Loss, mark, lose string) *forgetful {
	t.Helper()
	f := &forgetful{server: redistest.StartForgetful(t), namespace: redistest.Namespace()}
	f.server.Prepare(t, loss)
	var marked, lost sync.Once
	f.Store = redistest.Open(t, redisstore.Options{URL: f.server.URL, Namespace: f.namespace, Observe: func(script, _ string, _ time.Duration) {
		if script == mark {
			marked.Do(func() { f.server.Mark(t, loss) })
		}
		if script == lose {
			lost.Do(func() { f.server.Lose(t, loss) })
		}
	}})
	options := redistest.ClientOptions(t, f.server.URL)
	f.raw = redis.NewClient(options)
	t.Cleanup(func() { _ = f.raw.Close() })
	return f
}

// comingBack are the losses after which Redis goes on with what it was.
var comingBack = []redistest.Loss{redistest.AOFCut, redistest.Failover}

// What a source has set aside is not removed there because it arrived once, when Redis has forgotten that it did.
func TestDUR_4_TransferWhoseArrivalIsForgotten(t *testing.T) {
	t.Parallel()
	for _, loss := range comingBack {
		for what, script := range map[string]string{"archive": "arrive", "news": "arrive_in_topic"} {
			t.Run(string(loss)+", "+script, func(t *testing.T) {
				t.Parallel()
				f := openForgetful(t, loss, "begin_transfer", script)
				must(t, createTopic(t, f))
				must(t, subscribe(t, f, "eu"))
				must(t, makeQueue(t, f, "archive"))
				must(t, makeQueue(t, f, "orders", func(o *semantics.Options) { o.ForwardTo = what }))
				const sent = 3
				if _, err := f.Send(t.Context(), "orders", messagesOf(sent, semantics.Message{})); err != nil {
					t.Fatal(err)
				}
				broker := brokerOver(f.Store)
				defer broker.Close()
				await(t, func() bool { return broker.Forward(t.Context(), orders) == nil })
				to := semantics.Source{Path: what}
				if what == "news" {
					to = of("eu")
				}
				counts, err := f.Runtime(t.Context(), semantics.QueueKind, to.Path)
				if err != nil || counts.Available != sent {
					t.Errorf("%d messages have arrived, %v, want %d", counts.Available, err, sent)
				}
				for _, name := range []string{"orders", "archive", "news"} {
					must(t, audit.New(f.raw, f.namespace).Audit(t.Context(), name))
				}
			})
		}
	}
}

// An entity that is back, because Redis has forgotten that it was deleted, keeps its name.
func TestDUR_4_NameOfAnEntityWhoseDeletionIsForgotten(t *testing.T) {
	t.Parallel()
	for _, loss := range comingBack {
		for _, kind := range kinds {
			t.Run(string(loss)+", "+kind.String(), func(t *testing.T) {
				t.Parallel()
				f := openForgetful(t, loss, "", "delete_"+kind.String())
				if _, _, err := f.CreateEntity(t.Context(), kind, "orders", semantics.DefaultOptions()); err != nil {
					t.Fatal(err)
				}
				f.server.Mark(t, loss)
				if err := f.DeleteEntity(t.Context(), kind, "orders"); err == nil {
					t.Error("the deletion was acknowledged")
				}
				must(t, audit.New(f.raw, f.namespace).AuditNames(t.Context()))
			})
		}
	}
}

// An entity that is made has its name, although Redis has forgotten the one that was put on the list before.
func TestDUR_4_NameThatIsForgottenBeforeItsEntityIsMade(t *testing.T) {
	t.Parallel()
	for _, loss := range redistest.Losses {
		for _, kind := range kinds {
			t.Run(string(loss)+", "+kind.String(), func(t *testing.T) {
				t.Parallel()
				f := openForgetful(t, loss, "", "register_name")
				f.server.Mark(t, loss)
				if _, _, err := f.CreateEntity(t.Context(), kind, "orders", semantics.DefaultOptions()); err != nil {
					t.Logf("not acknowledged: %v", err)
				}
				must(t, audit.New(f.raw, f.namespace).AuditNamed(t.Context()))
			})
		}
	}
}

// What is due is done on time although Redis has forgotten the alarm for it: an entity that has noted one sets no later
// one.
func TestDUR_4_AlarmThatIsForgotten(t *testing.T) {
	t.Parallel()
	for _, loss := range comingBack {
		t.Run(string(loss), func(t *testing.T) {
			t.Parallel()
			f := openForgetful(t, loss, "send", "set_alarm")
			must(t, makeQueue(t, f, "orders"))
			sweeping(t, f.Store)
			await(t, func() bool { // the first look at all entities is over, and the next one far
				return f.raw.HExists(t.Context(), "sb:{"+f.namespace+"}:whole_sweep", "next").Val()
			})
			send := func(life time.Duration) error {
				_, err := f.Send(t.Context(), "orders", []*semantics.Message{{MessageID: life.String(), TimeToLive: &life}})
				return err
			}
			must(t, send(10*time.Millisecond))
			lost := time.Now()
			await(t, func() bool { return send(20*time.Millisecond) == nil })
			awaitLength(t, f.raw, "sb:{"+f.namespace+"/orders}:log", 0)
			// else only the next look has found them, after a minute
			if late := time.Since(lost); late > 30*time.Second {
				t.Errorf("they expired %s late", late)
			}
		})
	}
}
