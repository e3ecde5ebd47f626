package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// A message that alone exceeds the bound of an answer is read while no other such message is. Otherwise each connection
// could have one in memory before the memory for answers is counted.

// alone runs read while no other large message is read. It blocks until its turn; it returns THROTTLED if that takes
// too long or there is no memory for an answer.
func (s *Store) alone(ctx context.Context, read func() error) error {
	wait, cancel := context.WithTimeout(ctx, lockedTimeout)
	defer cancel()
	select {
	case s.large <- struct{}{}:
		defer func() { <-s.large }()
		if err := semantics.MemoryOf(ctx).Take(0, false); err != nil {
			return err
		}
		return read()
	case <-wait.Done():
		e := semantics.Errorf(semantics.Throttled, "other large messages are being read; ask again later")
		e.RetryAfter = time.Second
		return e
	}
}

// isSingle reports whether a span is one position. The span of a large message is: no others fit beside it.
func isSingle(r span) bool { return r.first == r.last }

// withoutLarge leaves large messages out of spans: an id ends in the size.
func withoutLarge(spans []span) []span {
	small := make([]span, len(spans))
	for i, r := range spans {
		small[i] = r
		if isSingle(r) {
			small[i].last += "-" + strconv.Itoa(semantics.MaxAnswerBytes)
		}
	}
	return small
}
