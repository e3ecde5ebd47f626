package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/semantics"
)

// script is an operation with the hash Redis knows it by.
type script struct {
	*lua.Script
	call *redis.Script
}

var prepared = sync.OnceValues(func() (map[string]script, error) {
	all, err := lua.Scripts()
	if err != nil {
		return nil, err
	}
	ready := make(map[string]script, len(all))
	for name, s := range all {
		ready[name] = script{Script: s, call: redis.NewScript(s.Text)}
	}
	return ready, nil
})

// guardedScripts are the same for partitions of a cluster. Only a store on a cluster makes them.
var guardedScripts = sync.OnceValue(func() map[string]script {
	all, _ := prepared() // Open has returned its error
	ready := make(map[string]script, len(all))
	for name, s := range all {
		guarded := s.Guarded()
		ready[name] = script{Script: guarded, call: redis.NewScript(guarded.Text)}
	}
	return ready
})

// run calls one script and returns its reply, with the status word read and checked. Only run calls scripts. A status
// that the script does not declare is INTERNAL.
func (s *Store) run(ctx context.Context, name string, from keyNames, args ...any) (*reply, error) {
	op, ok := s.scripts[name]
	if !ok {
		return nil, semantics.Errorf(semantics.Internal, "there is no script %s", name)
	}
	keys, err := op.list(from)
	if err != nil {
		return nil, err
	}
	if !op.Accepts(len(keys), len(args)) {
		return nil, semantics.Errorf(
			semantics.Internal, "script %s does not take %d keys and %d arguments", name, len(keys), len(args),
		)
	}
	how, partition := behindNothing, s.guarded(ctx, keys[0])
	if op.HasStatus(needsFence) { // not a script that such a call also runs
		how, _ = ctx.Value(fenced{}).(int)
	}
	if partition != "" {
		op, keys = s.guardedScripts[name], append(keys, s.keys(partition).key("entity"))
	}
	for compared := 0; ; {
		asked := ""
		if how != behindNothing {
			asked, _ = s.asked.get(keys[0])
		}
		r, err := s.runOnce(ctx, op, keys, withAsked(args, how, asked), s.fence(ctx, keys[0], how, asked))
		switch {
		case err != nil:
			return nil, err
		case partition != "" && r.status == lua.OtherHistory:
			compared++
			if err := s.compareFor(ctx, partition, compared); err != nil {
				return nil, err
			}
			continue
		case r.status != needsFence:
			return r, nil
		}
		s.learnAsked(keys[0], r.text())
		if err := r.failure(); err != nil {
			return nil, err
		}
		how = max(how, behindRepetition)
	}
}

// runOnce calls the script, and the fence behind it, which may be nil.
func (s *Store) runOnce(ctx context.Context, op script, keys []string, args []any, fence *fence) (*reply, error) {
	if err := ctx.Err(); err != nil { // which a pinned connection does not check
		return nil, storeError(err, false)
	}
	began := time.Now()
	leave, err := s.enter(ctx, fence)
	if err != nil {
		return nil, storeError(err, false)
	}
	visit, err := s.visit(ctx, keys[0])
	if err != nil {
		leave()
		return nil, storeError(err, false)
	}
	result, err := op.eval(ctx, s.redis(ctx), keys, args, fence)
	visit.end(ctx, err)
	leave()
	if err != nil {
		s.observe(op.Name, "error", time.Since(began))
		return nil, storeError(err, !op.ReadOnly)
	}
	r := op.answered(result)
	r.unmet = s.unmet(fence)
	s.observe(op.Name, r.status, time.Since(began))
	return r, r.failure()
}

// answered returns the reply with what the script answered, and its status read.
func (op script) answered(items []any) *reply {
	r := &reply{script: op.Name, items: items}
	r.status = r.text()
	if r.err == nil && !op.HasStatus(r.status) {
		r.err = fmt.Errorf("script %s answered the undeclared status %q", op.Name, r.status)
	}
	return r
}

func (s *Store) observe(name, status string, took time.Duration) {
	if s.options.Observe != nil {
		s.options.Observe(name, status, took)
	}
}

// eval calls the script by its hash, and by its text if Redis does not know the hash (restart, failover, SCRIPT FLUSH).
// A script that Redis does not know has not run, so the second call is safe. redis.Script.Run would do the same with an
// allocation for each key.
// The fence, which may be nil, follows the script over the same connection.
func (op script) eval(
	ctx context.Context, client redisClient, keys []string, args []any, fence *fence,
) ([]any, error) {
	byHash, byText := "evalsha", "eval"
	if op.ReadOnly {
		byHash, byText = "evalsha_ro", "eval_ro"
	}
	all := commandOf(byHash, op.call.Hash(), keys, args)
	cmd := call{redis.NewCmd(ctx, all...), !op.ReadOnly}
	process(ctx, client, cmd, fence)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		all[0], all[1] = byText, op.Text
		cmd = call{redis.NewCmd(ctx, all...), !op.ReadOnly}
		if fence != nil {
			fence.reset()
		}
		process(ctx, client, cmd, fence)
	}
	return cmd.Slice()
}

