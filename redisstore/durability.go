package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// Durability is what a Store waits for before it answers sends and settlements (DUR-1). The zero value: for nothing.
type Durability struct {
	Level    semantics.Durability
	Replicas int           // that must have a change; zero means 1
	Timeout  time.Duration // of the wait; zero means 1 s
}

func (d Durability) replicas() int { return cmp.Or(d.Replicas, 1) }

func (d Durability) timeout() time.Duration { return cmp.Or(d.Timeout, time.Second) }

// fence follows a script over the same connection. Its answers show whether the Redis that ran the script has made its
// changes durable. Over another connection it could ask a Redis that has taken over since and knows nothing of the
// changes (docs/decisions/0044).
type fence struct {
	// touch changes something, nil if the script certainly has: since Redis 7.2, WAIT waits only for what its own
	// connection has changed, not for what a script found changed already.
	touch   *redis.Cmd
	answers []fenceAnswer // one for each level; a transaction can have two
}

// fenceAnswer is the answer of WAIT, WAITAOF or CONFIG GET.
type fenceAnswer struct {
	*redis.Cmd

	level semantics.Durability
}

// fenced is the key under which a context has how a fence follows its scripts.
type fenced struct{}

// Values of fenced.
const (
	behindNothing    = iota // the caller relies on nothing
	behindChanges           // the script succeeds only by changing something
	behindRepetition        // it may find its changes made already
	// as behindRepetition, for a script that looks at what the entity asks for only if its caller waits
	behindArrival
)

// lasting returns the context of a script whose changes its caller is to rely on: run waits for their durability.
func (s *Store) lasting(ctx context.Context) context.Context { return s.fencedBy(ctx, behindChanges) }

// lastingAgain is lasting for a script that may find its changes made already.
func (s *Store) lastingAgain(ctx context.Context) context.Context {
	return s.fencedBy(ctx, behindRepetition)
}

func (s *Store) fencedBy(ctx context.Context, how int) context.Context {
	if how != behindArrival && !s.mayFence() {
		return ctx
	}
	return context.WithValue(ctx, fenced{}, how)
}

// mayFence reports whether some script may have to be followed by a fence.
func (s *Store) mayFence() bool {
	return s.options.Durability.Level != semantics.DurabilityMemory || s.anyAsks.Load()
}

// fence returns what follows the script of a call that has this key, nil for nothing. asked is what the entity asks for
// as scripts say it.
func (s *Store) fence(ctx context.Context, key string, how int, asked string) *fence {
	if how == behindNothing {
		return nil
	}
	f, d, touches := &fence{}, s.options.Durability, false
	for _, level := range levelsOf(asked, d.Level) {
		var answer *redis.Cmd
		switch {
		case level == semantics.DurabilityReplica:
			answer, touches = redis.NewCmd(ctx, "wait", d.replicas(), d.timeout().Milliseconds()), true
		case s.hasWaitAOF.Load():
			answer, touches = redis.NewCmd(ctx, "waitaof", 1, 0, d.timeout().Milliseconds()), true
		default: // if every answer waits for the disk, that of the script did
			answer = redis.NewCmd(ctx, append([]any{"config", "get"}, diskSettings...)...)
		}
		f.answers = append(f.answers, fenceAnswer{answer, level})
	}
	if len(f.answers) == 0 {
		return nil
	}
	if touches && how != behindChanges {
		tag, _, _ := strings.Cut(key, "}")
		f.touch = redis.NewCmd(ctx, "set", tag+"}:touched", "", "ex", 1)
	}
	return f
}

// commands returns what is sent behind the script.
func (f *fence) commands() []redis.Cmder {
	var all []redis.Cmder
	if f.touch != nil {
		all = append(all, f.touch)
	}
	for _, answer := range f.answers {
		all = append(all, answer.Cmd)
	}
	return all
}

// reset lets the fence be sent again.
func (f *fence) reset() {
	for _, command := range f.commands() {
		command.SetErr(nil)
	}
}

