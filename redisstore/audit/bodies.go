package audit

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// sharedCopy is a copy whose body is with the topic.
type sharedCopy struct{ group, origin string }

// bodies compares the bodies that a topic keeps for copies with the copies of its subscriptions.
type bodies struct {
	topic  *audit
	uses   map[string]int64 // by group
	copies []sharedCopy
}

func newBodies(topic *audit) *bodies { return &bodies{topic: topic, uses: map[string]int64{}} }

// add counts what a subscription has, once auditQueue has read its chunks.
func (b *bodies) add(sub *audit) {
	for _, group := range sub.groups {
		b.uses[group]++
	}
	b.copies = append(b.copies, sub.shared...)
}

// addLeft counts what deleted subscriptions have left.
func (b *bodies) addLeft(ctx context.Context, client redis.UniversalClient) error {
	for member := range b.topic.zsets["left_copies"] {
		_, mark, _ := strings.Cut(member, ":")
		part := "left_copies/" + mark
		delete(b.topic.keys, part)
		chunks, err := client.ZRange(ctx, b.topic.tag+part, 0, -1).Result()
		if err != nil {
			return err
		}
		for _, chunk := range chunks {
			b.uses[chunk[strings.LastIndexByte(chunk, ':')+1:]]++
		}
	}
	return nil
}

// check checks that each group is used as often as it is counted, that all bodies are in one, and that every copy has
// its body.
func (b *bodies) check() {
	kept, counts := b.topic.hashes["bodies"], b.topic.hashes["body_uses"]
	inGroup := map[string]string{} // the group of each message that there may be
	for group, text := range counts {
		value, _ := strconv.ParseInt(text, 10, 64)
		first, _ := strconv.ParseInt(group, 10, 64)
		if uses := value / 32; uses != b.uses[group] || uses < 1 {
			b.topic.fault("body_uses has %s for %s, which %d entries use", text, group, b.uses[group])
		}
		for number := first; number <= first+value%32; number++ {
			in := strconv.FormatInt(number, 10)
			if other, twice := inGroup[in]; twice {
				b.topic.fault("%s is in the groups of bodies %s and %s", in, group, other)
			}
			inGroup[in] = group
		}
	}
	for group := range b.uses {
		if _, there := counts[group]; !there {
			b.topic.fault("body_uses lacks %s", group)
		}
	}
	for number, body := range kept {
		if inGroup[number] == "" || body == "" {
			b.topic.fault("the body of %s has no group, or %d bytes", number, len(body))
		}
	}
	for _, c := range b.copies {
		if kept[c.origin] == "" || inGroup[c.origin] != c.group {
			b.topic.fault("a copy of %s, of the group %s, has no body there", c.origin, c.group)
		}
	}
}
