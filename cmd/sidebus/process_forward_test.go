package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// took receives one message for good, waits for it, and gives it as it came.
func took(t *testing.T, s *sidecartest.Sidecar, source, subQueue string) map[string]any {
	t.Helper()
	answer := s.Must(t, http.MethodPost, "/v1/"+source+"/messages:receive",
		fmt.Sprintf(`{"maxWait":"20s","mode":"RECEIVE_AND_DELETE","subQueue":%q}`, subQueue))
	messages, _ := answer.Body["messages"].([]any)
	if len(messages) != 1 {
		t.Fatalf("%s %s: got %s, want one message", source, subQueue, answer.Text)
	}
	return messages[0].(map[string]any)
}

// What is to be forwarded goes on by itself and at once: along a chain of queues, from the subscriptions of a topic
// into one queue, and, when it cannot, into the transfer dead-letter queue.
func TestFWD_1_SidecarForwards(t *testing.T) {
	t.Parallel()
	for name, store := range map[string][]string{
		"memory": {"--store", "memory"}, "redis": {"--store", redistest.URL(t), "--namespace", redistest.Namespace()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sidecartest.Start(t, store...)
			s.Queue(t, "last", `{}`)
			s.Queue(t, "second", `{"forwardTo":"last"}`)
			s.Queue(t, "first", `{"forwardTo":"second"}`)
			s.Send(t, "first", "by two hops")
			if got := took(t, s, "queues/last", "NONE"); got["text"] != "by two hops" || got["enqueuedSequenceNumber"] != "1" {
				t.Errorf("got %v", got)
			}

			s.Must(t, http.MethodPut, "/v1/topics/news", `{}`) // FWD-11
			for _, name := range []string{"eu", "us"} {
				s.Must(t, http.MethodPut, "/v1/topics/news/subscriptions/"+name, `{"forwardTo":"last"}`)
			}
			s.Must(t, http.MethodPost, "/v1/topics/news/messages:send", `{"messages":[{"text":"for both"}]}`)
			for range 2 {
				if got := took(t, s, "queues/last", "NONE"); got["text"] != "for both" {
					t.Errorf("got %v", got)
				}
			}

			s.Must(t, http.MethodDelete, "/v1/queues/last", "")
			s.Send(t, "first", "to nowhere")
			dead := took(t, s, "queues/second", "TRANSFER_DEAD_LETTER")
			if dead["text"] != "to nowhere" || dead["deadLetterReason"] != "TransferDestinationNotFound" {
				t.Errorf("got %v", dead)
			}
			for _, line := range []string{"sidebus_messages_forwarded_total 5\n", "sidebus_forwards_refused_total 1\n"} {
				sidecartest.Eventually(t, line, func() bool {
					return strings.Contains(s.Probe(t.Context(), http.MethodGet, "/metrics").Text, line)
				})
			}
		})
	}
}

// What cannot be forwarded is counted and logged as other dead letters are, by whoever tried.
func TestDLQ_24_TransferDeadLetters(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace(), "--log-dead-letters", "--log-format", "json")
	s.Queue(t, "to", `{"status":"DISABLED"}`)
	s.Queue(t, "from", `{"forwardTo":"to"}`)
	s.Must(t, http.MethodPost, "/v1/queues/from/messages:send", `{"messages":[{"messageId":"m-7","text":"x"}]}`)
	awaitSeen(t, "the log line", func() bool { return strings.Contains(s.Log(), "dead letter") })
	for _, word := range []string{`"entity":"from"`, `"cause":"TransferDestinationDisabled"`, `"sequenceNumber":1`, `"messageId":"m-7"`} {
		if !strings.Contains(s.Log(), word) {
			t.Errorf("the log lacks %s:\n%s", word, s.Log())
		}
	}
	want := `sidebus_dead_lettered_messages_total{cause="TransferDestinationDisabled",entity="from"} 1`
	if metrics := s.Probe(t.Context(), http.MethodGet, "/metrics").Text; !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// --forward-retry lets what is refused wait on its way for a destination that takes it in time.