// enter waits until so few calls wait for durability that others have connections too: receives and renewals go on
// while replicas hang. The caller leaves after its call.
func (s *Store) enter(ctx context.Context, f *fence) (leave func(), err error) {
	if f == nil || ctx.Value(pinned{s}) != nil { // which has its connection
		return func() {}, nil
	}
	select {
	case s.fenced <- struct{}{}:
		return func() { <-s.fenced }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mostFenced returns how many calls may wait for durability at a time.
func mostFenced(poolSize int) int { return max(1, or(poolSize, 10*runtime.GOMAXPROCS(0))/2) }

// unmet returns DURABILITY_NOT_MET by the answers to a fence, nil if what it stands for is true.
func (s *Store) unmet(f *fence) error {
	if f == nil {
		return nil
	}
	for _, answer := range f.answers {
		why := answer.Err()
		if why == nil && f.touch != nil {
			why = f.touch.Err()
		}
		if why == nil {
			why = s.whyUnmet(answer.Val())
		}
		if why != nil {
			return semantics.Unconfirmed(answer.level, why)
		}
	}
	return nil
}

func (s *Store) whyUnmet(answer any) error {
	d := s.options.Durability
	switch value := answer.(type) {
	case int64: // of WAIT
		if value < int64(d.replicas()) {
			return fmt.Errorf("%d of %d replicas have it after %s", value, d.replicas(), d.timeout())
		}
		return nil
	case []any:
		return onDisk(value, d.timeout())
	default:
		return errors.New("the answer of Redis is missing")
	}
}

// confirm makes the successes among codes DURABILITY_NOT_MET if what the script changed is not confirmed.
func (r *reply) confirm(codes []semantics.Code) {
	if r.unmet != nil {
		semantics.Unconfirm(codes)
	}
}

// onDisk returns why an answer to WAITAOF or to CONFIG GET does not prove that the disk has the changes.
func onDisk(answer []any, timeout time.Duration) error {
	if len(answer) == 2 {
		if local, is := answer[0].(int64); is {
			if local < 1 {
				return fmt.Errorf("the disk of Redis does not have it after %s", timeout)
			}
			return nil
		}
	}
	settings := map[string]string{}
	for i := 0; i+1 < len(answer); i += 2 {
		settings[fmt.Sprint(answer[i])] = fmt.Sprint(answer[i+1])
	}
	return waitsForDisk(settings)
}

// Settings of Redis that decide whether an answer waits for the disk.
const (
	appendOnly   = "appendonly"
	appendFsync  = "appendfsync"
	pauseRewrite = "no-appendfsync-on-rewrite"
)

var diskSettings = []any{appendOnly, appendFsync, pauseRewrite}

// waitsForDisk returns why Redis with these settings answers before its disk has what it did.
func waitsForDisk(settings map[string]string) error {
	for _, want := range [...]struct{ name, value string }{
		{appendOnly, "yes"}, {appendFsync, "always"}, {pauseRewrite, "no"},
	} {
		if got := settings[want.name]; got != want.value {
			return fmt.Errorf("%s is %q, must be %s", want.name, got, want.value)
		}
	}
	return nil
}

// process sends a script, and the fence behind it if there is one.
func process(ctx context.Context, client redisClient, script call, f *fence) {
	if f == nil {
		_ = client.Process(ctx, script) // the error is that of script
		return
	}
	client.processBoth(ctx, script, f)
	if script.Err() != nil && len(script.result()) > 0 { // only an answer to the fence was lost
		for _, answer := range f.answers {
			answer.SetErr(script.Err())
		}
		script.SetErr(nil)
	}
}

// result returns what the script answered, nil if its answer was not received.
func (c call) result() []any {
	values, _ := c.Val().([]any)
	return values
}

// pipelined sends a script and the fence behind it over one connection, after what may be needed before.
func (f *fence) pipelined(
	ctx context.Context, client interface {
		Pipelined(ctx context.Context, add func(redis.Pipeliner) error) ([]redis.Cmder, error)
	}, before []redis.Cmder, script call,
) {
	_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error { // the errors are in the commands
		for _, command := range slices.Concat(before, []redis.Cmder{script}, f.commands()) {
			_ = p.Process(ctx, command) // only adds it
		}
		return nil
	})
}
