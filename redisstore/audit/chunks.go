package audit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// isStop reports whether a key is a text at which older versions stop: ready_sessions of a queue that had chunks, and
// chunks of a subscription, which has its own elsewhere.
func isStop(cmd *redis.ZSliceCmd, entity map[string]string) bool {
	chunked := entity["chunked"] != "" && entity["chunked"] != "0" && entity["requires_session"] != "1"
	key := fmt.Sprint(cmd.Args()[1])
	return chunked && cmd.Err() != nil && strings.HasPrefix(cmd.Err().Error(), "WRONGTYPE") &&
		(strings.HasSuffix(key, ":ready_sessions") || entity["kind"] == "subscription" && strings.HasSuffix(key, ":chunks"))
}

// readChunks puts the messages of chunks into the log as if each had an entry of its own, and checks that the chunks
// and what is kept of them belong together.
func (q *audit) readChunks(known bool) {
	of := "chunks"
	if q.entity["kind"] == "subscription" {
		of = "copies"
	} else if q.keys["copies"] {
		q.fault("copies of a queue")
	}
	if q.entity["requires_session"] != "1" {
		isStopped := q.keys["ready_sessions"] && (of == "chunks" || q.keys["chunks"])
		switch chunked := q.number("chunked") > 0; {
		case isStopped && !chunked:
			q.fault("ready_sessions of a queue without sessions")
		case chunked && !isStopped && !known:
			q.fault("older versions do not stop at chunks")
		}
	}
	log, extra := q.logs["log"], int64(0)
	chunks := map[string]logEntry{} // by first position
	for position, e := range log {
		if _, isChunk := e.fields["z"]; isChunk {
			chunks[position] = e
			delete(log, position)
		}
	}
	for member, score := range q.zsets[of] {
		left, err := q.readChunk(member, score, chunks)
		if err != nil {
			q.fault("chunks has %s at %v: %v", member, score, err)
		}
		extra += left - 1
		first, _, _ := strings.Cut(member, "-")
		delete(chunks, first)
	}
	for position := range chunks {
		q.fault("log has a chunk at %s that chunks does not have", position)
	}
	if got := q.number("chunk_extra"); got != extra {
		q.fault("chunk_extra is %d, chunks have %d messages beyond one each", got, extra)
	}
}

// readChunk checks one chunk and adds its messages to the log. It returns how many are there.
func (q *audit) readChunk(member string, score float64, chunks map[string]logEntry) (left int64, err error) {
	parts := strings.Split(member, ":")
	id := parts[0]
	position, bytesText, _ := strings.Cut(id, "-")
	first, err := strconv.ParseInt(position, 10, 64)
	group, isShared := "", q.entity["kind"] == "subscription"
	if isShared && len(parts) == 4 {
		group, parts = parts[3], parts[:3]
		q.groups = append(q.groups, group)
	}
	if err != nil || len(parts) != 3 || float64(first) != score || isShared != (group != "") {
		return 0, fmt.Errorf("not of the form <first>-<bytes>:<last>:<sizes>, by first, with a group in a subscription")
	}
	e, there := chunks[position]
	if !there || strconv.FormatInt(e.size, 10) != bytesText {
		return 0, fmt.Errorf("the log has no entry of this id")
	}
	sizes, stored := strings.Split(parts[2], ","), strings.Split(e.fields["z"], ",")
	last, bytes := first+int64(len(sizes))-1, int64(0)
	if len(sizes) != len(stored) || len(sizes) < 2 && !isShared || parts[1] != strconv.FormatInt(last, 10) {
		return 0, fmt.Errorf("sizes of %d messages, the entry has %s", len(sizes), e.fields["z"])
	}
	if last > q.number("chunked") {
		q.fault("a chunk ends at %d, chunked is %d", last, q.number("chunked"))
	}
	for i, text := range sizes {
		own, origin, _ := strings.Cut(stored[i], ":")
		size, _ := strconv.ParseInt(own, 10, 64)
		bytes += size
		if text == "-" {
			continue
		}
		left++
		at := strconv.FormatInt(first+int64(i), 10)
		if _, twice := q.logs["log"][at]; twice || text != own {
			q.fault("%s of the chunk %s is there twice, or with other bytes", at, member)
		}
		message := logEntry{size: size, fields: map[string]string{}, times: e.times}
		if isShared {
			message.fields["e"] = origin
			q.shared = append(q.shared, sharedCopy{group: group, origin: origin})
		}
		q.logs["log"][at] = message
	}
	if bytes != e.size || left == 0 {
		return left, fmt.Errorf("%d messages are left, and all were %d bytes", left, bytes)
	}
	return left, nil
}
