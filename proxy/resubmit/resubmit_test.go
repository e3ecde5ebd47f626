package resubmit

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// queue is a dead-letter queue as the API has it: what cannot be sent stays in front.
type queue struct {
	letters []int64
	refuses map[int64]bool
	calls   int
}

func (q *queue) resubmit(request *sidebusv1.ResubmitRequest) *sidebusv1.ResubmitResponse {
	q.calls++
	answer := &sidebusv1.ResubmitResponse{}
	var left []int64
	for i, n := range q.letters {
		if len(answer.GetResults()) == int(request.GetMax()) {
			left = append(left, q.letters[i:]...)
			answer.More = true
			break
		}
		result := &sidebusv1.ResubmitResponse_Result{SequenceNumber: n}
		if q.refuses[n] {
			result.Reason = proto.String("ENTITY_FULL")
			left = append(left, n)
		}
		answer.Results = append(answer.Results, result)
	}
	q.letters = left
	return answer
}

// All are dealt with once, those that stay are reported once, and what dies again meanwhile stays.
func TestAllAreDealtWithOnce(t *testing.T) {
	t.Parallel()
	const step = 200
	for _, c := range []struct{ letters, refused, again int }{{1, 0, 0}, {950, 0, 0}, {950, 300, 0}, {950, 950, 0}, {500, 20, 700}} {
		q := &queue{refuses: map[int64]bool{}}
		for n := range c.letters {
			q.letters = append(q.letters, int64(n))
			q.refuses[int64(n)] = n < c.refused
		}
		reported := map[int64]int{}
		p := All(int64(c.letters))
		for !p.Done {
			request := &sidebusv1.ResubmitRequest{}
			p.Next(request, step)
			for _, r := range p.Take(q.resubmit(request)) {
				reported[r.GetSequenceNumber()]++
			}
			for n := range c.again {
				q.letters = append(q.letters, int64(10_000+n))
			}
			c.again = 0
			if q.calls > 100 {
				t.Fatalf("%+v: it does not end: %+v", c, p)
			}
		}
		dealt := 0
		for n, times := range reported {
			if dealt++; times != 1 {
				t.Errorf("%+v: %d was reported %d times", c, n, times)
			}
		}
		if c.refused >= step { // a call that sends none is the last one
			if p.Sent != 0 || dealt != step || q.calls != 1 {
				t.Errorf("%+v: %d sent, %d reported in %d calls", c, p.Sent, dealt, q.calls)
			}
			continue
		}
		if want := int64(c.letters - c.refused); p.Sent != want || len(p.Stay) != c.refused || dealt != c.letters {
			t.Errorf("%+v: %d sent, %d stay, %d reported", c, p.Sent, len(p.Stay), dealt)
		}
	}
}

// Those with numbers are sent in steps, also if the sidecar deals with some of them only, and not without end.
func TestNamedOnesAreSentInSteps(t *testing.T) {
	t.Parallel()
	p := ByNumber([]int64{5, 6, 7, math.MaxInt64})
	var asked [][]int64
	for !p.Done {
		request := &sidebusv1.ResubmitRequest{}
		p.Next(request, 3)
		asked = append(asked, request.GetSequenceNumbers())
		answer := &sidebusv1.ResubmitResponse{}
		for _, n := range request.GetSequenceNumbers()[:min(2, len(request.GetSequenceNumbers()))] {
			answer.Results = append(answer.Results, &sidebusv1.ResubmitResponse_Result{SequenceNumber: n})
		}
		p.Take(answer)
	}
	if want := [][]int64{{5, 6, 7}, {7, math.MaxInt64}}; !reflect.DeepEqual(asked, want) || p.Sent != 4 {
		t.Errorf("asked for %v, sent %d", asked, p.Sent)
	}
	p = ByNumber([]int64{1})
	p.Take(&sidebusv1.ResubmitResponse{})
	if !p.Done || len(p.Numbers) != 1 {
		t.Errorf("after an answer for none: %+v", p)
	}
	if p = ByNumber(nil); !p.Done {
		t.Error("nothing is not done")
	}
}

// A page keeps it as JSON, in which long numbers stay exact.
func TestProgressIsJSON(t *testing.T) {
	t.Parallel()
	p := Progress{Named: true, Numbers: []Number{math.MaxInt64}, Stay: []Number{1}, Total: 3, Sent: 2}
	text, err := json.Marshal(p)
	var back Progress
	if err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(p, back) {
		t.Errorf("%s became %+v, %v", text, back, err)
	}
	for _, bad := range []string{`{"numbers":[1]}`, `{"numbers":["x"]}`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
