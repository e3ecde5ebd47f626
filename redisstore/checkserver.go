package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// serverPatience is how long a check of several servers waits for the others when one has answered: one that hangs must
// not make the others look unavailable, and all may be slow.
const serverPatience = 500 * time.Millisecond

// serverCheck is what one server says of itself. It may be read when done is closed.
type serverCheck struct {
	done            chan struct{}
	facts, settings map[string]string
	err             error
}

// joinServerCheck returns the check of a server that is under way, or begins one: a server that hangs gets one at a
// time.
func (s *Store) joinServerCheck(ctx context.Context, server *redis.Client) *serverCheck {
	s.checkMutex.Lock()
	defer s.checkMutex.Unlock()
	addr := server.Options().Addr
	if c := s.asking[addr]; c != nil {
		return c
	}
	c := &serverCheck{done: make(chan struct{})}
	s.asking[addr] = c
	go func() {
		c.facts, c.settings, c.err = s.checkServer(context.WithoutCancel(ctx), server)
		s.checkMutex.Lock()
		delete(s.asking, addr)
		s.checkMutex.Unlock()
		close(c.done)
	}()
	return c
}

// awaitAnswers returns when all checks have ended, which the client's timeouts see to, or when serverPatience has
// passed since one of them succeeded.
func awaitAnswers(asked []*serverCheck) {
	ended := make(chan error, len(asked))
	for _, c := range asked {
		go func() { <-c.done; ended <- c.err }()
	}
	var tooLate <-chan time.Time
	for range asked {
		select {
		case err := <-ended:
			if err == nil && tooLate == nil {
				tooLate = time.After(serverPatience)
			}
		case <-tooLate:
			return
		}
	}
}

// outcome returns the error of a check, or that there is no answer yet.
func (c *serverCheck) outcome() error {
	select {
	case <-c.done:
		return c.err
	default:
		return storeError(&unsent{context.DeadlineExceeded, causeUnreachable}, false)
	}
}

// checkServer reads the facts of a server, refuses one that is unfit, and loads the scripts into one that it has not
// seen before.
func (s *Store) checkServer(
	ctx context.Context, server *redis.Client,
) (facts, settings map[string]string, err error) {
	facts, settings, err = factsOf(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	if err := s.refuse(facts); err != nil {
		return nil, nil, err
	}
	if err := s.refuseLevel(s.options.Durability.Level, facts, settings, !s.isFit.Load()); err != nil {
		return nil, nil, err
	}
	return facts, settings, s.loadOnce(ctx, server, facts["run_id"])
}

// loadOnce loads the scripts into a server unless this run of it has them.
func (s *Store) loadOnce(ctx context.Context, server *redis.Client, run string) error {
	addr := server.Options().Addr
	if before, _ := s.loaded.Load(addr); before == run {
		return nil
	}
	if err := s.load(ctx, server); err != nil {
		return storeError(err, false)
	}
	s.loaded.Store(addr, run)
	return nil
}

// factsOf reads what a server says of itself, and the settings that concern its disk, none if it does not permit that.
func factsOf(ctx context.Context, server *redis.Client) (facts, settings map[string]string, err error) {
	var info, config *redis.Cmd
	_, pipelineErr := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		info = p.Do(ctx, "INFO")
		config = p.Do(ctx, append([]any{"CONFIG", "GET"}, diskSettings...)...) // often forbidden
		return nil
	})
	if info.Err() == nil && info.Val() == nil { // not even sent: the connection could not be set up
		return nil, nil, storeError(pipelineErr, false)
	}
	text, err := info.Text()
	if err != nil {
		return nil, nil, storeError(err, false)
	}
	facts, settings = parseInfo(text), map[string]string{}
	if values, err := config.StringSlice(); err == nil {
		settings = settingsOf(values)
	}
	return facts, settings, nil
}
