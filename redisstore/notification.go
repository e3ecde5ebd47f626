package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// causes are why a message becomes a dead letter, by the letter that the scripts use. The reason that an application
// names is in the message.
var causes = map[byte]string{
	'a': "Application", 'm': "MaxDeliveryCountExceeded", 't': "TTLExpiredException",
	'f': semantics.ReasonFilterFailed, 'h': semantics.ReasonHeaderSize, 's': semantics.ReasonNoSession,
	'o': semantics.ReasonOverflow,
	'x': semantics.ReasonTooManyHops, 'n': semantics.ReasonDestinationNotFound,
	'd': semantics.ReasonDestinationDisabled,
	'q': semantics.ReasonDestinationFull, 'r': semantics.ReasonSession,
}

// apply reads the notifications of a reply (lua/lib/entity/close_queue.lua), reports them and sets the alarm.
func (s *Store) apply(ctx context.Context, path string, r *reply) {
	if at := s.readNotifications(path, r); at > 0 {
		s.setAlarms(ctx, alarm{name: semantics.Fold(path), at: at})
	}
}

// orphan is the letter of what was dropped because its message was gone (lua/lib/entity/note_orphan.lua).
const orphan = '!'

// readNotifications reports the dead letters and orphans of a script to the callbacks of Options, and returns the alarm
// that it changed (ms), 0 for none.
func (s *Store) readNotifications(path string, r *reply) int64 {
	alarm, letters, _ := strings.Cut(r.text(), " ")
	at, err := strconv.ParseInt(alarm, 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("script %s: notifications begin with %q: %w", r.script, alarm, err)
	}
	if letters == "" {
		return at
	}
	numbers, orphans := map[string][]int64{}, []int64(nil)
	for letter := range strings.SplitSeq(letters, " ") {
		last := len(letter) - 1
		switch n, err := strconv.ParseInt(letter[:last], 10, 64); {
		case err != nil:
		case letter[last] == orphan:
			orphans = append(orphans, n)
		default:
			numbers[causes[letter[last]]] = append(numbers[causes[letter[last]]], n)
		}
	}
	if s.options.DeadLettered != nil {
		for cause, some := range numbers {
			entity, some := semantics.InWhole(path, some)
			s.options.DeadLettered(entity, cause, some)
		}
	}
	if s.options.Orphaned != nil && len(orphans) > 0 {
		s.options.Orphaned(semantics.WholePath(path), orphans)
	}
	return at
}
