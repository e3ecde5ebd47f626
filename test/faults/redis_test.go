package faults

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
)

// one is one Redis and what can go wrong with it.
type one struct {
	*redistest.Server

	args   []string
	client *redis.Client
}

// startOne starts a Redis that keeps its data as the arguments say.
func startOne(t *testing.T, args ...string) servers {
	t.Helper()
	args = append(args, "--busy-reply-threshold", "100")
	o := &one{Server: redistest.Start(t, args...), args: args}
	t.Cleanup(o.Stop)
	o.client = redis.NewClient(redistest.ClientOptions(t, o.URL))
	t.Cleanup(func() { _ = o.client.Close() })
	socket := redistest.ClientOptions(t, o.URL).Addr
	return servers{url: o.URL, urlOf: func() *line { return openLine(t, socket) }, faults: o.faults()}
}

func (o *one) faults() []fault {
	return []fault{
		{"Redis killed", true, o.kill},
		{"Redis stopped", false, o.stop},
		{"foreign script", false, o.busy},
		{"Redis full", false, o.full},
		{"clients killed", false, o.killClients},
		{"disk full", true, o.fillDisk},
		{"scripts flushed", false, o.flushScripts},
	}
}

// kill ends Redis with SIGKILL and starts it again a little later.
func (o *one) kill(r *run) (time.Duration, func()) {
	o.Kill()
	return r.between(time.Millisecond, time.Second), func() { o.Restart(r.t, o.args...) }
}

// stop lets Redis answer nothing, as if its disk hung.
func (o *one) stop(r *run) (time.Duration, func()) {
	o.Signal(syscall.SIGSTOP)
	return r.between(50*time.Millisecond, 4*time.Second), func() { o.Signal(syscall.SIGCONT) }
}

// busy runs a script of somebody else that takes long; meanwhile Redis answers BUSY.
func (o *one) busy(r *run) (time.Duration, func()) {
	lasts := r.between(50*time.Millisecond, 1500*time.Millisecond)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		const loop = "local ends = os.clock() + ARGV[1] while os.clock() < ends do end"
		_ = o.client.Eval(r.ctx, loop, nil, strconv.FormatFloat(lasts.Seconds(), 'f', 3, 64)).Err()
	}()
	return lasts, func() { <-ended }
}

// full lets Redis refuse all that needs memory.
func (o *one) full(r *run) (time.Duration, func()) {
	o.set(r, "maxmemory", "1")
	return r.between(50*time.Millisecond, 2*time.Second), func() { o.set(r, "maxmemory", "0") }
}

func (o *one) set(r *run, name, value string) {
	r.t.Helper()
	if err := o.client.ConfigSet(r.ctx, name, value).Err(); err != nil && r.ctx.Err() == nil {
		r.t.Errorf("set %s: %v", name, err)
	}
}

func (o *one) killClients(r *run) (time.Duration, func()) {
	for _, kind := range []string{"normal", "pubsub"} {
		if err := o.client.Do(r.ctx, "CLIENT", "KILL", "TYPE", kind).Err(); err != nil {
			r.t.Error(err)
		}
	}
	return 0, nil
}

func (o *one) flushScripts(r *run) (time.Duration, func()) {
	if err := o.client.ScriptFlush(r.ctx).Err(); err != nil {
		r.t.Error(err)
	}
	return 0, nil
}
