package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"deckle/internal/journal"
	"deckle/internal/store"
)

// The test binary is also the process that is killed.
const (
	victimFolder = "DECKLE_TEST_JOURNAL" // of its store; it is a victim if set
	victimRound  = "DECKLE_TEST_ROUND"   // begins its request ids
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(victimFolder); folder != "" {
		if err := beVictim(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const victimWriters = 32

// beVictim appends until it is killed, two events a call, and says "SEQ ID" for each
// call that was acknowledged.
func beVictim(folder string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{DataDir: folder}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	j := journal.New(s.Journal(), journal.Config{}, journal.NewMetrics(), slog.New(slog.DiscardHandler))
	round, err := strconv.Atoi(os.Getenv(victimRound))
	if err != nil {
		return err
	}
	failed := make(chan error, victimWriters)
	for w := range victimWriters {
		go func() {
			for id := round<<40 | w<<32; ; id += 2 {
				seq, err := j.Append(ctx, view(id), view(id+1))
				if err != nil {
					failed <- err
					return
				}
				// One write for each line: what is acknowledged is told, or not, as a whole.
				fmt.Fprintf(os.Stdout, "%d %d\n", seq, id)
			}
		}()
	}
	go func() { _ = j.Run(ctx) }()
	return <-failed
}

// Processes are killed while 32 callers append. What was acknowledged is in the
// journal at the sequence that was told, once, and in the order of its caller.
// DECKLE_SLOW=1 kills 50 of them.
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("DECKLE_SLOW") != "" {
		rounds = 50
	}
	folder := t.TempDir()
	acknowledged := map[int]store.Seq{} // by the request id of the call's first event
	for round := range rounds {
		before := len(acknowledged)
		killAfter := 20*time.Millisecond + rand.N(300*time.Millisecond)
		attack(t, folder, round, killAfter, acknowledged)
		t.Logf("killed %v after its first acknowledgement, with %d calls", killAfter, len(acknowledged)-before)
	}

	places := map[int]place{}
	last := map[int]int{} // by caller
	events := 0
	for _, records := range read(t, openStore(t, folder).Journal()) {
		for _, r := range records {
			n, err := strconv.ParseUint(r.RequestID, 16, 63)
			if err != nil {
				t.Fatal(err)
			}
			id := int(n)
			if before, again := places[id]; again {
				t.Fatalf("%x is in the journal at %v and at %d", id, before, r.Seq)
			}
			if want := last[id>>32] + 1; last[id>>32] > 0 && id != want {
				t.Fatalf("%x is in the journal where %x should be", id, want)
			}
			places[id], last[id>>32] = place{r.Seq, r.Index}, id
			events++
		}
	}
	for id, seq := range acknowledged {
		p, q := places[id], places[id+1]
		if p.seq != seq || q != (place{seq, p.index + 1}) {
			t.Errorf("%x was acknowledged at %d, and its events are at %v and %v", id, seq, p, q)
		}
	}
	t.Logf("%d kills, %d events acknowledged, %d in the journal", rounds, 2*len(acknowledged), events)
}

// attack lets a victim write, kills it some time after its first acknowledgement,
// and remembers what it said.
func attack(t *testing.T, folder string, round int, after time.Duration, acknowledged map[int]store.Seq) {
	t.Helper()
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimFolder+"="+folder, victimRound+"="+strconv.Itoa(round))
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var kill sync.Once
	for lines := bufio.NewScanner(out); lines.Scan(); {
		kill.Do(func() { time.AfterFunc(after, func() { _ = victim.Process.Kill() }) })
		var seq store.Seq
		var id int
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &seq, &id); err == nil {
			acknowledged[id] = seq
		}
	}
	_ = victim.Wait()
	if victim.ProcessState.ExitCode() != -1 { // not by a signal
		t.Fatalf("the victim ended by itself: %v", victim.ProcessState)
	}
}
