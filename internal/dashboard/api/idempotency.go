package api

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"
)

// How long answers are remembered, and how many bytes of them.
const (
	rememberFor   = 24 * time.Hour
	rememberBytes = 16 << 20
	maxIdemKey    = 255
)

// answers remembers what POST requests with an Idempotency-Key were answered, so
// that a repetition gets the same answer and does nothing.
//
// It is the memory of one process: 24 hours, 16 MiB, the oldest first; a restart
// forgets. What must hold beyond that holds by itself: ids are unique, and every
// write names the revision that it replaces.
type answers struct {
	mu    sync.Mutex
	byKey map[string]*list.Element // of *answer
	order *list.List               // by age, oldest first
	size  int
}

type answer struct {
	key     string
	request [sha256.Size]byte
	until   time.Time
	done    bool // else it is being made

	status int
	header http.Header
	body   []byte
}

func newAnswers() *answers {
	return &answers{byKey: map[string]*list.Element{}, order: list.New()}
}

// serve answers with what next says, or with what it said. owner keeps the keys of
// different clients apart; body is the request's, read.
func (a *answers) serve(w http.ResponseWriter, r *http.Request, owner string, body []byte, next http.HandlerFunc) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		next(w, r)
		return
	}
	if len(key) > maxIdemKey {
		problem(http.StatusBadRequest, "invalid", "Idempotency-Key has more than %d bytes", maxIdemKey).ServeHTTP(w, r)
		return
	}
	mine, earlier := a.claim(owner+"\x00"+key, fingerprint(r, body))
	switch {
	case earlier == nil:
	case earlier.request != mine.request:
		problem(http.StatusUnprocessableEntity, "idempotency_key_reused", "this Idempotency-Key came with another request before").ServeHTTP(w, r)
		return
	case !earlier.done:
		problem(http.StatusConflict, "in_progress", "the first request with this Idempotency-Key is not answered yet").after(time.Second).ServeHTTP(w, r)
		return
	default:
		earlier.replay(w)
		return
	}
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	finished := false
	defer func() { // also when next panics
		a.settle(mine, rec, finished)
	}()
	next(rec, r)
	finished = true
}

// fingerprint is what makes two requests the same: all that an answer depends on,
// also which revision is to be replaced.
func fingerprint(r *http.Request, body []byte) [sha256.Size]byte {
	h := sha256.New()
	for _, s := range []string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("If-Match")} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}

// claim gives an answer to be made, and a copy of what is there under the key.
func (a *answers) claim(key string, request [sha256.Size]byte) (mine, earlier *answer) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for e := a.order.Front(); e != nil && now.After(e.Value.(*answer).until); e = a.order.Front() {
		a.drop(e)
	}
	mine = &answer{key: key, request: request, until: now.Add(rememberFor)}
	if e, ok := a.byKey[key]; ok {
		there := *e.Value.(*answer)
		return mine, &there
	}
	a.add(mine)
	return mine, nil
}

// settle keeps what was answered, if it is the last word.
func (a *answers) settle(mine *answer, rec *recorder, finished bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.byKey[mine.key]
	if !ok || e.Value.(*answer) != mine {
		return // the oldest gave way, while it was being made
	}
	a.drop(e)
	if !finished || !isFinal(rec.status) {
		return
	}
	kept := *mine // readers have copies: what they see does not change
	kept.done, kept.status, kept.header, kept.body = true, rec.status, rec.header(), rec.body.Bytes()
	a.add(&kept)
}

// isFinal reports whether an answer stands. Not one that says "ask again", and not a
// refusal for what the catalog has by now, or for an If-Match that is missing: nothing
// was done, and the key stays free for the request that names the right revision.
func isFinal(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusPreconditionRequired, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

func (a *answers) add(x *answer) {
	a.byKey[x.key] = a.order.PushBack(x)
	a.size += x.bytes()
	for a.size > rememberBytes {
		a.drop(a.order.Front())
	}
}

func (a *answers) drop(e *list.Element) {
	x := a.order.Remove(e).(*answer)
	a.size -= x.bytes()
	delete(a.byKey, x.key)
}

// bytes is about what an answer takes in memory.
func (x *answer) bytes() int { return 1024 + len(x.key) + len(x.body) }

func (x *answer) replay(w http.ResponseWriter) {
	for key, values := range x.header {
		w.Header()[key] = values
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(x.status)
	_, _ = w.Write(x.body)
}

// A recorder notes an answer on its way.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.body.Write(b)
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// header is what belongs to the answer, and not to when it was given.
func (r *recorder) header() http.Header {
	h := http.Header{}
	for _, key := range []string{"Content-Type", "Etag", "Location"} {
		if v := r.Header().Values(key); len(v) > 0 {
			h[key] = v
		}
	}
	return h
}

// isJSON reports whether a Content-Type is one of JSON.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}
