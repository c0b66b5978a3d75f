// Package storetest is what every store does: one suite that runs against the
// engine and against its twin in memory.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/store"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// errEnough ends a reading.
var errEnough = errors.New("enough")

// Log checks the contract of store.Log. make makes an empty one.
func Log(t *testing.T, make func(t *testing.T) store.Log) {
	for name, check := range map[string]func(*testing.T, store.Log){
		"empty":                emptyLog,
		"order":                appendInOrder,
		"same id":              sameID,
		"bad id":               badID,
		"too large":            tooLarge,
		"data is not kept":     dataIsNotKept,
		"ended context":        appendEnded,
		"concurrent appends":   concurrentAppends,
		"read follows":         readFollows,
		"read resumes":         readResumes,
		"read ends":            readEnds,
		"read beyond the end":  readBeyondTheEnd,
		"readers are distinct": readersAreDistinct,
	} {
		t.Run(name, func(t *testing.T) { check(t, make(t)) })
	}
}

func emptyLog(t *testing.T, l store.Log) {
	got, err := l.State(bounded(t))
	if want := (store.LogState{First: 1}); err != nil || got != want {
		t.Errorf("state = %+v, %v; want %+v", got, err, want)
	}
}

func appendInOrder(t *testing.T, l store.Log) {
	ctx := bounded(t)
	for i := 1; i <= 20; i++ {
		seq, err := l.Append(ctx, fmt.Sprint("id", i), fmt.Append(nil, "message ", i))
		if err != nil || seq != store.Seq(i) {
			t.Fatalf("append %d = %d, %v", i, seq, err)
		}
	}
	for i, m := range read(t, l, 5, 16) {
		want := store.Message{Seq: store.Seq(i + 5), Data: fmt.Append(nil, "message ", i+5)}
		if m.Time.IsZero() || time.Since(m.Time).Abs() > time.Hour {
			t.Errorf("message %d was added at %v", m.Seq, m.Time)
		}
		m.Time = time.Time{}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Error(diff)
		}
	}
	st, err := l.State(ctx)
	if err != nil || st.First != 1 || st.Last != 20 || st.Bytes == 0 {
		t.Errorf("state = %+v, %v", st, err)
	}
}

// read returns n messages from a place on.
func read(t *testing.T, l store.Log, from store.Seq, n int) (messages []store.Message) {
	t.Helper()
	err := l.Read(bounded(t), from, func(m store.Message) error {
		m.Data = bytes.Clone(m.Data)
		if messages = append(messages, m); len(messages) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatalf("read of %d messages gave %d, and %v", n, len(messages), err)
	}
	return messages
}

func sameID(t *testing.T, l store.Log) {
	ctx := bounded(t)
	first, err1 := l.Append(ctx, "a", []byte("1"))
	other, err2 := l.Append(ctx, "b", []byte("2"))
	again, err3 := l.Append(ctx, "a", []byte("3"))
	if err := errors.Join(err1, err2, err3); err != nil || first != 1 || other != 2 || again != 1 {
		t.Errorf("a, b, a were added at %d, %d, %d, %v; want 1, 2, 1", first, other, again, err)
	}
	if got := read(t, l, 1, 2); string(got[0].Data) != "1" {
		t.Errorf("the first message is %q, want that of the first append", got[0].Data)
	}
}

func badID(t *testing.T, l store.Log) {
	for _, id := range []string{"", "two words", "line\r\nX: y", "ä", strings.Repeat("x", 129)} {
		if seq, err := l.Append(bounded(t), id, []byte("x")); err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("id %q: %d, %v; want an error that does not pass", id, seq, err)
		}
	}
}

func tooLarge(t *testing.T, l store.Log) {
	ctx := bounded(t)
	if _, err := l.Append(ctx, "most", make([]byte, store.MaxMessage)); err != nil {
		t.Errorf("the largest message: %v", err)
	}
	if _, err := l.Append(ctx, "more", make([]byte, store.MaxMessage+1)); !errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a larger message: %v, want ErrTooLarge", err)
	}
	if st, err := l.State(ctx); err != nil || st.Last != 1 {
		t.Errorf("state = %+v, %v", st, err)
	}
}

