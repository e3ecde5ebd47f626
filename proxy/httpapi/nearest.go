package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	protofiles "github.com/sidebus/sidebus/proto"
)

// Bounds of what is compared of a path from outside.
const (
	maxSegments      = 16
	maxSegmentLength = 64 // bytes
)

// missingSegment is what a segment too many or too few counts, in letters.
const missingSegment = 4

// routes lists the paths of the API, each cut into its segments, in the order of the alphabet.
var routes = sync.OnceValue(func() [][]string {
	var document struct {
		Paths map[string]json.RawMessage
	}
	if err := json.Unmarshal(protofiles.OpenAPI, &document); err != nil {
		panic(err) // it is built in
	}
	var all [][]string
	for path := range document.Paths {
		all = append(all, strings.Split(path, "/"))
	}
	slices.SortFunc(all, slices.Compare)
	return all
})

// nearestRoute gives the route that differs from path, escaped, in the fewest letters.
func nearestRoute(path string) string {
	asked := strings.Split(path, "/")
	asked = asked[:min(len(asked), maxSegments)]
	for i, segment := range asked {
		asked[i] = segment[:min(len(segment), maxSegmentLength)]
	}
	best, least := "", -1
	for _, route := range routes() {
		d := distance(len(asked), len(route), missingSegment, func(i, j int) int {
			if strings.HasPrefix(route[j], "{") && asked[i] != "" {
				return 0
			}
			return distance(len(asked[i]), len(route[j]), 1, func(x, y int) int {
				if asked[i][x] == route[j][y] {
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

// distance is the least cost of changing a list of n things into one of m: gap for each that is put in or left out,
// change(i, j) for the thing i that becomes the thing j.
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
