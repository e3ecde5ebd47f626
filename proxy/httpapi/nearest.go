package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	protofiles "github.com/sidebus/sidebus/proto"
)

// Limits of how much of a path is compared.
const (
	maxSegments      = 16
	maxSegmentLength = 64 // bytes
)

// missingSegment is the cost of a missing or additional segment, in letters.
const missingSegment = 4

// routes returns the paths of the API, split into segments, in alphabetical order.
var routes = sync.OnceValue(func() [][]string {
	var document struct {
		Paths map[string]json.RawMessage
	}
	if err := json.Unmarshal(protofiles.OpenAPI, &document); err != nil {
		panic(err) // the document is embedded
	}
	var all [][]string
	for path := range document.Paths {
		all = append(all, strings.Split(path, "/"))
	}
	slices.SortFunc(all, slices.Compare)
	return all
})

// isOfAdminAddress reports whether a path is one of the admin address, or of probes as other programs name them.
func isOfAdminAddress(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{
		"ui", "metrics", "startup", "readiness", "liveness", "config", "drain", "quitquitquit", "debug",
		"health", "healthz", "livez", "ready", "readyz",
	}, first)
}

// nearestRoute returns the route with the smallest edit distance to an escaped path.
func nearestRoute(path string) string {
	segments := strings.Split(path, "/")
	segments = segments[:min(len(segments), maxSegments)]
	for i, segment := range segments {
		segments[i] = segment[:min(len(segment), maxSegmentLength)]
	}
	best, least := "", -1
	for _, route := range routes() {
		d := distance(len(segments), len(route), missingSegment, func(i, j int) int {
			if strings.HasPrefix(route[j], "{") && segments[i] != "" {
				return 0
			}
			return distance(len(segments[i]), len(route[j]), 1, func(x, y int) int {
				if segments[i][x] == route[j][y] {
					return 0
				}
				return 1
			})
		})
		if least < 0 || d < least {
			best, least = strings.Join(route, "/"), d
		}
	}
	return best
}

// distance returns the edit distance between a list of n items and one of m: gap for each inserted or removed item,
// change(i, j) for replacing item i by item j.
func distance(n, m, gap int, change func(i, j int) int) int {
	row := make([]int, m+1)
	for j := range row {
		row[j] = j * gap
	}
	for i := range n {
		diagonal := row[0]
		row[0] += gap
		for j := range m {
			next := min(diagonal+change(i, j), row[j]+gap, row[j+1]+gap)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[m]
}
