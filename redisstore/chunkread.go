package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// split returns the messages of a chunk from one position to another. If these are not all, their payloads are copies,
// so that none keeps the others in memory. Of a chunk that cannot be read, they have none, so that each is unreadable.
// Copies of a topic's messages may have their bodies elsewhere: see addBodies.
func (e *entry) split(first, last int64) []entry {
	if e.payload == formatShared {
		return e.splitShared(first, last)
	}
	entries := make([]entry, 0, strings.Count(e.chunk, ",")+1)
	position, payloads, isReadable := e.position, "", e.payload != "" && e.payload[0] == formatChunk
	if isReadable {
		payloads = e.payload[1:]
	}
	for item := range strings.SplitSeq(e.chunk, ",") {
		sizeText, lengthText, _ := strings.Cut(item, ":")
		size, err1 := strconv.ParseInt(sizeText, 10, 64)
		length, err2 := strconv.Atoi(lengthText)
		isReadable = isReadable && errors.Join(err1, err2) == nil && 0 <= length && length <= len(payloads)
		if !isReadable {
			length, payloads = 0, ""
		}
		if position >= first && position <= last {
			entries = append(entries, entry{
				position: position, size: size, times: e.times, payload: payloads[:length],
				weight: messageOverhead + int64(length),
			})
		}
		position, payloads = position+1, payloads[length:]
	}
	if all := position - e.position; int64(len(entries)) < all {
		for i := range entries {
			entries[i].payload = strings.Clone(entries[i].payload)
		}
	}
	return entries
}

// withoutChunks returns the messages of a span among the entries that were read for it.
func (r span) withoutChunks(read []entry) ([]entry, error) {
	if !slices.ContainsFunc(read, func(e entry) bool { return e.chunk != "" }) {
		return read, nil
	}
	first, last, err := r.bounds()
	if err != nil {
		return nil, err
	}
	if len(read) == 1 {
		return read[0].split(first, last), nil
	}
	messages := make([]entry, 0, max(0, min(last-first+1, mostChunkMessages*int64(len(read)))))
	for i := range read {
		if read[i].chunk == "" {
			if read[i].position >= first {
				messages = append(messages, read[i])
			}
			continue
		}
		messages = append(messages, read[i].split(first, last)...)
	}
	return messages, nil
}

// readFirstChunks adds what spans lack because it lies in a chunk that begins before them.
func (s *Store) readFirstChunks(ctx context.Context, keys entityKeys, spans []span, read [][]entry) error {
	var short []int // the places of these spans
	for i, r := range spans {
		if len(read[i]) == 0 || strconv.FormatInt(read[i][0].position, 10) != r.first {
			short = append(short, i)
		}
	}
	if len(short) == 0 || keys.side != "" {
		return nil
	}
	before := make([]*redis.StringSliceCmd, len(short))
	_, err := s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error {
		for n, i := range short {
			last := redis.ZRangeBy{Max: spans[i].first, Min: "-inf", Count: 1}
			before[n] = p.ZRevRangeByScore(ctx, keys.key("chunks"), &last)
		}
		return nil
	})
	if err != nil {
		return storeError(err, true)
	}
	ids := make([]string, len(short)) // of the chunks, "" for none
	for n, cmd := range before {
		ids[n], _, _ = strings.Cut(strings.Join(cmd.Val(), ""), ":")
	}
	chunks, err := s.readChunks(ctx, keys, ids)
	for n, i := range short {
		if e, ok := chunks[ids[n]]; ok && err == nil {
			var first []entry
			first, err = spans[i].withoutChunks([]entry{e})
			read[i] = append(first, read[i]...)
		}
	}
	return err
}

// readChunks reads each of the chunks once and returns them by their ids.
func (s *Store) readChunks(ctx context.Context, keys entityKeys, ids []string) (map[string]entry, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var spans []span
	for _, id := range ids {
		if id != "" {
			spans = append(spans, span{first: id, last: id})
		}
	}
	read, err := s.readTogether(ctx, keys.key("log"), spans)
	chunks := map[string]entry{}
	for i, entries := range read {
		if len(entries) == 1 && entries[0].chunk != "" {
			chunks[spans[i].first] = entries[0]
		}
	}
	return chunks, err
}
