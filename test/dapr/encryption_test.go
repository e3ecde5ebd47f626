package dapr

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/dapr/go-sdk/client"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
)

// What apps publish through Dapr's runtime, as events, as raw payloads and in a batch, is encrypted in the files of
// Redis, and apps get it as it was.
func TestCRYPT_1_WhatDaprPublishesIsEncrypted(t *testing.T) {
	t.Parallel()
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	text := "sealWith: k\nkeys: {k: " + base64.StdEncoding.EncodeToString(secret[:]) + "}\n"
	if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	server := redistest.Start(t, "--dir", data, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no")
	t.Cleanup(server.Stop)
	p := start(t, setup{
		store: server.URL, serve: []string{"--payload-keys-file", keys}, metadata: map[string]string{"entityKind": "queue"},
	})
	p.run(t, overGRPC,
		daprtest.Subscription{Topic: "orders"}, daprtest.Subscription{Topic: "raw", Metadata: map[string]string{"rawPayload": "true"}})
	p.publish(t, "orders", "s3cret event", "region", "cl3ar")
	p.finish(t, "s3cret event")
	if err := p.sdk.PublishEvent(t.Context(), "bus", "raw", []byte("\x00s3cret raw\xff"), sdk.PublishEventWithRawPayload()); err != nil {
		t.Fatal(err)
	}
	p.finish(t, "\x00s3cret raw\xff")
	if answer := p.bulk(t, "text/plain", "s3cret one", "s3cret two"); answer.Status >= 300 {
		t.Fatalf("got %d %s", answer.Status, answer.Text)
	}
	p.finishAll(t, "s3cret one", "s3cret two")
	p.awaitEmpty(t, queue("orders"))
	p.awaitEmpty(t, queue("raw"))
	var all strings.Builder
	err := filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.ReadFile(path)
		all.Write(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(all.String(), "cl3ar") {
		t.Error("the files have no properties, so they cannot show that they have no bodies")
	}
	if strings.Contains(all.String(), "s3cret") {
		t.Error("the files of Redis have a body")
	}
}
