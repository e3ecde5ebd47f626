package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// The assets are built from web with "make console".
//
//go:embed assets
var embedded embed.FS

// asset is a file of the pages.
type asset struct {
	plain, zipped []byte
	kind, tag     string
}

// assets are the files of the pages, by name.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	entries, _ := embedded.ReadDir("assets") // it is there: it was embedded
	for _, entry := range entries {
		plain, _ := embedded.ReadFile("assets/" + entry.Name())
		sum := sha256.Sum256(plain)
		all[entry.Name()] = asset{
			plain: plain, zipped: zip(plain), kind: mime.TypeByExtension(path.Ext(entry.Name())),
			tag: strconv.Quote(hex.EncodeToString(sum[:8])),
		}
	}
	return all
})

func zip(plain []byte) []byte {
	var zipped bytes.Buffer
	to, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is valid
	_, _ = to.Write(plain)                                      // a buffer takes everything
	_ = to.Close()
	return zipped.Bytes()
}

// servePages serves a file of the pages; the page itself for the empty name. Browsers ask each time whether it has
// changed, so that a new version is there at once.
func servePages(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the pages are only read", http.StatusMethodNotAllowed)
		return
	}
	name := r.URL.Path
	if name == "" {
		name = "index.html"
	}
	file, known := assets()[name]
	if !known {
		http.Error(w, "no such page; the console is at ./", http.StatusNotFound)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "no-cache")
	head.Set("ETag", file.tag)
	head.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == file.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		body = file.zipped
	}
	head.Set("Content-Type", file.kind)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // if it fails, the client is gone
}
