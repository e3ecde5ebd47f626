package console

import (
	"strings"
	"testing"
)

// The pages are small, whole, and name nothing of another origin.
func TestAssets(t *testing.T) {
	t.Parallel()
	size := 0
	for name, file := range assets() {
		size += len(file.zipped)
		if file.kind == "" {
			t.Errorf("%s has no media type", name)
		}
		if name != "icon.svg" && strings.Contains(string(file.plain), "//cdn") {
			t.Errorf("%s needs another origin", name)
		}
	}
	if size == 0 || size > 300<<10 {
		t.Errorf("%d bytes zipped, must be 1 to %d", size, 300<<10)
	}
	page := string(assets()["index.html"].plain)
	for _, name := range []string{"console.js", "console.css", "icon.svg"} {
		if assets()[name].plain == nil || !strings.Contains(page, `"`+name+`"`) {
			t.Errorf("%s is missing in the page or among the files", name)
		}
	}
	if strings.Contains(page, "style=") || strings.Contains(page, "<style") || strings.Count(page, "<script") != strings.Count(page, "<script type=\"module\" src=") {
		t.Error("the page has an inline script or style, which its policy refuses")
	}
}
