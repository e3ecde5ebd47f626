package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// What one call about dead letters looks at and answers.
const (
	lettersAtMost = 10_000
	lettersTime   = 3 * time.Second
	groupsAtMost  = 50    // the rest are counted together
	groupsHeld    = 1_000 // while it looks; what has another reason is counted with the rest
)

// letters are dead letters by why they are dead.
type letters struct {
	Groups  []letterGroup `json:"groups"`           // the largest first
	Others  int           `json:"others,omitempty"` // letters of other groups, smaller ones if there are few
	Matched int           `json:"matched"`
	Looked  int           `json:"looked"`
	More    bool          `json:"more,omitempty"`   // there may be more than were looked at
	Failed  int           `json:"failed,omitempty"` // letters for which the filter has no result
	At      []int64       `json:"at,omitempty"`     // of the counts, seconds since 1970; only without a filter
}

// letterGroup are letters with the same reason and source.
type letterGroup struct {
	groupKey

	Description string `json:"description,omitempty"` // of the newest
	Count       int    `json:"count"`
	Oldest      int64  `json:"oldest"` // when the first of them was dead-lettered, ms since 1970
	Newest      int64  `json:"newest"`
	Counts      []int  `json:"counts,omitempty"` // how many there were
}

// groupKey is why letters are dead: the reason as filters see it, and the entity that has forwarded them, if one has.
type groupKey struct {
	Reason string `json:"reason"`
	Source string `json:"source,omitempty"`
}

// reasonOf returns the reason of a dead letter as a filter sees it, so that one can select it.
func reasonOf(m *semantics.Received) string {
	value, _ := filter.OfReceived(m).User(strings.ToLower(semantics.PropertyDeadLetterReason))
	return plain(value)
}

// group answers which dead letters there are. Without a filter the answer has the counts of the last hour.
func (c *Console) group(w http.ResponseWriter, r *http.Request) {
	var want wanted
	source, err := c.shelfOf(w, r, &want, &want.shelf)
	if err == nil && !source.SubQueue.IsDeadLetters() {
		err = semantics.InvalidField("subQueue", "must be DEAD_LETTER or TRANSFER_DEAD_LETTER")
	}
	if err == nil {
		err = c.enter(r.Context())
	}
	if err != nil {
		refuse(w, err)
		return
	}
	defer c.leave()
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	answer, deadAt, err := c.groups(ctx, source, &want)
	if err != nil {
		refuse(w, err)
		return
	}
	if want.Filter == "" {
		c.past.note(source.Fold().String(), answer, deadAt, time.Now())
	}
	writeJSON(w, http.StatusOK, answer)
}

// groups looks at the dead letters of a source. deadAt are the times at which those of each group were dead-lettered.
func (c *Console) groups(
	ctx context.Context, source semantics.Source, want *wanted,
) (answer *letters, deadAt map[groupKey][]int64, err error) {
	matches, err := want.matcher()
	if err != nil {
		return nil, nil, err
	}
	answer, deadAt = &letters{Groups: []letterGroup{}}, map[groupKey][]int64{}
	all := map[groupKey]*letterGroup{}
	from := int64(0)
	for began := time.Now(); ; {
		page, err := c.config.Broker.Peek(ctx, source, from, broker.MaxPeekMessages, semantics.ShowAll)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range page {
			from = m.SequenceNumber + 1
			answer.Looked++
			isMatch, err := matches(m)
			switch {
			case err != nil:
				answer.Failed++
			case isMatch:
				answer.Matched++
				key := groupKey{reasonOf(m), m.DeadLetterSource}
				if all[key] == nil && len(all) == groupsHeld {
					answer.Others++
					continue
				}
				if all[key] == nil {
					// Else it keeps the whole message.
					key = groupKey{strings.Clone(key.Reason), strings.Clone(key.Source)}
					all[key] = &letterGroup{groupKey: key}
				}
				all[key].add(m)
				deadAt[key] = append(deadAt[key], m.DeadLetteredAt.Unix())
			}
		}
		answer.More = answer.Looked >= lettersAtMost || time.Since(began) > lettersTime
		if len(page) == 0 || answer.More {
			break
		}
	}
	for _, g := range all {
		answer.Groups = append(answer.Groups, *g)
	}
	slices.SortFunc(answer.Groups, func(a, b letterGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Source, b.Source))
	})
	for _, g := range answer.Groups[min(len(answer.Groups), groupsAtMost):] {
		answer.Others += g.Count
	}
	answer.Groups = answer.Groups[:min(len(answer.Groups), groupsAtMost)]
	return answer, deadAt, nil
}

func (g *letterGroup) add(m *semantics.Received) {
	g.Count++
	at := m.DeadLetteredAt.UnixMilli()
	if g.Count == 1 || at < g.Oldest {
		g.Oldest = at
	}
	if at >= g.Newest {
		g.Newest = at
		if g.Description != m.DeadLetterErrorDescription {
			g.Description = strings.Clone(m.DeadLetterErrorDescription)
		}
	}
}