// commandOf returns the command that calls a script, which is named by its hash or text.
func commandOf(by, script string, keys []string, args []any) []any {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, by, script, len(keys))
	for i := range keys {
		if i == 0 {
			all = append(all, keys[i]) // by its text a cluster finds the server
			continue
		}
		all = append(all, &keys[i])
	}
	return append(all, args...)
}

// call is a script that is sent to Redis.
type call struct {
	*redis.Cmd

	changes bool
}

// NoRetry keeps the client of a cluster from sending a script again that may have run (ERR-6), and from waiting again
// for a server that hangs.
func (c call) NoRetry() bool { return isUnknown(c.Err(), c.changes) || isTimeout(c.Err()) }

// list returns the keys of a script in the order of its header. They are parts of one text, which saves allocations.
func (op script) list(from keyNames) ([]string, error) {
	var more []string
	if m, ok := from.(moreKeys); ok {
		from, more = m.keyNames, m.more
	}
	text, ends := make([]byte, 0, 2048), make([]int, 0, 64)
	for _, declared := range op.Keys {
		if declared.Repeats {
			break
		}
		prefix, rest := from.parts(declared.Name)
		if rest == "" {
			return nil, semantics.Errorf(
				semantics.Internal, "script %s declares a key %s, which the call does not have", op.Name, declared.Name,
			)
		}
		text = append(append(text, prefix...), rest...)
		ends = append(ends, len(text))
	}
	keys, all, at := make([]string, 0, len(ends)+len(more)), string(text), 0
	for _, end := range ends {
		keys = append(keys, all[at:end])
		at = end
	}
	return append(keys, more...), nil
}

// now returns the instant for scripts: "0", which means the clock of Redis, except in tests.
func (s *Store) now() string {
	if s.options.Now == nil {
		return "0"
	}
	return strconv.FormatInt(s.options.Now().UnixMilli(), 10)
}

// load puts all scripts into the cache of a server, which also compiles them.
func (s *Store) load(ctx context.Context, server *redis.Client) error {
	_, err := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, op := range s.scripts {
			p.ScriptLoad(ctx, op.Text) // not op.call.Load, which loses the hash in a pipeline
		}
		for _, op := range s.guardedScripts {
			p.ScriptLoad(ctx, op.Text)
		}
		return nil
	})
	return err
}

// reply reads a script's answer value by value. It keeps the first mismatch, which failure returns.
type reply struct {
	script string
	status string
	items  []any
	at     int
	err    error
	unmet  error // DURABILITY_NOT_MET if what the script changed is not confirmed
}

func (r *reply) next() any {
	if r.err != nil {
		return nil
	}
	if r.at >= len(r.items) {
		r.err = fmt.Errorf("script %s: reply ends after %d values", r.script, r.at)
		return nil
	}
	r.at++
	return r.items[r.at-1]
}

func (r *reply) more() bool { return r.err == nil && r.at < len(r.items) }

// isText reports whether the next value is text.
func (r *reply) isText() bool {
	if !r.more() {
		return false
	}
	_, ok := r.items[r.at].(string)
	return ok
}

func (r *reply) text() string {
	value := r.next()
	text, ok := value.(string)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("script %s: value %d is %T, not text", r.script, r.at-1, value)
	}
	return text
}

// textOr reads a text that may be absent.
func (r *reply) textOr(absent string) string {
	if r.err == nil && r.at < len(r.items) && r.items[r.at] == nil {
		r.at++
		return absent
	}
	return r.text()
}

func (r *reply) number() int64 {
	switch value := r.next().(type) {
	case int64:
		return value
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			r.err = fmt.Errorf("script %s: value %d: %w", r.script, r.at-1, err)
		}
		return n
	default:
		if r.err == nil {
			r.err = fmt.Errorf("script %s: value %d is %T, not a number", r.script, r.at-1, value)
		}
		return 0
	}
}

// numberOr reads a number that may be absent.
func (r *reply) numberOr(absent int64) int64 {
	if r.err == nil && r.at < len(r.items) && r.items[r.at] == nil {
		r.at++
		return absent
	}
	return r.number()
}

func (r *reply) instant() time.Time { return instantOf(r.number()) }

// list reads a nested list. The caller takes over its mismatch with adopt.
func (r *reply) list() *reply {
	value := r.next()
	items, ok := value.([]any)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("script %s: value %d is %T, not a list", r.script, r.at-1, value)
	}
	return &reply{script: r.script, items: items, err: r.err}
}

// adopt takes over the mismatch of a nested list.
func (r *reply) adopt(nested *reply) {
	if r.err == nil {
		r.err = nested.err
	}
}

func (r *reply) failure() error {
	if r.err == nil {
		return nil
	}
	return &semantics.Error{Code: semantics.Internal, Message: "a script answered something unexpected", Err: r.err}
}

// instantOf reads an instant in milliseconds; zero means none.
func instantOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
