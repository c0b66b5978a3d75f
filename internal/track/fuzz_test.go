package track_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// beaconStatuses and dogearStatuses are all that a contract names, for a node that is
// well. 429 is left out: the fuzzer is one address that asks too often.
var (
	beaconStatuses = []int{204, 403, 405}
	dogearStatuses = []int{204, 400, 403, 404, 405, 413, 415}
)

// fuzzed is a node that lets everybody through to where strangers' bytes are read.
func fuzzed(f *testing.F) *node {
	n := newNode(f, memory.NewLog(), unlimited)
	n.ring = token.NewRing(make([]byte, 32), nil) // the same for every process that fuzzes
	return n
}

// Whatever the query of a beacon is, it is answered as the contract says, and only a
// token of ours gets anything into the journal.
func FuzzBeacon(f *testing.F) {
	n := fuzzed(f)
	valid := n.ring.MintBeacon(token.Imp, filled(1), time.Now())
	f.Add("GET", "t="+valid, "Mozilla/5.0")
	f.Add("POST", "dogeared=1&t="+escaped(valid, 77), "examplebot")
	f.Add("HEAD", "t=%", "")
	f.Add("GET", "t=a.b&t="+valid, "")
	f.Add("OPTIONS", "t", "")
	f.Fuzz(func(t *testing.T, method, query, agent string) {
		n.TB = t
		r := httptest.NewRequest(http.MethodGet, "/v1/imp", nil)
		r.Method, r.URL.RawQuery, r.Header = method, query, http.Header{"User-Agent": {agent}}
		if got := n.send(reader, r); !slices.Contains(beaconStatuses, got.status) {
			t.Errorf("%v", got)
		}
		if told := n.counted("imp", "counted") + n.counted("imp", "suspect"); told > 1 {
			t.Errorf("%v events of one token", told)
		}
	})
}

// Whatever the body of a dog-ear event is, it is answered as the contract says, and
// only a token of ours gets a fold into the journal.
func FuzzDogear(f *testing.F) {
	n := fuzzed(f)
	valid := n.foldToken()
	for _, media := range []string{"application/json", "text/plain;charset=UTF-8"} {
		f.Add(media, []byte(dogear("fold", valid)))
		f.Add(media, []byte(dogear("unfold", "")))
		f.Add(media, []byte(`{"pub":"blog","pub":"shop"}`))
	}
	f.Add("text/html", []byte("{}"))
	f.Add(";", []byte(`[[[[[[`))
	f.Fuzz(func(t *testing.T, media string, body []byte) {
		n.TB = t
		r := httptest.NewRequest(http.MethodPost, track.DogearPath, strings.NewReader(string(body)))
		r.Header = http.Header{"Content-Type": {media}}
		if got := n.send(reader, r); !slices.Contains(dogearStatuses, got.status) {
			t.Errorf("%v", got)
		}
		if told := n.counted("fold", "counted") + n.counted("fold", "suspect"); told > 1 {
			t.Errorf("%v folds of one token", told)
		}
	})
}
