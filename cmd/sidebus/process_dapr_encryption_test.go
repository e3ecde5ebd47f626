package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// filesOf returns all that a Redis has written to its folder.
func filesOf(t *testing.T, folder string) string {
	t.Helper()
	all := &strings.Builder{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// batch publishes some texts in one call.
func (c *component) batch(topic string, bodies ...string) {
	c.t.Helper()
	request := &proto.BulkPublishRequest{Topic: topic}
	for i, body := range bodies {
		request.Entries = append(request.Entries, &proto.BulkMessageEntry{
			EntryId: fmt.Sprint(i), Event: []byte(body), ContentType: "text/plain", Metadata: map[string]string{"SessionId": "s"},
		})
	}
	if _, err := c.BulkPublish(c.ctx, request); err != nil {
		c.t.Fatal(err)
	}
}

// What Dapr's runtime publishes, alone, raw, in a batch or for later, is encrypted in Redis, and what it gets is not. A
// stream of a sidecar without the key gets nothing, and counts no delivery, until the key is there.
func TestCRYPT_1_DaprPublishesEncrypted(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"queue", "topic"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			data, folder, key := t.TempDir(), t.TempDir(), newPayloadKey()
			server := redistest.Start(t, "--dir", data, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no")
			t.Cleanup(server.Stop)
			files := []string{filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.yaml")}
			keysFile(t, files[0], "y2026", map[string]string{"y2026": key})
			keysFile(t, files[1], "other", map[string]string{"other": newPayloadKey()})
			start := func(file string) (*sidecartest.Sidecar, *component) {
				socket := daprSocket(t, "sidebus.sock")
				s := sidecartest.Start(t, "--store", server.URL, "--dapr-socket", socket, "--payload-keys-file", file, "--log-level", "debug")
				c := connectDapr(t, socket)
				c.init(map[string]string{"consumerID": "app", "entityKind": kind, "requireSessions": "true", "redeliverInterval": "0"})
				return s, c
			}
			with, sends := start(files[0])
			without, waits := start(files[1])
			stream := sends.subscribe("orders")
			source := "queues/orders"
			if kind == "topic" {
				source = "topics/orders/subscriptions/app"
			}
			sidecartest.Eventually(t, "the entity is there", func() bool {
				return with.Call(t.Context(), http.MethodGet, "/v1/"+source, "").Status == http.StatusOK
			})
			publish := func(body string, metadata map[string]string) {
				t.Helper()
				metadata["SessionId"], metadata["region"] = "s", "cl3ar"
				if _, err := sends.Publish(sends.ctx, &proto.PublishRequest{Topic: "orders", Data: []byte(body), Metadata: metadata}); err != nil {
					t.Fatal(err)
				}
			}
			publish(`{"specversion":"1.0","data":"s3cret event"}`, map[string]string{})
			publish("\x00s3cret raw\xff", map[string]string{"rawPayload": "true"})
			sends.batch("orders", "s3cret one", "s3cret two")
			publish("s3cret later", map[string]string{"ScheduledEnqueueTimeUtc": "2099-01-02T15:04:05Z"})
			texts := []string{`{"specversion":"1.0","data":"s3cret event"}`, "\x00s3cret raw\xff", "s3cret one", "s3cret two"}
			sends.ack(stream, sends.take(stream, texts[0]))
			second := sends.take(stream, texts[1])
			if err := stream.Send(&proto.PullMessagesRequest{AckMessageId: second.GetId(), AckError: &proto.AckMessageError{Message: "the app failed"}}); err != nil {
				t.Fatal(err)
			}
			again := sends.take(stream, texts[1])
			if n := again.GetMetadata()["metadata.DeliveryCount"]; n != "2" {
				t.Errorf("delivery %s of what was abandoned once", n)
			}
			sends.ack(stream, again)
			if err := stream.CloseSend(); err != nil { // the rest goes back
				t.Fatal(err)
			}
			for {
				m, err := stream.Recv()
				if err != nil {
					break
				}
				if string(m.GetData()) != texts[2] {
					t.Errorf("got %q", m.GetData())
				}
			}
			stream = waits.subscribe("orders")
			sidecartest.Eventually(t, "the stream says why nothing comes", func() bool {
				return strings.Contains(without.Log(), "PAYLOAD_KEY_MISSING") || strings.Contains(without.Log(), `payload key \"y2026\"`) ||
					strings.Contains(without.Log(), `payload key \\\"y2026\\\"`)
			})
			keysFile(t, files[1], "other", map[string]string{"other": newPayloadKey(), "y2026": key})
			for _, text := range texts[2:] {
				m := waits.take(stream, text)
				if n := m.GetMetadata()["metadata.DeliveryCount"]; n != "1" {
					t.Errorf("delivery %s of %q, want the first", n, text)
				}
				waits.ack(stream, m)
			}
			text := filesOf(t, data)
			if !strings.Contains(text, "cl3ar") {
				t.Error("the files have no properties, so they cannot show that they have no bodies")
			}
			if strings.Contains(text, "s3cret") {
				t.Error("the files of Redis have a body")
			}
			if logs := with.Log() + without.Log(); strings.Contains(logs, "s3cret") || strings.Contains(logs, key) || slices.Contains(strings.Fields(logs), key) {
				t.Error("the log has a body or a key")
			}
		})
	}
}