func TestFWD_8_ForwardRetryOfServe(t *testing.T) {
	t.Parallel()
	for name, store := range map[string][]string{
		"memory": {"--store", "memory"}, "redis": {"--store", redistest.URL(t), "--namespace", redistest.Namespace()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sidecartest.Start(t, append(store, "--forward-retry", "1h")...)
			s.Queue(t, "to", `{"status":"DISABLED"}`)
			s.Queue(t, "from", `{"forwardTo":"to"}`)
			s.Send(t, "from", "patient")
			sidecartest.Eventually(t, "it is on its way", func() bool { return countIn(t, s, "from", "transferMessageCount") == 1 })
			s.Must(t, http.MethodPatch, "/v1/queues/to", `{"status":"ACTIVE"}`)
			if got := took(t, s, "queues/to", "NONE"); got["text"] != "patient" || got["enqueuedSequenceNumber"] != "1" {
				t.Errorf("got %v", got)
			}
		})
	}
}

// seenTexts gives the texts of all messages of a queue in order of sequence number.
func seenTexts(t *testing.T, s *sidecartest.Sidecar, queue string) (all []string) {
	t.Helper()
	for from := 1; ; {
		answer := s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:peek", fmt.Sprintf(`{"maxMessages":250,"fromSequenceNumber":%d}`, from))
		var page struct{ Messages []sidecartest.Message }
		if err := json.Unmarshal([]byte(answer.Text), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Messages) == 0 {
			return all
		}
		for _, m := range page.Messages {
			all = append(all, m.Text)
		}
		last, err := strconv.Atoi(page.Messages[len(page.Messages)-1].SequenceNumber)
		if err != nil {
			t.Fatal(err)
		}
		from = last + 1
	}
}

// countIn gives one of the counts of a queue.
func countIn(t *testing.T, s *sidecartest.Sidecar, queue, name string) int {
	t.Helper()
	text, _ := s.Must(t, http.MethodGet, "/v1/queues/"+queue+"/runtime", "").Body[name].(string)
	n, _ := strconv.Atoi(text)
	return n
}

// fill sends so many texts to a queue, "a/0", "a/1" and so on.
func fill(t *testing.T, s *sidecartest.Sidecar, queue string, n int) {
	t.Helper()
	const batch = 500
	for from := 0; from < n; from += batch {
		var body []string
		for i := from; i < min(from+batch, n); i++ {
			body = append(body, fmt.Sprintf(`{"text":"%s/%d"}`, queue, i))
		}
		s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:send", `{"messages":[`+strings.Join(body, ",")+`]}`)
	}
}

// Whichever of two sidecars is killed while messages of many queues are forwarded, and as often as that happens: each
// message arrives once, in the order of its queue, and none is left behind.
func TestFWD_1_KilledWhileForwarding(t *testing.T) {
	t.Parallel()
	const queues, each, kills = 12, 500, 6
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	sides := [2]*sidecartest.Sidecar{sidecartest.Start(t, store...), sidecartest.Start(t, store...)}
	sides[0].Queue(t, "to", `{}`)
	var names []string
	for i := range queues {
		names = append(names, fmt.Sprintf("from%d", i))
		sides[0].Queue(t, names[i], `{}`)
		fill(t, sides[0], names[i], each)
	}
	for _, name := range names {
		sides[0].Must(t, http.MethodPatch, "/v1/queues/"+name, `{"forwardTo":"to"}`)
	}
	left := func() (n int) {
		for _, name := range names {
			n += countIn(t, sides[1], name, "totalMessageCount")
		}
		return n
	}
	killed, whileUnderWay := 0, 0
	sidecartest.Eventually(t, "nothing is left behind", func() bool {
		n := countIn(t, sides[1], "to", "totalMessageCount")
		if killed < kills && n >= (killed+1)*queues*each/(kills+2) {
			sides[0].Kill()
			if killed++; left() > 0 {
				whileUnderWay++
			}
			sides[0], sides[1] = sides[1], sidecartest.Start(t, store...)
		}
		return n >= queues*each && left() == 0
	})
	t.Logf("%d kills, %d of them while messages were under way", killed, whileUnderWay)
	if whileUnderWay == 0 {
		t.Error("nothing was under way when a sidecar was killed")
	}
	next := map[string]int{}
	for _, text := range seenTexts(t, sides[1], "to") {
		name, number, _ := strings.Cut(text, "/")
		if number != strconv.Itoa(next[name]) {
			t.Fatalf("%s came in place of %s/%d", text, name, next[name])
		}
		next[name]++
	}
	for _, name := range names {
		if next[name] != each {
			t.Errorf("%d messages of %s arrived, want %d", next[name], name, each)
		}
	}
}