func dataIsNotKept(t *testing.T, l store.Log) {
	data := []byte("before")
	if _, err := l.Append(bounded(t), "a", data); err != nil {
		t.Fatal(err)
	}
	copy(data, "after.")
	if got := read(t, l, 1, 1); string(got[0].Data) != "before" {
		t.Errorf("the message is %q", got[0].Data)
	}
}

func appendEnded(t *testing.T, l store.Log) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, "a", []byte("x")); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want ErrUnavailable for the context's end", err)
	}
}

func concurrentAppends(t *testing.T, l store.Log) {
	const callers, each = 16, 20
	ctx := bounded(t)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seqs = map[store.Seq]string{}
	)
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", c, i)
				seq, err := l.Append(ctx, id, []byte(id))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seqs[seq] = id
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seqs) != callers*each {
		t.Fatalf("%d appends have %d places", callers*each, len(seqs))
	}
	for i, m := range read(t, l, 1, callers*each) {
		if m.Seq != store.Seq(i+1) || string(m.Data) != seqs[m.Seq] {
			t.Errorf("at %d there is %q at %d, want %q", i+1, m.Data, m.Seq, seqs[m.Seq])
		}
	}
}

func readFollows(t *testing.T, l store.Log) {
	ctx := bounded(t)
	got := make(chan string)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- l.Read(ctx, 0, func(m store.Message) error {
			select {
			case got <- string(m.Data):
			case <-ctx.Done():
			}
			return nil
		})
	}()
	for _, want := range []string{"a", "b", "c"} {
		if _, err := l.Append(ctx, want, []byte(want)); err != nil {
			t.Fatal(err)
		}
		select {
		case data := <-got:
			if data != want {
				t.Errorf("read %q, want %q", data, want)
			}
		case <-ctx.Done():
			t.Fatalf("%q did not come", want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("a reading that is not wanted any more ended with %v", err)
	}
}

func readResumes(t *testing.T, l store.Log) {
	for i := range 50 {
		if _, err := l.Append(bounded(t), fmt.Sprint(i), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	var got []store.Seq
	for next := store.Seq(1); next <= 50; {
		for _, m := range read(t, l, next, 5) {
			got = append(got, m.Seq)
			next = m.Seq + 1
		}
	}
	for i, seq := range got {
		if seq != store.Seq(i+1) {
			t.Fatalf("in pieces of 5 the places are %v", got)
		}
	}
}

func readEnds(t *testing.T, l store.Log) {
	if _, err := l.Append(bounded(t), "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := l.Read(bounded(t), 1, func(store.Message) error { n++; return fmt.Errorf("ours: %w", errEnough) })
	if !errors.Is(err, errEnough) || n != 1 {
		t.Errorf("ended with %v after %d messages, want the error of yield after 1", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Read(ctx, 1, func(store.Message) error { return nil }); err != nil {
		t.Errorf("with an ended context: %v, want nil", err)
	}
}

func readBeyondTheEnd(t *testing.T, l store.Log) {
	if _, err := l.Append(bounded(t), "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	err := l.Read(bounded(t), 3, func(m store.Message) error { return fmt.Errorf("yielded %d", m.Seq) })
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("read from 3 of a log of 1: %v, want ErrDamaged", err)
	}
}

func readersAreDistinct(t *testing.T, l store.Log) {
	for i := range 10 {
		if _, err := l.Append(bounded(t), fmt.Sprint(i), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			n := 0
			err := l.Read(bounded(t), 1, func(m store.Message) error {
				if n++; m.Seq != store.Seq(n) {
					return fmt.Errorf("message %d came as %d", m.Seq, n)
				}
				if n == 10 {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// KV checks the contract of store.KV. make makes an empty one.
func KV(t *testing.T, make func(t *testing.T) store.KV) {
	for name, check := range map[string]func(*testing.T, store.KV){
		"missing":            missingKey,
		"put and get":        putAndGet,
		"lost race":          lostRace,
		"delete":             deleteKey,
		"create again":       createAgain,
		"bad key":            badKey,
		"odd keys":           oddKeys,
		"values are owned":   valuesAreOwned,
		"one of many wins":   oneOfManyWins,
		"watch empty":        watchEmpty,
		"watch":              watch,
		"watch ends":         watchEnds,
		"watch is not ahead": watchIsNotAhead,
		"ended context":      kvEnded,
	} {
		t.Run(name, func(t *testing.T) { check(t, make(t)) })
	}
}

func put(t *testing.T, k store.KV, key, value string, revision uint64) uint64 {
	t.Helper()
	got, err := k.Put(bounded(t), key, []byte(value), revision)
	if err != nil || got <= revision {
		t.Fatalf("put %s at %d = %d, %v", key, revision, got, err)
	}
	return got
}

func missingKey(t *testing.T, k store.KV) {
	if e, err := k.Get(bounded(t), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get = %v, %v; want ErrNotFound", e, err)
	}
	if err := k.Delete(bounded(t), "a", 0); err != nil {
		t.Errorf("delete of what is not there: %v", err)
	}
	if err := k.Delete(bounded(t), "a", 7); !errors.Is(err, store.ErrConflict) {
		t.Errorf("delete of what was believed to be there: %v, want ErrConflict", err)
	}
	if _, err := k.Put(bounded(t), "a", nil, 7); !errors.Is(err, store.ErrConflict) {
		t.Errorf("put over what was believed to be there: %v, want ErrConflict", err)
	}
}

func putAndGet(t *testing.T, k store.KV) {
	first := put(t, k, "a", "1", 0)
	put(t, k, "b", "other", 0)
	second := put(t, k, "a", "2", first)
	e, err := k.Get(bounded(t), "a")
	if err != nil || e.Key != "a" || string(e.Value) != "2" || e.Revision != second || time.Since(e.Time).Abs() > time.Hour {
		t.Errorf("get = %+v, %v", e, err)
	}
	put(t, k, "empty", "", 0)
	if e, err := k.Get(bounded(t), "empty"); err != nil || len(e.Value) != 0 {
		t.Errorf("an empty value = %+v, %v", e, err)
	}
}

func lostRace(t *testing.T, k store.KV) {
	first := put(t, k, "a", "1", 0)
	second := put(t, k, "a", "2", first)
	for _, revision := range []uint64{0, first, second + 1} {
		if got, err := k.Put(bounded(t), "a", []byte("3"), revision); !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("put at %d of %d = %d, %v; want ErrConflict", revision, second, got, err)
		}
		if err := k.Delete(bounded(t), "a", revision); !errors.Is(err, store.ErrConflict) {
			t.Errorf("delete at %d of %d: %v, want ErrConflict", revision, second, err)
		}
	}
	if e, err := k.Get(bounded(t), "a"); err != nil || string(e.Value) != "2" || e.Revision != second {
		t.Errorf("get = %+v, %v; want what was there", e, err)
	}
}

func deleteKey(t *testing.T, k store.KV) {
	revision := put(t, k, "a", "1", 0)
	if err := k.Delete(bounded(t), "a", revision); err != nil {
		t.Fatal(err)
	}
	if e, err := k.Get(bounded(t), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get = %v, %v; want ErrNotFound", e, err)
	}
	if _, err := k.Put(bounded(t), "a", []byte("2"), revision); !errors.Is(err, store.ErrConflict) {
		t.Errorf("put at the revision of the removed value: %v, want ErrConflict", err)
	}
	if err := k.Delete(bounded(t), "a", revision); !errors.Is(err, store.ErrConflict) {
		t.Errorf("delete again: %v, want ErrConflict", err)
	}
}

func createAgain(t *testing.T, k store.KV) {
	first := put(t, k, "a", "1", 0)
	if err := k.Delete(bounded(t), "a", first); err != nil {
		t.Fatal(err)
	}
	if second := put(t, k, "a", "2", 0); second <= first {
		t.Errorf("the revision went from %d to %d", first, second)
	}
	if e, err := k.Get(bounded(t), "a"); err != nil || string(e.Value) != "2" {
		t.Errorf("get = %v, %v", e, err)
	}
}

func badKey(t *testing.T, k store.KV) {
	for _, key := range []string{"", "a b", "a*", ">", "a.>", ".a", "a.", "a..b", "ä", "a\nb", strings.Repeat("k", 513)} {
		_, putErr := k.Put(bounded(t), key, nil, 0)
		_, getErr := k.Get(bounded(t), key)
		for _, err := range []error{putErr, getErr, k.Delete(bounded(t), key, 0)} {
			if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("key %q: %v, want an error about the key", key, err)
			}
		}
	}
}

func oddKeys(t *testing.T, k store.KV) {
	for _, key := range []string{"a", "a.b", "a/b", "/a/", "a=b", "_", "-a-", "A.b.C", strings.Repeat("k", 512)} {
		put(t, k, key, key, 0)
		if e, err := k.Get(bounded(t), key); err != nil || string(e.Value) != key || e.Key != key {
			t.Errorf("get %q = %q, %q, %v", key, e.Key, e.Value, err)
		}
	}
}

func valuesAreOwned(t *testing.T, k store.KV) {
	value := []byte("before")
	if _, err := k.Put(bounded(t), "a", value, 0); err != nil {
		t.Fatal(err)
	}
	copy(value, "after.")
	for range 2 {
		e, err := k.Get(bounded(t), "a")
		if err != nil || string(e.Value) != "before" {
			t.Errorf("get = %q, %v", e.Value, err)
		}
		copy(e.Value, "XXXXXX")
	}
}

func oneOfManyWins(t *testing.T, k store.KV) {
	base := put(t, k, "n", "base", 0)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		wins []string
	)
	for i := range 16 {
		wg.Go(func() {
			value := fmt.Sprint("writer ", i)
			_, err := k.Put(bounded(t), "n", []byte(value), base)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins = append(wins, value)
			} else if !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	e, err := k.Get(bounded(t), "n")
	if err != nil || len(wins) != 1 || string(e.Value) != wins[0] {
		t.Errorf("%v won, and the value is %q, %v", wins, e.Value, err)
	}
}

// watched is what a watcher has been told, in words.
func watched(c store.Change) string {
	switch {
	case c.Complete:
		return "complete"
	case c.Deleted:
		return "-" + c.Key
	default:
		return c.Key + "=" + string(c.Value)
	}
}

// follow watches until the test ends, and returns what it is told.
func follow(t *testing.T, k store.KV) <-chan store.Change {
	t.Helper()
	told := make(chan store.Change)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- k.Watch(ctx, func(c store.Change) error {
			c.Value = bytes.Clone(c.Value)
			select {
			case told <- c:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a watch that is not wanted any more ended with %v", err)
		}
	})
	return told
}

func next(t *testing.T, told <-chan store.Change) store.Change {
	t.Helper()
	select {
	case c := <-told:
		return c
	case <-time.After(patience):
		t.Fatal("a change did not come")
		return store.Change{}
	}
}

func watchEmpty(t *testing.T, k store.KV) {
	told := follow(t, k)
	if got := watched(next(t, told)); got != "complete" {
		t.Errorf("told %q first", got)
	}
	put(t, k, "a", "1", 0)
	if got := watched(next(t, told)); got != "a=1" {
		t.Errorf("told %q, want a=1", got)
	}
}

func watch(t *testing.T, k store.KV) {
	a := put(t, k, "a", "1", 0)
	put(t, k, "b", "1", 0)
	a = put(t, k, "a", "2", a)
	gone := put(t, k, "gone", "1", 0)
	if err := k.Delete(bounded(t), "gone", gone); err != nil {
		t.Fatal(err)
	}
	told := follow(t, k)
	var last uint64
	tell := func(want ...string) {
		t.Helper()
		for _, w := range want {
			c := next(t, told)
			if got := watched(c); got != w {
				t.Errorf("told %q, want %q", got, w)
			}
			if !c.Complete {
				if c.Revision <= last || time.Since(c.Time).Abs() > time.Hour {
					t.Errorf("%s has revision %d after %d, time %v", watched(c), c.Revision, last, c.Time)
				}
				last = c.Revision
			}
		}
	}
	tell("b=1", "a=2", "-gone", "complete")
	a = put(t, k, "a", "3", a)
	tell("a=3")
	if err := k.Delete(bounded(t), "a", a); err != nil {
		t.Fatal(err)
	}
	tell("-a")
	put(t, k, "a", "4", 0)
	tell("a=4")
}

func watchEnds(t *testing.T, k store.KV) {
	put(t, k, "a", "1", 0)
	for _, at := range []string{"a=1", "complete"} {
		var got []string
		err := k.Watch(bounded(t), func(c store.Change) error {
			if got = append(got, watched(c)); watched(c) == at {
				return fmt.Errorf("ours: %w", errEnough)
			}
			return nil
		})
		if !errors.Is(err, errEnough) || !slices.Contains(got, at) {
			t.Errorf("ended with %v after %v, want the error of yield at %s", err, got, at)
		}
	}
}

// watchIsNotAhead shows that what a watcher was told can be got.
func watchIsNotAhead(t *testing.T, k store.KV) {
	told := follow(t, k)
	next(t, told)
	var revision uint64
	for i := range 20 {
		revision = put(t, k, "a", fmt.Sprint(i), revision)
		c := next(t, told)
		if e, err := k.Get(bounded(t), "a"); err != nil || e.Revision < c.Revision {
			t.Errorf("told of %d, and got %d, %v", c.Revision, e.Revision, err)
		}
	}
}

func kvEnded(t *testing.T, k store.KV) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, putErr := k.Put(ctx, "a", []byte("x"), 0)
	_, getErr := k.Get(ctx, "a")
	for _, err := range []error{putErr, getErr} {
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want ErrUnavailable for the context's end", err)
		}
	}
	if err := k.Watch(ctx, func(store.Change) error { return nil }); err != nil {
		t.Errorf("watch: %v, want nil", err)
	}
}

// Blobs checks the contract of store.Blobs. make makes an empty set.
func Blobs(t *testing.T, make func(t *testing.T) store.Blobs) {
	for name, check := range map[string]func(*testing.T, store.Blobs){
		"put and get": blobPutAndGet,
		"same data":   sameBlob,
		"sizes":       blobSizes,
		"missing":     missingBlob,
	} {
		t.Run(name, func(t *testing.T) { check(t, make(t)) })
	}
}

const helloID = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"

func blobPutAndGet(t *testing.T, b store.Blobs) {
	id, err := b.Put(bounded(t), []byte("hello"), "text/plain")
	if err != nil || id != helloID {
		t.Fatalf("put = %q, %v", id, err)
	}
	for range 2 {
		got, err := b.Get(bounded(t), id)
		if err != nil || string(got.Data) != "hello" || got.ContentType != "text/plain" {
			t.Errorf("get = %q, %q, %v", got.Data, got.ContentType, err)
		}
		copy(got.Data, "XXXXX")
	}
}

func sameBlob(t *testing.T, b store.Blobs) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if id, err := b.Put(bounded(t), []byte("hello"), "text/plain"); err != nil || id != helloID {
				t.Errorf("put = %q, %v", id, err)
			}
		})
	}
	wg.Wait()
	if _, err := b.Put(bounded(t), []byte("hello"), "image/png"); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(bounded(t), helloID); err != nil || got.ContentType != "text/plain" {
		t.Errorf("get = %+v, %v; want the first content type", got, err)
	}
}

func blobSizes(t *testing.T, b store.Blobs) {
	for _, size := range []int{0, 1, 128 << 10, 128<<10 + 1, store.MaxBlob} {
		data := bytes.Repeat([]byte("01234567"), size/8+1)[:size]
		id, err := b.Put(bounded(t), data, "application/octet-stream")
		if err != nil {
			t.Fatalf("put of %d bytes: %v", size, err)
		}
		if got, err := b.Get(bounded(t), id); err != nil || !bytes.Equal(got.Data, data) {
			t.Errorf("get of %d bytes = %d, %v", size, len(got.Data), err)
		}
	}
	if _, err := b.Put(bounded(t), make([]byte, store.MaxBlob+1), ""); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("put of more than the limit: %v, want ErrTooLarge", err)
	}
}

func missingBlob(t *testing.T, b store.Blobs) {
	for _, id := range []string{helloID, "", "a", "../../etc/passwd", strings.ToUpper(helloID)} {
		if got, err := b.Get(bounded(t), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get %q = %+v, %v; want ErrNotFound", id, got, err)
		}
	}
}
