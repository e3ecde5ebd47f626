package redisstore

import (
	"context"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// howToResubmit returns the letters in which the note of a transfer says how it resubmits dead letters.
func howToResubmit(how semantics.Resubmitting) string {
	letters := "r"
	for letter, on := range map[string]bool{"n": how.NewMessageIDs, "k": how.KeepExpiry, "b": how.BypassDuplicates} {
		if on {
			letters += letter
		}
	}
	return letters
}

// readHow is the inverse of howToResubmit. It returns nil for a transfer that forwards, which has no letters.
func readHow(letters string) *semantics.Resubmitting {
	if letters == "" {
		return nil
	}
	has := func(letter string) bool { return strings.Contains(letters, letter) }
	return &semantics.Resubmitting{NewMessageIDs: has("n"), KeepExpiry: has("k"), BypassDuplicates: has("b")}
}

// BeginResubmission implements semantics.Transfers.
func (s *Store) BeginResubmission(
	ctx context.Context, source semantics.Source, to semantics.Destination, numbers []int64, how semantics.Resubmitting,
) (begun semantics.BegunResubmission, err error) {
	limit, bytes, err := s.transferBounds(ctx, to, len(numbers))
	if err != nil {
		return begun, err
	}
	destination := noteOf(to) + ":" + howToResubmit(how)
	args := appendNumbers([]any{s.now(), destination, bytes, newNonce()}, numbers[:limit])
	r, err := s.runOn(ctx, source, "begin_resubmission", s.keysOf(source), args...)
	if err != nil {
		return begun, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return begun, err
	}
	s.setAlarms(ctx, alarm{name: semantics.Fold(keptAt(source)), at: r.number()})
	begun.IsNew, begun.Looked = r.number() == 1, int(r.number())
	begun.Transfer, err = s.readTransfer(ctx, source, r)
	return begun, err
}
