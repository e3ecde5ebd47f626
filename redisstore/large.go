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

// isSingle reports whether a range is one position. The range of a large message is: no others fit beside it.
func isSingle(r [2]string) bool { return r[0] == r[1] }

// withoutLarge leaves large messages out of ranges: an id ends in the size.
func withoutLarge(ranges [][2]string) [][2]string {
	small := make([][2]string, len(ranges))
	for i, r := range ranges {
		small[i] = r
		if isSingle(r) {
			small[i][1] += "-" + strconv.Itoa(semantics.MaxAnswerBytes)
		}
	}
	return small
}
