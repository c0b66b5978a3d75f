package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Answers are forgotten, the oldest first, before they fill the memory.
func TestAnswersAreBounded(t *testing.T) {
	a := newAnswers()
	answer := strings.Repeat("x", 1<<20)
	made := 0
	ask := func(key int) (replayed bool) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", fmt.Sprint(key))
		w := httptest.NewRecorder()
		a.serve(w, r, "me", nil, func(w http.ResponseWriter, _ *http.Request) {
			made++
			_, _ = io.WriteString(w, answer)
		})
		if w.Body.Len() != len(answer) {
			t.Fatalf("an answer of %d bytes", w.Body.Len())
		}
		return w.Header().Get("Idempotency-Replayed") != ""
	}
	for key := range 40 {
		ask(key)
		if a.size > rememberBytes || len(a.byKey) != a.order.Len() {
			t.Fatalf("%d bytes in %d answers, %d in order", a.size, len(a.byKey), a.order.Len())
		}
	}
	if !ask(39) || ask(0) || made != 41 {
		t.Errorf("the newest was made again, or the oldest was not: %d made", made)
	}
	if a.order.Len() > 16 {
		t.Errorf("%d answers are kept", a.order.Len())
	}
}

// An answer that breaks is not kept, and its key is free again.
func TestABrokenAnswerIsForgotten(t *testing.T) {
	a := newAnswers()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Idempotency-Key", "k")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		a.serve(httptest.NewRecorder(), r, "me", nil, func(http.ResponseWriter, *http.Request) { panic("broken") })
	}()
	w := httptest.NewRecorder()
	a.serve(w, r, "me", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	if w.Code != http.StatusCreated || a.size == 0 {
		t.Errorf("status %d, %d bytes kept", w.Code, a.size)
	}
}
