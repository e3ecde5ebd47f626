package test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestIndexListsEveryPage(t *testing.T) {
	t.Parallel()
	index := readPage(t, "docs/README.md")
	err := filepath.WalkDir(filepath.Join("..", "docs"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := filepath.Rel(filepath.Join("..", "docs"), path)
		if err != nil {
			return err
		}
		if page = filepath.ToSlash(page); page != "README.md" && !strings.Contains(index, "]("+page+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGuidesForThoseWhoComeWorkWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	printed := make(map[string]string)
	for _, page := range []string{"docs/from-azure-service-bus.md", "docs/from-rabbitmq.md"} {
		for _, session := range blocks(t, page, "<!-- runs -->\n```sh") {
			printed[page] += strings.ReplaceAll(shell(t, s, session), `": `, `":`)
		}
		if strings.Contains(printed[page], "LOCK_LOST") {
			t.Errorf("%s: a settlement failed:\n%s", page, printed[page])
		}
	}
	for page, want := range map[string]string{
		"docs/from-azure-service-bus.md": `"properties":{"amount":42}`, "docs/from-rabbitmq.md": `"deliveryCount":2`,
	} {
		if !strings.Contains(strings.ReplaceAll(printed[page], `{ "`, `{"`), want) {
			t.Errorf("%s did not print %s; it printed:\n%s", page, want, printed[page])
		}
	}
	for route, want := range map[string]any{
		"/v1/queues/invoices/runtime": "0", "/v1/topics/shop-events/subscriptions/billing/runtime": "0",
		"/v1/topics/shop-events/subscriptions/audit/runtime": "1",
	} {
		if total := s.Must(t, http.MethodGet, route, "").Body["totalMessageCount"]; total != want {
			t.Errorf("%s: %v messages are left, want %v", route, total, want)
		}
	}
}
