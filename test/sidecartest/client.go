package sidecartest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// client keeps no idle connections, so that a test leaves no goroutines.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Answer is the status and the decoded JSON body of an HTTP response; Text is the undecoded body.
type Answer struct {
	Status int
	Body   map[string]any
	Text   string
}

// Message has the fields of a received message that tests need.
type Message struct {
	Text           string `json:"text"`
	LockToken      string `json:"lockToken"`
	SequenceNumber string `json:"sequenceNumber"`
	DeliveryCount  int    `json:"deliveryCount"`
}

// Call makes one HTTP call of the API. It may be called by any goroutine. If there is no response, the status is 0.
func (s *Sidecar) Call(ctx context.Context, method, path, body string) Answer {
	return call(ctx, method, "http://"+s.HTTP+path, body)
}

// Probe makes one HTTP call of the admin port.
func (s *Sidecar) Probe(ctx context.Context, method, path string) Answer {
	return call(ctx, method, "http://"+s.Admin+path, "")
}

func call(ctx context.Context, method, url, body string) Answer {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	if err != nil {
		return Answer{Text: err.Error()}
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{Text: err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{Text: err.Error()}
	}
	answer := Answer{Status: response.StatusCode, Text: string(text)}
	_ = json.Unmarshal(text, &answer.Body)
	return answer
}

// Must makes a call and fails the test if the call fails.
func (s *Sidecar) Must(t testing.TB, method, path, body string) Answer {
	t.Helper()
	answer := s.Call(t.Context(), method, path, body)
	if answer.Status != http.StatusOK {
		t.Fatalf("%s %s: got %d %s", method, path, answer.Status, answer.Text)
	}
	return answer
}

// Queue creates a queue unless it exists.
func (s *Sidecar) Queue(t testing.TB, name, options string) {
	t.Helper()
	s.Must(t, http.MethodPut, "/v1/queues/"+name, options)
}

// Send sends one text.
func (s *Sidecar) Send(t testing.TB, queue, text string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"text": text}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:send", string(body))
}

// Receive receives and locks up to ten messages and waits for the first one.
func (s *Sidecar) Receive(t testing.TB, queue string, wait time.Duration) []Message {
	t.Helper()
	answer := s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:receive", `{"maxMessages":10,"maxWait":"`+wait.String()+`"}`)
	var got struct{ Messages []Message }
	if err := json.Unmarshal([]byte(answer.Text), &got); err != nil {
		t.Fatalf("receive: %v in %s", err, answer.Text)
	}
	return got.Messages
}

// Complete completes one message.
func (s *Sidecar) Complete(t testing.TB, queue string, m Message) {
	t.Helper()
	answer := s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:complete", `{"lockTokens":["`+m.LockToken+`"]}`)
	var got struct{ Results []struct{ Reason string } }
	if err := json.Unmarshal([]byte(answer.Text), &got); err != nil || len(got.Results) != 1 || got.Results[0].Reason != "" {
		t.Fatalf("complete: got %s", answer.Text)
	}
}
