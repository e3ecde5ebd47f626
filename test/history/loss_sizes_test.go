package history

import (
	"bytes"
	"math/rand/v2"

	"github.com/sidebus/sidebus/semantics/storetest"
)

// Of what a round sends, sizes and counts are drawn log-uniform, until this is used up; then all is small.
const (
	maxBody, roundBytes      = 1 << 20, 4 << 20
	maxBatch, roundMessages  = 1000, 1200
	maxReceive, batchPercent = 300, 6
	batchBytes               = 900 << 10 // of bodies: a batch may have 1 MiB with all else
)

// draw takes a size or count out of what is left of a round.
func draw(rng *rand.Rand, most int, left *int) int {
	n := storetest.RandomLogUniform(rng, min(most, max(1, *left)))
	*left -= n
	return n
}

// bodyOf returns the body of a message of some size.
func bodyOf(text string, size int) []byte {
	return bytes.Repeat([]byte(text+" "), size/(len(text)+1)+1)[:size]
}
