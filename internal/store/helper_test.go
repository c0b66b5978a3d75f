package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deckle/internal/store"
)

// The test binary is also the process that is killed, traced, or locked out.
const (
	helperFolder  = "DECKLE_TEST_STORE"   // the folder that it opens; it is a helper if set
	helperWriters = "DECKLE_TEST_WRITERS" // how many append at a time; 0 holds the store open
	helperName    = "DECKLE_TEST_NAME"    // begins its ids
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperFolder); dir != "" {
		if err := help(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// help opens a store, and appends until its input ends. It says "open" and then
// "ack ID SEQ TIME" for what has been acknowledged.
func help(dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	st, err := store.Open(ctx, store.Config{DataDir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println("open")
	writers, _ := strconv.Atoi(os.Getenv(helperWriters))
	var wg sync.WaitGroup
	var out sync.Mutex
	for w := range writers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%s-%d-%d", os.Getenv(helperName), w, i)
				seq, err := st.Journal().Append(ctx, id, message(id))
				if err != nil {
					return
				}
				// One write for each line: what is acknowledged is told, or not, as a whole.
				out.Lock()
				fmt.Fprintf(os.Stdout, "ack %s %d %d\n", id, seq, time.Now().UnixNano())
				out.Unlock()
			}
		})
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	wg.Wait()
	if err == nil {
		err = st.Close()
	}
	return err
}

// message is what an id's message has: the id, and as much as an envelope has.
func message(id string) []byte {
	return []byte(id + " " + strings.Repeat("x", 400))
}

func idOf(data []byte) string {
	id, _, _ := strings.Cut(string(data), " ")
	return id
}

// A helper is another process with a store.
type helper struct {
	*exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

// startHelper starts a process, under others if prefix names them, and waits until
// its store is open.
func startHelper(t *testing.T, dir, name string, writers int, prefix ...string) *helper {
	t.Helper()
	args := append(prefix, os.Args[0])
	h := &helper{Cmd: exec.Command(args[0], args[1:]...)}
	h.Env = append(os.Environ(), helperFolder+"="+dir, helperName+"="+name, helperWriters+"="+strconv.Itoa(writers))
	h.Stderr = os.Stderr
	stdin, err := h.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.stdin, h.lines = stdin, bufio.NewScanner(stdout)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if h.ProcessState == nil {
			_ = h.Process.Kill()
			_ = h.Wait()
		}
	})
	if !h.lines.Scan() || h.lines.Text() != "open" {
		t.Fatalf("the helper said %q", h.lines.Text())
	}
	return h
}

// An ack is an acknowledgement: where, and when it was told.
type ack struct {
	seq store.Seq
	at  time.Time
}

// acks reads n acknowledgements, all if n is 0, by id.
func (h *helper) acks(t *testing.T, n int) map[string]ack {
	t.Helper()
	acked := map[string]ack{}
	for (n == 0 || len(acked) < n) && h.lines.Scan() {
		if strings.HasPrefix(h.lines.Text(), "error ") {
			break // it cannot end in order: somebody has seen to that
		}
		var id string
		var seq store.Seq
		var at int64
		if _, err := fmt.Sscanf(h.lines.Text(), "ack %s %d %d", &id, &seq, &at); err != nil {
			t.Fatalf("the helper said %q", h.lines.Text())
		}
		acked[id] = ack{seq, time.Unix(0, at)}
	}
	return acked
}
