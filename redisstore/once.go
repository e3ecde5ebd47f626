package redisstore

import (
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// headOf begins a call of send.lua or publish.lua: how many messages follow, and its request id if it has one.
func headOf(messages int, once *semantics.Once) any {
	if once == nil {
		return messages
	}
	return strconv.Itoa(messages) + ":" + once.Digest + ":" + once.Seed + ":" + once.RequestID
}

// readRepetition reads the outcome of a call whose request id was taken before. For any other outcome it returns
// nothing and has not read from the reply.
func readRepetition(
	path string, messages int, once *semantics.Once, r *reply,
) ([]semantics.Stored, *semantics.Repetition, error) {
	switch word, _ := r.items[0].(string); {
	case once == nil:
	case word == "OTHER_MESSAGES":
		r.text()
		return nil, nil, semantics.OtherMessages(path, once.RequestID)
	case word == "AGAIN":
		r.text()
		seed, answer := r.text(), strings.Fields(r.text())
		stored, err := readAnswer(messages, answer)
		return stored, &semantics.Repetition{Seed: seed}, err
	}
	return nil, nil, nil
}

// readAnswer reads an answer as lua/lib/request/save_answer.lua keeps it: the number of the first message, or RUNS with
// all. The version before wrote EACH for RUNS.
func readAnswer(messages int, answer []string) ([]semantics.Stored, error) {
	if len(answer) == 1 {
		answer = []string{"RUNS", answer[0] + "+" + strconv.Itoa(messages)}
	}
	var stored []semantics.Stored
	if len(answer) > 0 && (answer[0] == "RUNS" || answer[0] == "EACH") {
		for _, word := range answer[1:] {
			stored = appendRun(stored, word, messages)
		}
	}
	if len(stored) != messages {
		return nil, semantics.Errorf(semantics.Internal, "the answer to the first send cannot be read")
	}
	return stored, nil
}

// appendRun adds the messages of "<first>" or "<first>+<count>", if they are at most so many. If it cannot parse the
// text it adds none.
func appendRun(stored []semantics.Stored, run string, most int) []semantics.Stored {
	text, times, isRun := strings.Cut(run, "+")
	count, err := 1, error(nil)
	if isRun {
		count, err = strconv.Atoi(times)
	}
	first, err2 := strconv.ParseInt(text, 10, 64)
	if err != nil || err2 != nil || count > most {
		return stored
	}
	step := int64(1)
	if first < 0 {
		step = -1 // a duplicate
	}
	for i := range count {
		stored = append(stored, readStored(first+step*int64(i)))
	}
	return stored
}
